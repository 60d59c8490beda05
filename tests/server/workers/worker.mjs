// The workflows that remote.py and clients.py test, in JavaScript. usage: worker.mjs URL NAME LOG. worker.py is the same in
// Python.

import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, openSync } from 'node:fs';
import {
    Client, PermanentError, RetryAfter, StepFailed, TurnOver, WaitTimeout, Worker,
} from '../../../clients/javascript/holdfast.mjs';

const [url, name, log] = process.argv.slice(2);
const client = new Client(url, { token: process.env.TOKEN, timeout: Number(process.env.TIMEOUT ?? 30) });
const worker = new Worker(client, { name, concurrency: Number(process.env.HANDS ?? 8),
    stopLimit: Number(process.env.LIMIT ?? 20) });

for (let i = 0; i < Number(process.env.FILES ?? 0); i++) // so many are open already
    openSync('/dev/null');

if (process.env.STUMBLE) { // the first of these fails in a way that nobody thought of
    const ask = client.ask.bind(client);
    const stumbling = new Set(['/work/claim', '/work/heartbeat']);
    client.ask = async (method, path, ...rest) => {
        if (stumbling.delete(path))
            throw new RangeError(`stumbled over ${path}`);
        return ask(method, path, ...rest);
    };
}

/** A line in a file is something that cannot be undone. */
const note = (line) => appendFileSync(log, `${line}\n`);

async function happen(key) {
    const token = randomUUID();
    note(`${key} ${token}`);
    await new Promise((resolve) => { setTimeout(resolve, 30); }); // a kill finds it done and not recorded
    return token;
}

worker.workflow('order.v1', async (ctx, input) => {
    const charge = await ctx.step('charge', ({ key }) => happen(key));
    await ctx.sleep('nap', input.nap);
    const go = await ctx.waitSignal('go');
    const kids = await ctx.startChildren('kids',
        Array.from({ length: input.kids }, (_, i) => ({ workflow: 'child.v1', input: i })));
    const first = await ctx.waitChildren('first', kids, { waitFor: 'any' });
    const ends = await ctx.waitChildren('all', kids);
    const ship = [];
    for (let i = 0; i < 2; i++)
        ship.push(await ctx.step('ship', ({ key }) => happen(key)));
    return { charge, go, kids: ends.map((end) => end.result), ship, first: first.some((end) => end.status),
        uuid: await ctx.uuid(), version: await ctx.version('change', 2) };
});

worker.workflow('child.v1', (ctx, input) => ctx.step('double', () => input * 2));

worker.workflow('flaky.v1', async (ctx, input) => {
    try {
        await ctx.step('try', ({ key }) => {
            note(key);
            throw new Error('not today');
        }, { retries: input === 'catch' ? 2 : undefined, backoff: 0.05 }); // by default as often as the run: 3 times in all
    } catch (error) {
        if (error instanceof StepFailed && input === 'catch')
            return error.message;
        throw error;
    }
});

worker.workflow('failing.v1', async (ctx, input) => {
    if (input === 'permanent')
        throw new PermanentError('never', 'own_code');
    if (input === 'later' && ctx.attempt === 1)
        throw new RetryAfter(0.1, 'in a moment');
    if (input === 'nonsense')
        return { Map: new Map([[1, 2]]) };
    if (input === 'large')
        return 'x'.repeat(2 << 20);
    if (input === 'large step')
        await ctx.step('large', () => { note('large step'); return 'x'.repeat(2 << 20); });
    if (input === 'silence')
        await ctx.waitSignal('never', { timeout: 0.05 });
    if (input === 'slow step')
        await ctx.step('slow', () => new Promise((resolve) => { setTimeout(resolve, 200); }), { retries: 0, timeout: 0.1 });
    if (input === 'odd limits')
        return [await ctx.step('odd', () => 1, { retries: 0, timeout: 2.01 }),
            await ctx.step('far', async ({ signal }) => {
                await new Promise((resolve) => { setTimeout(resolve, 20); });
                return signal.aborted;
            }, { retries: 0, timeout: 1e10 })];
    if (input === 'nested')
        await ctx.step('outer', () => ctx.step('inner', () => 1), { retries: 0 });
    if (input === 'swallow') {
        try {
            await ctx.sleep('nap', 0.1);
        } catch {
            return 'it did not sleep';
        }
    }
    return ctx.attempt;
});

// What is handed on is no JSON.
worker.workflow('nonsense.v1', async (ctx, input) => {
    const circle = {};
    circle.of = circle;
    const value = { sum: circle };
    if (input === 'caught') {
        try {
            await ctx.emit('told', value);
        } catch (error) {
            if (!(error instanceof PermanentError))
                throw error;
            await ctx.emit('told');
            await ctx.sleep('nap', 0.05);
            return 'went on';
        }
    }
    return { ask: () => ctx.ask('q', value), form: () => ctx.ask('q', null, { form: value }),
        number: () => ctx.ask('q', Promise.resolve(10)), title: () => ctx.ask('q', null, { title: circle }),
        emit: () => ctx.emit('told', value), publish: () => ctx.publish(circle),
        child: () => ctx.startChild('kid', 'child.v1', value) }[input]();
});

worker.workflow('timeouts.v1', async (ctx) => {
    const kid = await ctx.startChild('kid', 'never.v1');
    try {
        await ctx.waitSignal('never', { timeout: 0.1 });
    } catch (error) {
        if (!(error instanceof WaitTimeout))
            throw error;
        try {
            await ctx.waitChild('kid end', kid, { timeout: 0.1 });
        } catch (other) {
            if (other instanceof WaitTimeout)
                return 'twice';
            throw other;
        }
    }
    return null;
});

worker.workflow('slow.v1', async (ctx) => {
    note(`${ctx.runId} began`);
    try {
        for (let i = 0; i < 600; i++) {
            ctx.check();
            await new Promise((resolve) => { setTimeout(resolve, 50); });
        }
    } catch (error) {
        if (error instanceof TurnOver && error.cancelled)
            note(`${ctx.runId} cancelled`);
        throw error;
    }
});

worker.workflow('held.v1', async (ctx) => {
    note(`${ctx.runId} began`);
    while (!existsSync(`${log}.go`))
        await new Promise((resolve) => { setTimeout(resolve, 50); });
    return ctx.attempt;
});

worker.workflow('stay.v1', () => new Promise(() => {}));

worker.workflow('until.v1', async (ctx) => {
    await ctx.sleepUntil('nap', Date.now() + 100 + 2 ** -11); // between two microseconds
    return 'slept';
});

worker.workflow('tell.v1', async (ctx) => {
    await ctx.progress(50, 'half');
    await ctx.publish({ at: 'half' });
    await ctx.emit('told', { n: 1 });
    await ctx.pause('look', 30);
    const now = await ctx.now();
    const random = await ctx.random();
    return [now > 0, random >= 0 && random < 1];
});

worker.workflow('changed.v1', async (ctx) => {
    await ctx.step(process.env.STEP ?? 'a', () => 1);
    await ctx.waitSignal('go');
});

// The same calls as those of the script in remote.py.
worker.workflow('relay.v1', async (ctx) => {
    const a = await ctx.step('a', () => 'of the worker');
    await ctx.sleep('nap', 0.05);
    const kid = await ctx.waitChild('kid end', await ctx.startChild('kid', 'child.v1', 3));
    const name = await ctx.uuid();
    const go = await ctx.waitSignal('go1');
    const b = await ctx.step('b', () => 'of the worker');
    await ctx.waitSignal('go2');
    return [a, kid, name, go, b];
});

worker.workflow('broken.v1', async (ctx, input) => {
    function digDeep() {
        throw new RangeError({ long: 'long '.repeat(5000), bytes: 'a\0b\ud800c' }[input] ?? 'oops');
    }
    if (input === 'step')
        await ctx.step('dig', digDeep, { retries: 1, backoff: 0.01 });
    digDeep();
});

worker.workflow('question.v1', async (ctx, input) => {
    const answers = [];
    for (let i = 0; i < 2; i++) {
        try {
            answers.push(await ctx.ask('approval', { sum: input }, { title: 'Approve it', roles: ['boss'], form: { f: 1 },
                dueIn: 3600, timeout: answers.length ? 0.1 : undefined }));
        } catch (error) {
            if (!(error instanceof WaitTimeout))
                throw error;
            answers.push(error.message);
        }
    }
    return answers;
});

worker.workflow('mother.v1', async (ctx) => [
    ...await ctx.startChildren('many', [{ workflow: 'leaf.v1' }, { workflow: 'leaf.v1' }]),
    await ctx.startChild('late', 'leaf.v1', null, { delay: 3600 }),
]);

await worker.run();
