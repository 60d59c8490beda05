#!/usr/bin/env python3
"""The client for JavaScript: what ordinary mistakes in handlers come to, its types, and servers that go away.
usage: javascript.py STORE. B8."""

import json
import os
import pathlib
import subprocess
import sys

from scene import PATIENCE, Process, Server, Skipped, check, make_store, wait_until
from processes import need_node
from runner import Runner
from stores import free_port

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
HERE = pathlib.Path(__file__).parent / "workers"
CLIENT = pathlib.Path(__file__).resolve().parents[2] / "clients" / "javascript"


def node(*words, **options):
    return subprocess.run(["node", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120 * PATIENCE, check=False, **options)


class Scene:
    def __init__(self, directory):
        self.directory = directory
        self.url = make_store(KIND, directory)
        self.port = free_port()
        self.served = 0
        self.serve()

    def serve(self):
        self.served += 1
        self.server = Server(self.directory, self.url, "--listen", f"127.0.0.1:{self.port}", name=f"serve-{self.served}")
        self.client = self.server.client

    def program(self, name, text, *words):
        """A program of a user, beside the client."""
        path = self.directory / f"{name}.mjs"
        path.write_text(text.replace("HOLDFAST", (CLIENT / "holdfast.mjs").as_uri()))
        return Process(self.directory, name, ["node", path, f"http://127.0.0.1:{self.port}", *words])

    def end(self, run):
        found = wait_until(lambda: [one for one in [self.client.get(f"/v1/runs/{run}?wait=20s").json]
                                    if one["status"] in ("succeeded", "failed", "cancelled")], f"{run} ends")
        return found[0]


def case(function):
    def play(directory):
        need_node()
        scene = Scene(directory)
        try:
            function(scene)
            scene.server.stop()
        finally:
            scene.server.process.kill()

    RUNNER.case(function.__name__, play)


def case_without_server(function):
    def play(directory):
        need_node()
        function(directory)

    RUNNER.case(function.__name__, play)


@case_without_server
def strict_typescript_takes_the_types_beside_the_client(_):
    modules = pathlib.Path(os.environ.get("HOLDFAST_TEST_NODE_MODULES", "nowhere"))
    compiler = modules / "typescript" / "lib" / "tsc.js"
    if not compiler.exists():
        raise Skipped("HOLDFAST_TEST_NODE_MODULES names no directory with typescript")
    said = node(compiler, "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom",
                HERE / "types.mts")
    check(said.returncode == 0, said.stdout)


@case_without_server
def turns_of_a_handler(_):
    """Each in turns.mjs is a sentence of its own."""
    said = node("--test-reporter=tap", HERE / "turns.mjs")
    check(said.returncode == 0, said.stdout)


FORGETFUL = """
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, Worker } from 'HOLDFAST';
const [url, log] = process.argv.slice(2);
const client = new Client(url);
// Six workers come and go; the runs of one workflow forget all that can be forgotten.
for (let i = 0; i < 6; i++) {
    const worker = new Worker(client, { stopLimit: 20, log: () => {} });
    worker.workflow('bad.v1', { attempts: 100, backoff: 0.01, maxBackoff: 0.02 }, async (ctx) => {
        ctx.step('forgotten', () => { throw new Error('oops'); }, { retries: 0 });
        ctx.startChild('kid', 'nobody.v1');
        ctx.progress(1, { no: new Map([[1, 1]]) });
        setTimeout(() => { throw new Error('in a timer'); }, 1);
        setTimeout(() => { Promise.reject(new Error('much later')); }, 30);
        Promise.reject(new Error('nobody listens'));
        await pause(5);
    });
    worker.workflow('good.v1', { attempts: 2, lease: 30 }, async (ctx, n) => {
        await ctx.step('work', () => appendFileSync(log, `${n}\\n`));
        await ctx.step('rest', () => pause(20));
        await ctx.sleep('nap', 0.05);
        return n;
    });
    const running = worker.run();
    await pause(250);
    worker.stop();
    await running;
}
const last = new Worker(client, { log: () => {} }).workflow('good.v1', async (ctx, n) => {
    await ctx.step('work', () => appendFileSync(log, `${n}\\n`));
    await ctx.step('rest', () => pause(20));
    await ctx.sleep('nap', 0.05);
    return n;
});
console.error('the last one');
await last.run();
"""


@case
def a_handler_that_forgets_all_it_can_ends_no_other_run(scene):
    for name in ("good.v1", "bad.v1"):
        scene.client.put(f"/v1/workflows/{name}", {"max_attempts": 2 if name == "good.v1" else 100})
    log = scene.directory / "log"
    good = [scene.client.trigger("good.v1", input=n) for n in range(30)]
    bad = [scene.client.trigger("bad.v1") for _ in range(12)]
    worker = scene.program("worker", FORGETFUL, log)
    for n, run in enumerate(good):
        end = scene.end(run)
        check((end["status"], end["result"]) == ("succeeded", n), (end, worker.said()))
    check(sorted(log.read_text().split()) == sorted(map(str, range(30))), "each did its step once")
    ends = [scene.client.get(f"/v1/runs/{run}").json for run in bad]
    check(all(end["status"] != "succeeded" for end in ends), ends)
    check(any(word in str(end["last_error"]) for end in ends for word in ("nobody listens", "await")), ends)
    wait_until(lambda: "the last one" in worker.said(), "all workers have come and gone")
    check(worker.stop() == 0, worker.said())


REJECTS = """
import { setTimeout as pause } from 'node:timers/promises';
import { Client, Worker } from 'HOLDFAST';
const worker = new Worker(new Client(process.argv[2])).workflow('a.v1', () => 1);
setTimeout(() => { Promise.reject(new Error('of no run')); }, 300);
await worker.run();
"""


@case
def what_is_rejected_outside_of_runs_ends_the_process_as_without_a_worker(scene):
    worker = scene.program("rejects", REJECTS)
    check(worker.wait(60) == 1, worker.said())
    check("of no run" in worker.said(), worker.said())


ORDERS = """
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, Worker } from 'HOLDFAST';
const [url, log, nobody] = process.argv.slice(2);
const worker = new Worker(new Client([nobody, url]), { concurrency: 20 });
worker.workflow('order.v1', { attempts: 1, lease: 60 }, async (ctx, n) => {
    for (const step of ['a', 'b', 'c'])
        await ctx.step(step, async () => { appendFileSync(log, `${n}${step}\\n`); await pause(150); });
    return ctx.all(['d', 'e', 'f'].map((step) => () => ctx.step(step, async () => {
        appendFileSync(log, `${n}${step}\\n`);
        await pause(100);
        return step;
    })));
});
await worker.run();
"""


@case
def a_server_that_is_started_again_under_orders_has_no_step_done_twice(scene):
    scene.client.put("/v1/workflows/order.v1", {})
    log = scene.directory / "log"
    log.touch()
    runs = [scene.client.trigger("order.v1", input=n) for n in range(20)]
    worker = scene.program("orders", ORDERS, log, f"http://127.0.0.1:{free_port()}")
    for i in range(3):
        wait_until(lambda least=20 * i + 5: len(log.read_text().split()) >= least, "some steps are done")
        scene.client.close()
        if i % 2:
            scene.server.stop()
        else:
            scene.server.process.kill()
        scene.serve()
    for run in runs:
        end = scene.end(run)
        check((end["status"], end["result"]) == ("succeeded", ["d", "e", "f"]), (end, worker.said()))
    done = log.read_text().split()
    check(len(done) == len(set(done)) == 120, sorted(done))
    check(worker.stop() == 0, worker.said())


DEPLOYED = """
import { Client, Worker } from 'HOLDFAST';
const [url, name, current] = process.argv.slice(2);
const worker = new Worker(new Client(url), { name });
worker.workflow('order.v1', { attempts: 1 }, async (ctx) => {
    const version = Number(current) ? await ctx.version('mail', Number(current)) : 0;
    await ctx.step(version >= 2 ? 'mail' : 'letter', () => version);
    await ctx.waitSignal('go');
    return version;
});
await worker.run();
"""


@case
def a_rolling_deploy_costs_no_run(scene):
    scene.client.put("/v1/workflows/order.v1", {})
    old = scene.program("old", DEPLOYED, "old", "0")
    def get(run):
        return scene.client.get(f"/v1/runs/{run}").json

    before = scene.client.trigger("order.v1")
    wait_until(lambda: get(before)["status"] == "waiting", "the old code has begun one")
    check(old.stop() == 0, old.said())
    new = scene.program("new", DEPLOYED, "new", "2")
    after = scene.client.trigger("order.v1")
    wait_until(lambda: get(after)["status"] == "waiting", "the new code has begun one")
    check(new.stop() == 0, new.said())
    old = scene.program("old-2", DEPLOYED, "old-2", "0")
    scene.client.post(f"/v1/runs/{after}/signals", {"name": "go"})
    wait_until(lambda: get(after)["waiting_kind"] == "worker", "the old code leaves it to another worker")
    check("does not fit" in old.said(), old.said())
    new = scene.program("new-2", DEPLOYED, "new-2", "2")
    scene.client.post(f"/v1/runs/{before}/signals", {"name": "go"})
    check(old.stop() == 0, old.said())
    check((scene.end(before)["result"], scene.end(after)["result"]) == (0, 2), [scene.end(before), scene.end(after)])
    check(scene.end(after)["attempt"] == 1, scene.end(after))
    check(new.stop() == 0, new.said())


CALLS = """
import { Client, HoldfastError, Worker } from 'HOLDFAST';
const [url, nobody] = process.argv.slice(2);
const client = new Client(`${nobody}, ${url}`);
const said = {};
const code = async (work) => { try { await work(); return null; } catch (error) { return [error.code, error.message]; } };
said.nobody = await code(() => new Client(nobody).get('r'));
const run = await client.trigger('a.v1', { n: 1 }, { key: 'k/ü?#1' });
said.byKey = (await client.get('a.v1/k/ü?#1')).id === run;
said.signal = [await client.signal('a.v1/k/ü?#1', 'go', null, { id: 's' }), await client.signal(run, 'go', null, { id: 's' })];
said.cancelled = (await client.cancel('a.v1/k/ü?#1', 'enough')).status;
said.waited = (await client.wait('a.v1/k/ü?#1', 10)).status;
said.steps = await client.steps('a.v1/k/ü?#1');
said.events = 0;
for await (const event of client.events('a.v1/k/ü?#1'))
    said.events++;
said.odd = await code(() => client.get('../workflows?x=1'));
said.task = await code(() => client.completeTask('../x', 'yes'));
console.log(JSON.stringify(said));
"""


@case
def a_run_is_named_by_its_key_and_no_name_leads_elsewhere(scene):
    scene.client.put("/v1/workflows/a.v1", {})
    nobody = f"http://127.0.0.1:{free_port()}"
    program = scene.program("calls", CALLS, nobody)
    check(program.wait(60) == 0, program.said())
    said = json.loads(program.said().splitlines()[-1])
    check(said["nobody"][0] == "unavailable" and nobody in said["nobody"][1] and
          "holdfast serve" in said["nobody"][1], said["nobody"])
    check(said["byKey"] and said["signal"] == [True, False], said)
    check((said["cancelled"], said["waited"], said["steps"]) == ("cancelled", "cancelled", []) and said["events"] > 1, said)
    check(said["odd"][0] in ("not_found", "invalid") and said["task"][0] in ("not_found", "invalid"), said)


RUNNER.finish()
