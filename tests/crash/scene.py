"""The scene of a test: a store, workers and triggering processes, and the audit of what is left."""

import collections
import re
import subprocess

from processes import PROGRAM, TOOLS, Process, check, run_program, wait_until
from stores import new_store

QUICK = '{"ms":3}'  # the input of runs that take no time to speak of
HELD = '{"hold":1,"ms":1,"stubborn":1}'  # of runs that go on when the test says so, whatever happens to their lease

# Runs of ours: the engine's own chores (seals, retention) come and go beside them.
OURS = "workflow_id IN (SELECT id FROM {workflow} WHERE name NOT LIKE 'holdfast.%')"


class Scene:
    """A store with a workflow of short leases and one of long ones, workers and triggering processes."""

    def __init__(self, directory, kind, store=None):
        self.directory = directory
        self.log = directory / "workers.log"
        self.accepted_log = directory / "accepted.log"
        self.children = []
        self.made = 0
        self.log.touch()
        self.accepted_log.touch()
        self.store = store or new_store(kind, directory)

    def define(self, workflow, lease):
        run_program("workflow", "create", workflow, "--lease", lease, "--retry-base", "10ms", "--retry-cap", "100ms",
                    "--max-attempts", "100", "--store", self.store.url)

    def spawn(self, name, argv, **options):
        child = Process(self.directory, name, argv, **options)
        self.children.append(child)
        return child

    def worker(self, name=None, threads=4, stop_limit=10000, poll=1000, gate=None, environment=None):
        self.made += 1
        name = name or f"worker-{self.made}"
        return self.spawn(name, [TOOLS / "crash_worker", "-u", self.store.url, "-l", self.log, "-n", name,
                                 "-t", threads, "-s", stop_limit, "-p", poll,
                                 *(("-g", gate) if gate else ())], env=environment)

    def exec_worker(self, command, *options, pattern="crash.*"):
        self.made += 1
        return self.spawn(f"exec-{self.made}", [PROGRAM, "worker", "--exec", f"{pattern}={command}", "--poll", "1s",
                                                "--store", self.store.url, *options])

    def trigger(self, prefix, *options):
        """A process that triggers; it goes on where one with the same prefix was killed."""
        return self.spawn(f"trigger-{prefix}", [TOOLS / "crash_trigger", "-u", self.store.url, "-l", self.accepted_log,
                                                "-k", prefix, "-f", self.next_of(prefix), *options])

    def next_of(self, prefix):
        """Batches are accepted in any order, but the next one begins only after all of the one before."""
        numbers = {int(key.rsplit("-", 1)[1]) for key in self.accepted() if key.rsplit("-", 1)[0] == prefix}
        number = 0
        while number in numbers:
            number += 1
        return number

    def trigger_all(self, prefix, count, *options):
        child = self.trigger(prefix, "-c", count, "-p", 0, "-i", QUICK, *options)
        status = child.wait(60)
        check(status == 0, f"{child.name} failed: {child.said()}")

    def accepted(self):
        """key -> run. A key that was accepted twice must have been given the same run."""
        runs = {}
        for line in self.accepted_log.read_text().splitlines():
            key, run = line.split()
            check(runs.setdefault(key, run) == run, f"the key {key} was given two runs: {runs[key]} and {run}")
        return runs

    def trigger_one(self, workflow, key, *options):
        """One run, through the program; returns it."""
        run = run_program("trigger", workflow, "--key", key, "--quiet", *options, "--store", self.store.url)
        with open(self.accepted_log, "a", encoding="ascii") as log:
            log.write(f"{key} {run.stdout.strip()}\n")
        return run.stdout.strip()

    def begun(self, count=1):
        """Waits until so many handlers have begun in all."""
        wait_until(lambda: (b"\n" + self.log.read_bytes()).count(b"\nstart ") >= count,
                   f"{count} handlers have begun")

    def held(self, count=1):
        """Waits until so many handlers hold their runs and wait to be let go."""
        wait_until(lambda: len(self.lines("held")) >= count, f"{count} handlers hold their runs")

    def let_go(self, worker=None):
        """Those that are held, all of them or those of one worker."""
        self.log.with_name(f"{self.log.name}.go" + (f".{worker}" if worker else "")).touch()

    def lines(self, kind):
        words = (line.split() for line in self.log.read_text().splitlines())
        return [line[1:] for line in words if line[0] == kind]

    def unfinished(self):
        return int(self.store.ask("SELECT count(*) FROM {run} WHERE status < 4 AND " + OURS)[0][0])

    def succeeded(self):
        return int(self.store.ask("SELECT count(*) FROM {run} WHERE status = 4 AND " + OURS)[0][0])

    def await_all_finished(self, seconds=120):
        wait_until(lambda: self.unfinished() == 0, "all runs are finished", seconds)

    def __enter__(self):
        try:
            self.define("crash.work", lease="1s")
            self.define("crash.long", lease="30s")
        except BaseException:
            self.store.close()
            raise
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
        self.store.close()

    # -- The audit --

    def audit(self, late_starts=0):
        """Every accepted run has succeeded exactly once, by a handler that did run, and journal and state agree."""
        for child in self.children:
            check("Sanitizer" not in child.said(), f"{child.name} says: {child.said()[:2000]}")
        accepted = self.accepted()
        runs = {run: (int(status), token) for run, status, token in
                self.store.ask("SELECT uuid(id), status, coalesce(result, '') FROM {run} WHERE " + OURS)}
        lost = [run for run in accepted.values() if run not in runs]
        check(not lost, f"{len(lost)} accepted runs are gone, such as {lost[:3]}")
        strange = {run for _, run, _ in self.lines("start")} - set(runs)
        check(not strange, f"handlers have begun for {len(strange)} runs that the store does not know, such as {list(strange)[:3]}")
        unfinished = [run for run in runs if runs[run][0] != 4]
        check(not unfinished, f"{len(unfinished)} runs have not succeeded, such as {unfinished[:3]}")
        self.audit_successes(runs)
        self.audit_repetitions(late_starts)
        self.audit_refusals()
        self.audit_invariants()
        return len(accepted)

    def audit_successes(self, runs):
        ends = collections.Counter(run for (run,) in self.store.ask(
            "SELECT uuid(run_id) FROM {event} WHERE kind = 0 AND name IN ('succeeded', 'failed', 'cancelled')"))
        odd = [run for run in runs if ends[run] != 1]
        check(not odd, f"{len(odd)} runs do not have exactly one end in the journal, such as {odd[:3]}")
        handled = {token: run for token, run, _ in self.lines("start")}
        for run, (_, result) in runs.items():
            token = re.search(r'"token": *"([^"]+)"', result)
            check(token and handled.get(token[1]) == run, f"run {run} has a result that no handler gave it: {result}")

    def audit_repetitions(self, allowed):
        """The log is in the order of time. A process that is stopped just before it calls its handler may call it after
        others have finished the run; what else it had claimed it must leave alone."""
        recorded, late = set(), []
        for line in self.log.read_text().splitlines():
            words = line.split()
            if words[0] == "finished" and words[4] == "succeeded":
                recorded.add(words[2])
            elif words[0] == "start" and words[2] in recorded:
                late.append(line)
        check(len(late) <= allowed, f"{len(late)} handlers begun after success was recorded, such as {late[:3]}")

    def audit_refusals(self):
        """What a worker was told is taken is the journal's success; what it was told is refused is not. An attempt that
        a worker had twice (given back in between) proves nothing."""
        begun = collections.Counter((token.rsplit("-", 2)[0], run, attempt) for token, run, attempt in
                                    self.lines("start"))
        success = {(actor, run, str(attempt)) for actor, run, attempt in self.store.ask(
            "SELECT e.actor, uuid(e.run_id), r.attempt FROM {event} e JOIN {run} r ON r.id = e.run_id "
            "WHERE e.kind = 0 AND e.name = 'succeeded'")}
        for worker, run, attempt, status in self.lines("finished"):
            check(status != "succeeded" or (worker, run, attempt) in success,
                  f"{worker} was told that attempt {attempt} of run {run} is its success, yet the journal has another")
        for worker, run, attempt in self.lines("lost"):
            turn = (worker, run, attempt)
            check(turn not in success or begun[turn] > 1,
                  f"{worker} was refused attempt {attempt} of run {run}, yet the journal has it as its success")

    def audit_invariants(self):
        done = subprocess.run([TOOLS / "crash_audit", self.store.direct], capture_output=True, text=True)
        check(done.returncode == 0, f"the journal does not match the state: {done.stdout}{done.stderr}")
