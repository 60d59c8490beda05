// The scenes of the golden histories, in JavaScript. usage: worker.mjs URL NAME GATE SCENE=PATTERN… See worker.py.

import { existsSync } from 'node:fs';
import { Client, PermanentError, RetryAfter, StepFailed, WaitTimeout, Worker } from '../../clients/javascript/holdfast.mjs';

const [url, name, gate, ...served] = process.argv.slice(2);
const begins = gate !== '-';
const worker = new Worker(new Client(url), { name, concurrency: 128 });
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

class Declined extends Error {
    name = 'Declined';
}

const fail = (error) => { throw error; };

async function caught(call) {
    try {
        return await call();
    } catch (error) {
        if (error instanceof StepFailed)
            return [error.step, error.code, error.message, error.details];
        if (error instanceof WaitTimeout)
            return 'late';
        throw error;
    }
}

const charge = () => fail(new PermanentError('no money', 'refused', { left: 3 }));
const busy = () => fail(new RetryAfter(0.05, 'busy', 'busy', { free: 0 }));

const scenes = {
    async steps(ctx, input) {
        const first = await ctx.step('a', () => ({ text: 'é', input }));
        await ctx.sleep('a', 0.05);
        return [first, await ctx.step('a', () => null), await ctx.step('b', () => [1.5, 'x'])];
    },

    async caught_failure(ctx) {
        const error = await caught(() => ctx.step('charge', charge));
        return [error, await ctx.waitSignal('go'), await ctx.step('after', () => 1)];
    },

    async failure(ctx) {
        await ctx.sleep('nap', 0.05);
        await ctx.step('charge', charge);
    },

    async retry(ctx) {
        const error = await caught(() => ctx.step('try', () => fail(new Declined('not yet')), { retries: 1, backoff: 0.05 }));
        return [error, await ctx.step('after', () => 1)];
    },

    async later(ctx) {
        const first = await ctx.step('put off', () => (begins ? busy() : 'done'), { retries: 0 });
        return [first, await caught(() => ctx.step('no more', busy, { retries: 0, retryAfterLimit: -1 }))];
    },

    async slow(ctx) {
        const error = await caught(() => ctx.step('slow', () => pause(200), { retries: 0, timeout: 0.05 }));
        return [error, await ctx.waitSignal('go')];
    },

    async signal(ctx) {
        return [await ctx.waitSignal('go'), await ctx.waitSignal('stop'), await ctx.waitSignal('go')];
    },

    async silence(ctx) {
        return [await caught(() => ctx.waitSignal('go', { timeout: 0.05 })), await ctx.waitSignal('go')];
    },

    late: (ctx) => ctx.waitSignal('go', { timeout: 0.05 }),

    async ask(ctx) {
        const answer = await ctx.ask('approve', { sum: 3 }, { title: 'Approve it', roles: ['boss'] });
        return [answer.outcome, answer.result, answer.by, await caught(() => ctx.ask('approve', null, { timeout: 0.05 }))];
    },

    async children(ctx) {
        const kids = await ctx.startChildren('kids', [{ workflow: 'kid.v1', input: 1 }, { workflow: 'kid.v1', input: 'fail' }]);
        const ends = await ctx.waitChildren('ends', kids);
        const idle = await ctx.startChild('idle', 'idle.v1');
        const some = await ctx.waitChildren('some', [kids[0], idle], { timeout: 0.05 });
        return [ends[0].result, ends[1].status, ends[1].error.code, ends[1].error.message, some.map((end) => end.status)];
    },

    async kid(ctx, input) {
        if (input === 'fail')
            throw new PermanentError('a bad kid', 'bad');
        return ctx.step('double', () => input * 2);
    },

    async told(ctx) {
        await ctx.progress(50, 'half');
        await ctx.publish({ at: 'half' });
        await ctx.emit('order.paid', { sum: 3 });
        const go = await ctx.waitSignal('go');
        await ctx.emit('order.paid');
        await ctx.progress(90);
        return go;
    },

    async fixed(ctx) {
        const values = [Math.round(await ctx.now() * 1000), await ctx.random(), await ctx.uuid(), await ctx.version('change', 2)];
        await ctx.sleep('nap', 0.05);
        return [...values, await ctx.version('change', 3), await ctx.version('other', 1), await ctx.uuid() === values[2]];
    },

    async limits(ctx) {
        const go = await ctx.waitSignal('go', { timeout: 0 });
        const gone = await caught(() => ctx.waitSignal('go', { timeout: -1 }));
        await ctx.sleep('none', 0);
        await ctx.sleep('past', -5);
        const nobody = await caught(() => ctx.ask('ask', null, { timeout: -1 }));
        const idle = await ctx.startChild('idle', 'idle.v1');
        const ends = await ctx.waitChildren('end', [idle], { timeout: -1 });
        await ctx.pause('look', -1);
        const done = await ctx.step('no limit', () => 1, { retries: 0, timeout: 0 });
        const error = await caught(() => ctx.step('too late', () => 1, { retries: 0, timeout: -1 }));
        return [go, gone, nobody, ends[0].status, done, error];
    },

    async pause(ctx) {
        await ctx.pause('look');
        return ctx.step('seen', () => true);
    },

    async misfit(ctx) {
        await ctx.step(begins ? 'old' : 'new', () => 1);
        await ctx.waitSignal('go');
    },

    async again(ctx) {
        const first = await ctx.step('a', () => 1);
        if (begins)
            throw new RetryAfter(0.05, 'in a moment', 'moment', { free: 0 });
        return [first, await ctx.step('b', () => 2)];
    },

    async broken(ctx) {
        await ctx.step('a', () => 1);
        throw new Declined('not today');
    },

    async some(ctx) {
        const kids = await ctx.startChildren('kids', [{ workflow: 'idle.v1' }, { workflow: 'kid.v1', input: 1 }]);
        const first = await ctx.waitChildren('first', kids, { waitFor: 'any' });
        const bad = await ctx.startChild('bad', 'kid.v1', 'fail');
        const ends = await ctx.waitChildren('bad end', [kids[0], bad], { waitFor: 'all_or_failure' });
        return [first.map((end) => end.status), ends.map((end) => end.status)];
    },

    async older(ctx) {
        await ctx.version('change', begins ? 2 : 1);
        await ctx.waitSignal('go');
    },

    async shorter(ctx) {
        await ctx.step('a', () => 1);
        if (begins)
            await ctx.waitSignal('go');
    },
};

for (const word of served) {
    const [scene, pattern] = word.split('=');
    worker.workflow(pattern, async (ctx, input) => {
        if (begins)
            process.stderr.write(`began ${ctx.runId}\n`);
        while (begins && !existsSync(gate))
            await pause(20);
        return scenes[scene](ctx, input);
    });
}
await worker.run();
