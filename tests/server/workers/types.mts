// A program that strict TypeScript takes, with the types beside the client. It is never run.

import {
    ChildFailed, Client, type Context, HoldfastError, PermanentError, RetryAfter, StepFailed, TurnOver, WaitTimeout, Worker,
} from '../../../clients/javascript/holdfast.mjs';

interface Order { sum: number; items: string[] }
interface Receipt { id: number }

const client = new Client(['http://127.0.0.1:8420', 'http://127.0.0.1:8421'], { token: 't', timeout: 5 });

async function charge(sum: number, key: string, signal: AbortSignal): Promise<Receipt> {
    if (signal.aborted)
        throw new RetryAfter(1, 'busy');
    return { id: sum + key.length };
}

async function order(ctx: Context, input: Order) {
    const receipt = await ctx.step('charge', ({ key, signal }) => charge(input.sum, key, signal), { retries: 3, timeout: 5 });
    const id: number = receipt.id;
    const [length, word, plain] = await ctx.all([ctx.step('a', () => 1), () => ctx.step('b', () => 'b'), true]);
    const both: { a: number; b: string } = await ctx.all({ a: () => ctx.step('a', () => length), b: ctx.step('b', () => word) });
    const approval = await ctx.waitSignal<{ by: string }>('approved', { timeout: 60 });
    const answer = await ctx.ask('sure', { sum: input.sum }, { roles: ['boss'], dueIn: 60 });
    const kids: string[] = await ctx.startChildren('ship', input.items.map((item) => ({ workflow: 'ship.v1', input: item })));
    const ends = await ctx.waitChildren<string>('shipped', kids, { waitFor: 'all_or_failure' });
    try {
        await ctx.waitChild<number>('one', await ctx.startChild('kid', 'kid.v1', input, { delay: 5, key: 'k' }), { timeout: 3 });
    } catch (error) {
        if (error instanceof StepFailed || error instanceof WaitTimeout)
            throw new PermanentError(error.message, error.code, error.details);
        if (error instanceof ChildFailed)
            return { id, why: String(error.end.error) };
        if (error instanceof TurnOver && error.lost)
            throw error;
    }
    await ctx.progress(50, await ctx.uuid());
    await ctx.publish({ at: new Date(await ctx.now()) });
    await ctx.emit('order.done');
    await ctx.sleepUntil('later', new Date());
    if (await ctx.version('change', 2) < 2)
        await ctx.pause('look');
    return { id, by: approval.by, how: answer.outcome, plain, both, ends: ends.map((end) => end.result.length) };
}

const worker = new Worker(client, { concurrency: 4, prefixes: 'shop.', log: (line) => console.error(line) })
    .workflow('shop.order.v1', { attempts: 5, lease: 5, retention: '90d', schedule: { cron: '@daily', catchUp: 'one' } }, order)
    .workflow('shop.other.v1', async (ctx, input: { n: number }) => ctx.step('n', () => input.n));

// @ts-expect-error: what is called is not handed over
export const wrong = (ctx: Context) => ctx.step('mail', Promise.resolve(1));
// @ts-expect-error: there is no such option
export const mistyped = (ctx: Context) => ctx.step('mail', () => 1, { retrys: 1 });
// @ts-expect-error: there is no such setting
export const unset = () => worker.workflow('a.v1', { attemps: 1 }, order);

const run = await client.trigger('shop.order.v1', { sum: 1, items: [] }, { key: 'o-1', tags: ['eu'] });
for await (const event of client.events(run, { after: 1 }))
    console.log(event.seq, event.kind, event.name);
for await (const found of client.list({ status: 'succeeded' }))
    console.log(found.id, found.result);
await client.signal('shop.order.v1/o-1', 'approved', { by: 'ada' }, { id: 's' });
await client.wait(run, 30).catch((error: unknown) => {
    if (error instanceof HoldfastError)
        console.log(error.code, error.status);
});
await worker.run({ signals: false });
