"""Between programs and a PostgreSQL server: a line that can fall silent without breaking."""

import pathlib
import socket
import threading


class Line:
    """One connection, in both directions."""

    def __init__(self, proxy, near, far):
        self.proxy = proxy
        self.near = near
        self.far = far
        self.forgotten = False
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        """What came in before the silence was over is handed on after it, unless the line was forgotten."""
        try:
            while data := source.recv(1 << 16):
                self.proxy.speaks.wait()
                if not self.forgotten:
                    sink.sendall(data)
        except OSError:
            pass
        self.proxy.speaks.wait()
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Proxy:
    def __init__(self, directory, store):
        self.path = pathlib.Path(directory) / f".s.PGSQL.{store.port}"
        self.target = str(store.directory / self.path.name)
        self.speaks = threading.Event()
        self.speaks.set()
        self.lines = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(100)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            self.lines.append(Line(self, near, far))

    def fall_silent(self):
        self.speaks.clear()

    def speak(self, forget=False):
        """Goes on. `forget`: only for new connections, as after a firewall that lost its memory."""
        for line in self.lines:
            line.forgotten = line.forgotten or forget
        self.speaks.set()
