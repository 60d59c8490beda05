"""A server that says what a test wants it to say."""

import http.server
import json
import threading


class Stub:
    """`answer(path, headers, body)` gives the status and JSON, or the bytes of a stream that ends then; None: there is no
    answer, ever. The caller's port is among the headers, as `port`."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {**self.headers, "port": self.client_address[1]}
                given = answer(self.path, headers, json.loads(body) if body else None)
                if given is None:
                    threading.Event().wait()
                self.reply(*given)

            do_POST = do_GET

            def reply(self, status, content):
                stream = isinstance(content, bytes)
                raw = content if stream else b"" if content is None else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
                if status != 204:
                    self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
