// What becomes of a handler's calls, turn by turn, on a server that keeps its runs in this process and whose clock jumps to
// what a run waits for. usage: turns.mjs. javascript.py runs it. B8.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'node:test';
import * as holdfast from '../../../clients/javascript/holdfast.mjs';
import {
    ChildFailed, Client, HoldfastError, PermanentError, RetryAfter, StepFailed, TurnOver, Unavailable, WaitTimeout, Worker,
} from '../../../clients/javascript/holdfast.mjs';

const GENERAL = { key: null, input: null, attempt: 1, max_attempts: 1 };

/** A server of one worker. `say(path, body)` may answer in its place, or throw. */
class Server {
    runs = new Map();
    asked = []; // [path, body]
    clock = 1_000_000_000_000_000;

    constructor(say = () => undefined) {
        this.say = say;
    }

    /** @param {string} workflow @param {object[]} steps lines that are remembered */
    add(workflow, steps = [], members = {}) {
        const id = `r${this.runs.size + 1}`;
        const run = { id, workflow, version: 1, ...GENERAL, ...members };
        run.steps = steps.map((line, i) => ({ version: 2, ...line, seq: i + 1 }));
        run.mail = members.mail ?? [];
        run.ended = new Promise((resolve) => { run.end = resolve; });
        this.runs.set(id, run);
        this.wake?.();
        return run;
    }

    async ask(method, path, body) {
        this.asked.push([path, body]);
        const said = await this.say(path, body);
        if (said !== undefined)
            return said;
        const [, id, action] = /^\/work\/runs\/([^/]+)\/(\w+)$/.exec(path) ?? [];
        if (id)
            return this[action](this.runs.get(id), body);
        if (path === '/work/claim')
            return { items: await this.claim(body) };
        if (path === '/work/heartbeat')
            return { items: body.runs.map(({ id: one }) => ({ code: this.runs.get(one).code ?? 'ok' })) };
        if (path === '/work/watch')
            return { items: await this.watch() };
        if (path === '/work/leave')
            this.left = true;
        this.wake?.();
        return null;
    }

    async claim({ limit }) {
        const due = () => [...this.runs.values()].filter((run) => !run.held && !run.done).slice(0, limit);
        while (!this.left && due().length === 0)
            await new Promise((resolve) => { this.wake = resolve; });
        return this.left ? [] : due().map((run) => {
            run.held = true;
            run.version++;
            this.clock = Math.max(this.clock + 1000, run.until ?? 0);
            const { steps, mail, ...rest } = run;
            return { run: rest, lease_us: run.lease_us ?? 3_000_000, deadline_us: 0, seen_us: this.clock, seen_position: 0,
                mail: [...mail], steps: [...steps], retried_seq: run.retried_seq ?? 0 };
        });
    }

    async watch() {
        while (!this.left && !this.news?.length)
            await new Promise((resolve) => { this.hear = resolve; });
        return this.news?.splice(0) ?? [];
    }

    line(run, name, status, data) {
        run.steps.push({ seq: run.steps.length + 1, version: run.version, name, status, data });
    }

    step(run, { name, status, data, request, version }) {
        assert.equal(version, run.version, 'stale');
        if (!(run.requests ??= new Set()).has(request))
            this.line(run, name, status, data);
        run.requests.add(request);
        return null;
    }

    commit(run, body) {
        assert.equal(body.version, run.version, 'stale');
        for (const event of body.events ?? [])
            if (event.kind === 'step')
                this.line(run, event.step, event.name, event.data);
        run.mail = run.mail.filter((mail) => !body.consumed?.includes(mail.id));
        if (body.turn === 'go_on')
            return { children: [] };
        run.held = false;
        run.until = body.waiting_until_us;
        if (body.turn === 'succeed')
            this.finish(run, { status: 'succeeded', result: body.result });
        this.wake?.();
        return { children: [] };
    }

    unfit(run, body) {
        this.finish(run, { status: 'unfit', ...body });
        return { failed: false };
    }

    fail(run, body) {
        this.finish(run, { status: 'failed', ...body });
        return { retried: false };
    }

    finish(run, how) {
        run.done = true;
        run.held = false;
        run.end(how);
    }
}

/** Serves these handlers while `work` goes on. */
async function serve(server, handlers, work, options = {}) {
    const log = [];
    const worker = new Worker(server, { name: 'w', log: (line) => log.push(line), prefixes: [], stopLimit: 0.2, ...options });
    for (const [name, handler] of Object.entries(handlers))
        worker.workflow(name, ...[handler].flat());
    const running = worker.run({ signals: false });
    try {
        return await work(log);
    } finally {
        worker.stop();
        server.hear?.();
        await running;
    }
}

/** Plays a run of this handler to its end; how it ended, and `run`. */
async function play(handler, { steps, say, watching, ...members } = {}) {
    const server = new Server(say);
    watching?.(server);
    const run = server.add('a.v1', steps, members);
    return serve(server, { 'a.v1': handler }, async (log) => ({ ...await run.ended, run, log, server }));
}

const EVENTS = ['unhandledRejection', 'uncaughtException'];
await serve(new Server(), { 'a.v1': () => null }, async () => {});
const OURS = EVENTS.map((event) => process.listeners(event));

/** Without the listeners that the test runner has for what nobody catches. */
async function alone(work) {
    const theirs = EVENTS.map((event, i) => process.listeners(event).filter((one) => !OURS[i].includes(one)));
    EVENTS.forEach((event, i) => theirs[i].forEach((one) => process.off(event, one)));
    try {
        return await work();
    } finally {
        EVENTS.forEach((event, i) => theirs[i].forEach((one) => process.on(event, one)));
    }
}

const lines = (run) => run.steps.map((line) => `${line.name} ${line.status}`);
const hang = () => new Promise(() => {});
const unavailable = () => { throw new Unavailable('unavailable', 'away'); };

// ---- Promises that are forgotten ----

const FORGETFUL = {
    'a sleep and then a step': [async (ctx) => { ctx.sleep('nap', 1); await ctx.step('s', () => 1); }, 'calls_overlap', 'nap', '"s"'],
    'a sleep that overlaps a step': [async (ctx) => { ctx.step('s', () => pause(20)); await ctx.sleep('nap', 1); }, 'calls_overlap',
        'nap', '"s"'],
    'two waits': [(ctx) => Promise.all([ctx.waitSignal('a'), ctx.waitSignal('b')]), 'calls_overlap', '"a"', '"b"'],
    'two promises of which one is awaited': [async (ctx) => {
        const [, b] = [ctx.step('a', () => pause(50)), ctx.step('b', () => 1)];
        await b;
    }, 'not_awaited', '"a"'],
    'a last step that throws': [async (ctx) => { ctx.step('s', () => { throw new Error('oops'); }, { retries: 0 }); }, 'not_awaited',
        '"s"'],
    'a step that has thrown before the end': [async (ctx) => {
        ctx.step('s', () => { throw new Error('oops'); }, { retries: 0 });
        await ctx.step('t', () => pause(50));
    }, 'not_awaited', '"s"', 'oops'],
    'a step that has ended well': [async (ctx) => {
        ctx.step('s', () => 1);
        await ctx.step('t', () => pause(50));
    }, 'not_awaited', '"s"'],
    'a child of an unknown workflow': [async (ctx) => { ctx.startChild('kid', 'no.v1'); await pause(20); }, 'not_awaited', '"kid"',
        'no workflow'],
    'a progress that is no JSON': [async (ctx) => { ctx.progress(50, new Map([[1, 1]])); }, 'not_awaited', '"progress"', 'Map'],
    'a progress': [async (ctx) => { ctx.progress(50); await pause(20); }, 'not_awaited', '"progress"'],
    'ctx.all': [async (ctx) => { ctx.all([() => ctx.step('s', () => 1)]); await pause(20); }, 'not_awaited', 'ctx.all'],
    'a function that calls ctx': [async (ctx) => {
        (async () => { await ctx.step('s', () => { throw new Error('oops'); }, { retries: 0 }); })();
        await pause(100);
    }, 'not_awaited', 'oops'],
    'a promise of its own': [async () => { Promise.reject(new Error('oops')); await pause(20); }, 'not_awaited', 'oops'],
    'a promise of its own, and no more': [() => { Promise.reject(new Error('oops')); }, 'not_awaited', 'oops'],
    'a timer that throws': [async () => { setTimeout(() => { throw new Error('oops'); }, 5); await pause(100); }, 'uncaught', 'oops'],
};

for (const [what, [handler, code, ...words]] of Object.entries(FORGETFUL)) {
    test(`a handler that forgets ${what} fails its run with a sentence, and no other`, async () => {
        const server = new Server((path, body) => {
            if (path.endsWith('commit') && body.children)
                throw new HoldfastError('unknown_workflow', 'no workflow named no.v1', 404);
        });
        const good = server.add('good.v1');
        const bad = server.add('bad.v1');
        const healthy = async (ctx) => [await ctx.step('a', () => pause(60)), await ctx.step('b', () => pause(60))].length;
        await alone(() => serve(server, { 'good.v1': healthy, 'bad.v1': handler }, async () => {
            const end = await bad.ended;
            assert.equal(end.code, code, end.message);
            for (const word of words)
                assert.ok(end.message.includes(word), `${word} is not in: ${end.message}`);
            assert.deepEqual((await good.ended).result, 2);
        }));
    });
}

test('what comes after the end of a turn is refused, and told to nobody', async () => {
    let ctx;
    const end = await play((given) => { ctx = given; return 'done'; });
    assert.equal(end.result, 'done');
    ctx.progress(99);
    await assert.rejects(ctx.step('late', () => assert.fail('it is done')), TurnOver);
    assert.ok(!end.server.asked.some(([, body]) => body?.events));
});

test('a rule that was broken fails the run, whoever catches what is thrown', async () => {
    const end = await play(async (ctx) => {
        await Promise.allSettled([ctx.step('s', () => pause(10)), ctx.sleep('nap', 1)]);
        return 'all is well';
    });
    assert.deepEqual([end.status, end.code, end.permanent], ['failed', 'calls_overlap', true]);
    assert.deepEqual(lines(end.run), ['s succeeded'], 'what was done is remembered');
});

test('a step does its work without ctx', async () => {
    const end = await play((ctx) => ctx.step('outer', () => ctx.step('inner', () => 1)).catch(() => 'caught'));
    assert.equal(end.code, 'calls_overlap');
    assert.match(end.message, /"inner".*"outer"/);
});

test('a step may tell how far it is, and one that was left behind tells nothing', async () => {
    let late;
    const end = await play(async (ctx) => {
        await ctx.step('s', () => ctx.progress(10));
        await ctx.step('hung', () => pause(50).then(() => { late = ctx.progress(20); }), { timeout: 0.01, retries: 0 }).catch(() => {});
        await ctx.step('next', () => pause(100));
        return 'fine';
    });
    assert.deepEqual([end.status, end.result], ['succeeded', 'fine']);
    await assert.rejects(late, /longer than its limit/);
    const told = end.server.asked.flatMap(([, body]) => body?.events ?? []).filter((event) => event.name === 'progress');
    assert.deepEqual(told.map((event) => event.data.percent), [10]);
});

for (const [what, error] of [
    ['a code on two lines', () => Object.assign(new Error('no'), { code: 'bad\ncode' })],
    ['a message that cannot be read', () => Object.defineProperty(new Error(), 'message', { get() { throw new Error('none'); } })],
]) {
    test(`an error with ${what} fails its attempt all the same`, async () => {
        const end = await play(() => { throw error(); });
        assert.equal(end.status, 'failed');
        assert.match(end.code, /^[^\x00-\x1f]+$/);
    });
}

// ---- Steps that are written wrong ----

for (const [what, work, ...words] of [
    ['a promise', (ctx) => ctx.step('mail', Promise.reject(new Error('sent'))), 'hand the function over', 'ctx.step("mail", () =>'],
    ['nothing', (ctx) => ctx.step('s'), 'nothing', 'hand the function over'],
    ['a value', (ctx) => ctx.step('s', 5), 'number'],
    ['a mistyped option', (ctx) => ctx.step('s', () => 1, { retrys: 3 }), '"retrys"', 'did you mean "retries"?'],
    ['an option of Python', (ctx) => ctx.step('s', () => 1, { max_backoff: 3 }), 'did you mean "maxBackoff"?'],
    ['a text for a time', (ctx) => ctx.step('s', () => 1, { timeout: '5s' }), '"timeout"', 'seconds'],
    ['a mistyped option of a wait', (ctx) => ctx.waitSignal('s', { timeOut: 3 }), 'did you mean "timeout"?'],
    ['a mistyped option of a question', (ctx) => ctx.ask('s', null, { role: ['a'] }), 'did you mean "roles"?'],
    ['a number for a name', (ctx) => ctx.step(7, () => 1), 'name'],
    ['no time to sleep', (ctx) => ctx.sleep('nap'), 'seconds'],
    ['no children to wait for', (ctx) => ctx.waitChildren('all', []), 'waits for no children'],
]) {
    test(`a call that is given ${what} fails the run, whoever catches it`, async () => {
        const end = await play((ctx) => work(ctx).catch(() => 'caught'));
        assert.deepEqual([end.code, end.permanent], ['bad_call', true]);
        for (const word of words)
            assert.ok(end.message.includes(word), `${word} is not in: ${end.message}`);
        assert.ok(end.error.trace.includes('turns.mjs') && !end.error.trace.includes('holdfast.mjs'), end.error.trace);
    });
}

// ---- Steps at once ----

/** A handler that notes in which order its parts go on. */
const branching = (order, wait = pause) => async (ctx) => {
    const branch = async (name, ms) => {
        for (let i = 0; i < 3; i++) {
            order.push(`${name}${i} ${await ctx.step('item', () => wait(ms, `${name}${i}`))}`);
            if (i === 1)
                order.push(`${name} ${typeof await ctx.uuid()}`);
        }
        return name;
    };
    const ends = await Promise.all([branch('x', 12), branch('y', 5), branch('z', 8)]);
    await ctx.sleep('nap', 3600);
    order.push(await ctx.step('last', () => 'last'));
    return ends.join('');
};

test('steps at once run in the same order again, from every place at which a worker may die', async () => {
    const first = [];
    const { run, result } = await play(branching(first));
    assert.equal(result, 'xyz');
    assert.ok(run.steps.some((line) => line.data.open?.length === 2), 'lines name what was open beside them');
    const told = first.slice(0, first.indexOf('last')); // the second turn tells it again
    for (let kept = 0; kept <= run.steps.length; kept++) {
        const again = [];
        const end = await play(branching(again, async (_ms, value) => value), { steps: run.steps.slice(0, kept) });
        assert.equal(end.result, 'xyz');
        const known = run.steps.slice(0, kept).filter((line) => line.name.startsWith('item')).map((line) => line.data.output);
        const values = again.slice(0, told.length).filter((one) => / [xyz]/.test(one)).map((one) => one.split(' ')[1]);
        assert.deepEqual(values.slice(0, known.length), known, `with ${kept} lines`);
        assert.equal(new Set(end.run.steps.map((line) => line.name)).size, run.steps.length, 'nothing is remembered twice');
    }
});

test('a function that is at work beside others is done once', async () => {
    const done = [];
    const end = await play(async (ctx) => {
        const ends = await ctx.all([1, 2, 3].map((n) => () => ctx.step('s', () => { done.push(n); return pause(5 * (4 - n), n); })));
        await ctx.sleep('nap', 60);
        return ends;
    });
    assert.deepEqual([end.result, done], [[1, 2, 3], [1, 2, 3]]);
});

test('ctx.all waits for all before it throws, and names what it gives', async () => {
    const end = await play(async (ctx) => {
        let ended = false;
        await assert.rejects(ctx.all([
            ctx.step('bad', () => { throw new Error('no'); }, { retries: 0 }),
            () => ctx.step('slow', async () => { await pause(30); ended = true; }),
        ]), StepFailed);
        assert.ok(ended);
        return ctx.all({ a: () => ctx.step('a', () => 1), b: ctx.step('b', () => 2), c: 3 });
    });
    assert.deepEqual(end.result, { a: 1, b: 2, c: 3 }, end.message);
});

test('steps that are tried again wait together, and nothing that goes well is done again', async () => {
    const tries = { a: 0, b: 0, c: 0 };
    const flaky = (name) => () => { if (++tries[name] < 3) throw new Error(name); return name; };
    const end = await play((ctx) => Promise.all([ctx.step('a', flaky('a'), { retries: 5, backoff: 1 }),
        ctx.step('b', flaky('b'), { retries: 5, backoff: 100 }), ctx.step('c', () => pause(20, ++tries.c))]));
    assert.deepEqual([end.result, tries], [['a', 'b', 1], { a: 3, b: 3, c: 1 }], end.message);
    const waits = end.server.asked.filter(([, body]) => body?.turn === 'wait').map(([, body]) => body);
    assert.deepEqual(waits[0].events.map((event) => event.step), ['a', 'b'], 'one commit for both');
    assert.equal(waits[0].waiting_until_us, Math.min(...waits[0].events.map((event) => event.data.until)));
    assert.deepEqual(waits[0].events[0].data.open, ['b']);
});

test('what a handler leaves behind when it throws is remembered', async () => {
    const end = await play(async (ctx) => {
        await Promise.all([ctx.step('slow', () => pause(40, 'done')), (async () => { await pause(5); throw new Error('out'); })()]);
    });
    assert.deepEqual([end.code, lines(end.run)], ['Error', ['slow succeeded']]);
});

const line = (name, op, status, data) => ({ name, status, data: { op, ...data } });

test('code that makes other calls than are remembered does not fit', async () => {
    const steps = [line('a', 'step', 'succeeded', { output: 1 }), line('b', 'step', 'succeeded', { output: 2 })];
    const unused = () => assert.fail('it was not to be done');
    for (const [handler, ...words] of [
        [async (ctx) => { await ctx.step('a', unused); await ctx.step('c', unused); }, '"c" (step)', '"b" (step)'],
        [async (ctx) => { await ctx.step('b', unused); await ctx.step('a', unused); }, '"b" (step)', '"a" (step)'],
        [async (ctx) => { await ctx.step('a', unused); }, 'ended', '"b" (step)'],
        [async (ctx) => { await ctx.step('a', unused); await ctx.sleep('b', 1); }, '"b" (sleep)', '"b" (step)'],
        [async (ctx) => { await ctx.all([ctx.step('a', unused), ctx.sleep('c', 5)]).catch(() => {}); }, '"c"', '"a"'],
    ]) {
        const end = await play(handler, { steps });
        assert.ok(end.status === 'unfit' || end.code === 'calls_overlap', `${end.code} ${end.message}`);
        for (const word of words)
            assert.ok(end.message.includes(word), `${word} is not in: ${end.message}`);
    }
});

test('a version that this code does not know is left to code that does', async () => {
    const steps = [line('change', 'version', 'succeeded', { output: 3 })];
    const end = await play((ctx) => ctx.version('change', 2), { steps });
    assert.equal(end.status, 'unfit');
    assert.match(end.message, /version 3 of "change".* 2/);
    assert.equal((await play((ctx) => ctx.version('change', 3), { steps })).result, 3);
    assert.equal((await play(async (ctx) => [await ctx.version('new', 1), await ctx.version('change', 3)][0], { steps })).result, 0);
});

test("an operator's retry tries again the step on which the run gave up, also beside others", async () => {
    const steps = [line('a', 'step', 'succeeded', { output: 'a' }), line('b', 'step', 'failed', { error: 'no', open: ['c'] }),
        line('c', 'step', 'succeeded', { output: 'c' })];
    const handler = (ctx) => ctx.all([ctx.step('a', () => 1), ctx.step('b', () => 'b'), ctx.step('c', () => 1)]);
    assert.deepEqual((await play(handler, { steps, retried_seq: 3 })).result, ['a', 'b', 'c']);
    assert.equal((await play(handler, { steps, retried_seq: 2 })).code, 'step_failed');
});

// ---- Limits of time ----

test('a step that takes too long has failed, and the handler goes on', async () => {
    let late;
    const seen = {};
    const signals = [];
    const end = await play(async (ctx) => {
        const error = await ctx.step('hang', ({ signal }) => {
            signals.push(signal);
            return new Promise((resolve) => { late = resolve; });
        }, { retries: 0, timeout: 0.05 }).catch((failed) => failed);
        while (!seen.server.asked.some(([path, body]) => path === '/work/heartbeat' && body.stuck === 1))
            await pause(5);
        late('too late');
        while (seen.server.asked.filter(([path]) => path === '/work/heartbeat').at(-1)[1].stuck !== 0)
            await pause(5);
        return [error.code, await ctx.step('next', () => 'next')];
    }, { lease_us: 60_000, watching: (server) => { seen.server = server; } });
    assert.deepEqual(end.result, ['timeout', 'next'], end.message);
    assert.ok(signals[0].aborted);
    assert.deepEqual(lines(end.run), ['hang failed', 'next succeeded'], 'what comes late changes nothing');
});

test('0 is no limit of time, and one below it has passed', async () => {
    const end = await play(async (ctx) => {
        const done = await ctx.step('s', () => pause(10, 'done'), { timeout: 0 });
        const passed = await ctx.step('p', () => 'done', { timeout: -1, retries: 0 }).catch((error) => error.code);
        await assert.rejects(ctx.waitSignal('w', { timeout: -1 }), WaitTimeout);
        await assert.rejects(ctx.waitChild('k', 'kid', { timeout: -1 }), WaitTimeout);
        return [done, passed, await ctx.waitSignal('go', { timeout: 0 })];
    }, { mail: [{ id: 'm', type: 'external', name: 'go', payload: 'went' }] });
    assert.deepEqual(end.result, ['done', 'timeout', 'went'], end.message);
});

test('a run that was cancelled frees its hand at once, although its handler hangs', async () => {
    const server = new Server();
    const bad = server.add('hang.v1', [], { lease_us: 300_000 });
    await serve(server, { 'hang.v1': (ctx) => ctx.step('s', hang), 'good.v1': () => 'good' }, async () => {
        while (!bad.held)
            await pause(5);
        bad.code = 'cancelled';
        bad.done = true;
        assert.equal((await server.add('good.v1').ended).result, 'good');
        const stuck = () => server.asked.filter(([path]) => path === '/work/heartbeat').map(([, body]) => body.stuck);
        while (stuck().at(-1) !== 1)
            await pause(5);
        assert.equal(stuck()[0], 0, 'what hangs is counted once its run is lost');
    }, { concurrency: 1 });
});

test('a worker that is told of a cancel asks for that run at once', async () => {
    const server = new Server();
    const [bad, other] = [server.add('hang.v1', [], { lease_us: 8.64e10 }), server.add('hang.v1', [], { lease_us: 8.64e10 })];
    await serve(server, { 'hang.v1': (ctx) => ctx.step('s', hang) }, async () => {
        while (!server.hear)
            await pause(5);
        bad.code = 'cancelled';
        bad.done = true;
        server.news = [{ id: bad.id }, { id: 'unknown' }];
        server.hear();
        const beats = () => server.asked.filter(([path]) => path === '/work/heartbeat');
        while (beats().length === 0)
            await pause(5);
        assert.deepEqual(beats()[0][1].runs.map((run) => run.id), [bad.id], 'not the one that is due for all');
        assert.equal(other.held, true);
    });
});

test('a worker that holds nothing keeps no watch, and one whose server knows none goes on', async () => {
    const server = new Server((path) => {
        if (path === '/work/watch')
            throw new HoldfastError('not_found', 'unknown route', 404);
    });
    await serve(server, { 'a.v1': () => pause(150) }, async () => {
        while (!server.asked.some(([path]) => path === '/work/claim'))
            await pause(5);
        assert.ok(!server.asked.some(([path]) => path === '/work/watch'));
        await server.add('a.v1').ended;
        await server.add('a.v1').ended;
        assert.equal(server.asked.filter(([path]) => path === '/work/watch').length, 1);
    });
});

// ---- Steps that fail ----

test("a step's error is the same in the first turn and in every replay", async () => {
    class Declined extends Error { name = 'Declined'; }
    const thrown = {
        Declined: [new Declined('no money'), ['Declined', 'Declined: no money', null]],
        own: [new PermanentError('no money', 'card_declined', { at: new Date(0) }),
            ['card_declined', 'no money', { at: '1970-01-01T00:00:00.000Z' }]],
        system: [Object.assign(new Error('no such file'), { code: 'ENOENT' }), ['ENOENT', 'no such file', null]],
    };
    for (const [error, expected] of Object.values(thrown)) {
        const seen = [];
        const end = await play(async (ctx) => {
            const failed = await ctx.step('s', () => { throw error; }, { retries: 0 }).catch((one) => one);
            seen.push([failed.code, failed.message, failed.details ?? null]);
            assert.ok(failed instanceof StepFailed && failed.step === 's' && failed.cause === undefined);
            await ctx.sleep('nap', 60);
            throw failed;
        });
        assert.deepEqual(seen, [expected, expected]);
        assert.deepEqual([end.code, end.error.code, end.error.step, end.error.details ?? null],
            [expected[0], expected[0], 's', expected[2]]);
    }
    const old = await play((ctx) => ctx.step('s', () => 1), { steps: [line('s', 'step', 'failed', { error: 'old' })] });
    assert.deepEqual([old.code, old.message], ['step_failed', 'old']);
});

test('a trace begins with frames of the user, each once', async () => {
    const dig = () => { throw new RangeError('oops'); };
    const { error } = await play(async function own(ctx) { await ctx.step('s', dig, { retries: 0 }); });
    assert.match(error.trace, /^RangeError: oops\n {4}at dig \(.*\n/);
    const frames = error.trace.split('\n').filter((one) => one.startsWith('    at '));
    assert.ok(frames.some((one) => one.includes('own')) && !/holdfast\.mjs|node:/.test(error.trace), error.trace);
    assert.equal(new Set(frames).size, frames.length, error.trace);
});

test('RetryAfter uses up no retries, and has a limit of its own', async () => {
    let tries = 0;
    const end = await play((ctx) => ctx.step('s', ({ attempt }) => {
        if (++tries <= 5)
            throw new RetryAfter(600, 'busy');
        if (tries === 6)
            throw new Error('once');
        return attempt;
    }, { retries: 1 }));
    assert.deepEqual([end.result, tries], [2, 7], end.message);
    const told = end.run.steps.map(({ data }) => [data.attempt ?? 0, Boolean(data.deferred)]);
    assert.deepEqual(told, [...Array(5).fill([0, true]), [1, false], [2, false]]);
    assert.equal(new Set(end.run.steps.slice(0, 5).map(({ data }) => data.deferred)).size, 1, 'since when it is put off');
    tries = 0;
    const over = await play((ctx) => ctx.step('s', () => { tries++; throw new RetryAfter(600, 'busy'); },
        { retries: 0, retryAfterLimit: 1500 }));
    assert.deepEqual([over.code, over.message, tries], ['retry_after', 'busy', 3]);
});

test('a child that failed says why', () => {
    assert.match(new ChildFailed({ run: 'r', status: 'failed', result: null, error: { message: 'no money' } }).message, /no money/);
});

test('the refusal of a child of an unknown workflow keeps its code', async () => {
    const end = await play((ctx) => ctx.startChild('kid', 'no.v1'), { say: (path, body) => {
        if (body?.children)
            throw new HoldfastError('unknown_workflow', 'no workflow named no.v1', 404);
    } });
    assert.equal(end.code, 'unknown_workflow');
});

// ---- What is JSON ----

test('what is no JSON is written as documented, or refused with its place', async () => {
    const value = { when: new Date(0), map: new Map([['a', new Set([1, 2n])]]), none: undefined, nan: NaN };
    const expected = { when: '1970-01-01T00:00:00.000Z', map: { a: [1, '2'] }, nan: null };
    const end = await play(async (ctx) => {
        const first = await ctx.step('s', () => value);
        assert.deepEqual(first, expected, 'as a replay would give it');
        return value;
    });
    assert.deepEqual([end.result, end.run.steps[0].data.output], [expected, expected], end.message);

    const circle = { items: [{}] };
    circle.items[0].of = circle;
    const bad = await play((ctx) => ctx.step('draw', () => circle, { retries: 5 }));
    assert.deepEqual([bad.code, lines(bad.run)], ['result_refused', ['draw failed']]);
    assert.match(bad.message, /"draw" has happened.*\$\.items\[0\]\.of is a circle/);
    const early = await play((ctx) => ctx.ask('q', { m: new Map([[1, 2]]) }));
    assert.match(early.message, /"q".*\$\.payload\.m is a Map with a key/);
    assert.deepEqual([early.code, early.run.steps], ['result_refused', []]);
    assert.match((await play(() => ({ a: [Promise.resolve(1)] }))).message, /\$\.a\[0\] is a Promise/);
});

// ---- A server that goes away ----

test('a step that ends while the server is away is done once', async () => {
    let away = 3;
    let done = 0;
    const requests = [];
    const end = await play(async (ctx) => [await ctx.step('s', () => ++done), await ctx.step('t', () => ++done)], {
        say(path, body) {
            if (path.endsWith('/step'))
                requests.push(body.request);
            if (path.endsWith('/step') && away-- > 0)
                unavailable();
        },
    });
    assert.deepEqual([end.result, done], [[1, 2], 2]);
    assert.deepEqual([requests.length, new Set(requests).size], [5, 2], 'sent again under the same id');
    assert.ok(requests.every((one) => one.length >= 1 && one.length <= 64));
});

test('what a step gave is sent until the run is lost', async () => {
    const server = new Server((path) => { if (path.endsWith('/step')) unavailable(); });
    const lost = server.add('a.v1', [], { lease_us: 300_000 });
    const log = [];
    await serve(server, { 'a.v1': async (ctx) => {
        await ctx.step('s', () => 1).catch((error) => { log.push(error); throw error; });
    }, 'good.v1': () => 1 }, async () => {
        while (server.asked.filter(([path]) => path.endsWith('/step')).length < 3)
            await pause(10);
        lost.code = 'stale';
        lost.done = true;
        await server.add('good.v1').ended;
    }, { concurrency: 1 });
    assert.ok(log[0] instanceof TurnOver && log[0].lost);
});

test('progress and publish are told once', async () => {
    const end = await play(async (ctx) => {
        await ctx.progress(1);
        await ctx.publish({ at: 1 });
        await ctx.sleep('nap', 60);
        await ctx.publish({ at: 2 });
        await ctx.sleep('nap', 60);
    });
    const told = end.server.asked.flatMap(([, body]) => (body?.turn === 'go_on' ? [body.state ?? 'progress'] : []));
    assert.deepEqual(told, ['progress', { at: 1 }, { at: 2 }]);
});

// ---- Types ----

// What contexts and workers have for each other.
const INNER = { Context: ['lose', 'stray', 'conclude', 'works'], Worker: ['complain', 'abandon', 'askHeld'] };

test('the types name what the module has, and nothing else', () => {
    const text = readFileSync(new URL('../../../clients/javascript/holdfast.d.mts', import.meta.url), 'utf8');
    const classes = [...text.matchAll(/^export class (\w+)[^{]*\{(\}|[^]*?^\})/gm)];
    assert.deepEqual(classes.map(([, name]) => name).sort(), Object.keys(holdfast).sort());
    for (const [, name, body] of classes) {
        const typed = [...body.matchAll(/^ {4}(\w+)(?:<.*?>)?\(/gm)].map(([, one]) => one);
        const fields = [...body.matchAll(/^ {4}readonly (\w+):/gm)].map(([, one]) => one);
        const own = Object.entries(Object.getOwnPropertyDescriptors(holdfast[name].prototype));
        const methods = own.filter(([one, { get }]) => one !== 'constructor' && !get).map(([one]) => one);
        const getters = own.filter(([, { get }]) => get).map(([one]) => one);
        const inner = INNER[name] ?? [];
        assert.deepEqual([...new Set(typed)].filter((one) => one !== 'constructor').sort(),
            methods.filter((one) => !inner.includes(one)).sort(), name);
        for (const getter of getters.filter((one) => !inner.includes(one)))
            assert.ok(fields.includes(getter), `${name}.${getter}`);
    }
});

test('the types have the options that are checked', () => {
    const text = readFileSync(new URL('../../../clients/javascript/holdfast.d.mts', import.meta.url), 'utf8');
    const named = (name) => [...new RegExp(`^export interface ${name} \\{([^]*?)^\\}`, 'm').exec(text)[1]
        .matchAll(/^ {4}(\w+)\?:/gm)].map(([, one]) => one);
    const told = (work) => { try { work(); } catch (error) { return / has (.*)$/.exec(error.message)[1].split(', ').sort(); } return []; };
    const odd = { qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq: 1 };
    const client = new Client('http://127.0.0.1:1');
    assert.deepEqual(named('ClientOptions').sort(), told(() => new Client('http://127.0.0.1:1', odd)));
    assert.deepEqual(named('WorkerOptions').sort(), told(() => new Worker(client, odd)));
    const settings = told(() => new Worker(client).workflow('a.v1', odd, handler));
    assert.deepEqual(named('Settings').sort(), settings.filter((one) => !['maxAttempts', 'retryBase', 'retryCap'].includes(one)));
});

// ---- Handlers as they are written ----

const handler = async () => 1;

test('a handler that is written wrong is refused where it is written', () => {
    const worker = new Worker(new Client('http://127.0.0.1:1'), { prefixes: [] });
    worker.workflow('a.v1', handler);
    assert.throws(() => worker.workflow('a.v1', handler), /"a.v1" has a handler already/);
    for (const name of ['', 'a b', 'a..b', '.a', 'a.', 7, 'a*b', 'x'.repeat(300)])
        assert.throws(() => worker.workflow(name, handler), /name/, String(name).slice(0, 9));
    assert.throws(() => worker.workflow('holdfast.x', handler), /the engine's own/);
    assert.throws(() => worker.workflow('b.v1'), /handler is missing/);
    assert.throws(() => worker.workflow('b.v1', { attempts: 3 }), /handler is missing/);
    assert.throws(() => worker.workflow('b.v1', { attemps: 3 }, handler), /did you mean "attempts"\?/);
    assert.throws(() => worker.workflow('b.*', { attempts: 3 }, handler), /family/);
    assert.throws(() => new Worker(new Client('http://127.0.0.1:1'), { concurency: 3 }), /did you mean "concurrency"\?/);
    assert.throws(() => new Client('http://127.0.0.1:1', { tokn: 'x' }), /did you mean "token"\?/);
    assert.throws(() => new Client('127.0.0.1:8420'), /not an address/);
    worker.workflow('*', handler).workflow('mail.*', handler).workflow('b:c-d_e.v1', handler);
});

test('settings that stand with a handler come with the join', async () => {
    const server = new Server();
    await serve(server, {
        'a.v1': [{ attempts: 5, backoff: 0.5, max_backoff: 60, lease: 5, deadLetter: 'dead.v1', retention: '90d', schedule: '@daily' },
            handler],
        'b.v1': [{ schedule: { name: 'nightly', cron: '0 3 * * *', catchUp: 'one' } }, handler],
        'c.v1': handler,
    }, async () => {
        while (!server.asked.some(([path]) => path === '/work/claim'))
            await pause(5);
    });
    const [, join] = server.asked.find(([path]) => path === '/work/join');
    assert.deepEqual(join.settings, { 'a.v1': { max_attempts: 5, retry_base: '500ms', retry_cap: '60000ms', lease: '5000ms',
        dead_letter: 'dead.v1', retention: '90d' } });
    assert.deepEqual(join.schedules, { 'a.v1': { cron: '@daily', workflow: 'a.v1' },
        nightly: { cron: '0 3 * * *', catch_up: 'one', workflow: 'b.v1' } });
});

test('a worker claims only handlers whose names begin with its prefixes', async () => {
    for (const [options, variable] of [[{ prefixes: 'billing.,mail.' }, 'x.'], [{ prefixes: ['billing.', 'mail.*'] }, ''],
        [{ prefixes: undefined }, 'billing.,mail.']]) {
        const server = new Server();
        process.env.WORKER_TYPE_PREFIXES = variable;
        await serve(server, { 'billing.charge.v1': handler, 'mail.*': handler, 'shop.v1': handler }, async () => {
            while (!server.asked.some(([path]) => path === '/work/claim'))
                await pause(5);
        }, options);
        for (const [, body] of server.asked.filter(([path]) => /join|claim/.test(path)))
            assert.deepEqual(body.workflows, ['billing.charge.v1', 'mail.*']);
    }
    delete process.env.WORKER_TYPE_PREFIXES;
    const worker = new Worker(new Server(), { prefixes: 'nothing.' }).workflow('shop.v1', handler);
    await assert.rejects(worker.run(), /no handler fits.*nothing\..*shop\.v1/);
});
