// An order: the card is charged once, a day later somebody approves, then each item is shipped by a run of its own.
//
//     holdfast workflow create shop.order.v1
//     holdfast serve &
//     COOL_DOWN=5 node examples/javascript/order.mjs &
//     id=$(holdfast trigger shop.order.v1 '{"sum": 30, "items": ["tea", "cup"]}' --quiet)
//     holdfast signal "$id" approved '{"by": "ada"}'
//     holdfast wait "$id"
//
// HOLDFAST_URL names the server, HOLDFAST_TOKEN the token, COOL_DOWN the seconds between charge and approval (default: a day).
// SPDX-License-Identifier: Apache-2.0

import { ChildFailed, Client, PermanentError, WaitTimeout, Worker } from '../../clients/javascript/holdfast.mjs';

const client = new Client(process.env.HOLDFAST_URL ?? 'http://127.0.0.1:8420', { token: process.env.HOLDFAST_TOKEN });
const worker = new Worker(client);

/** A payment service that takes an idempotency key charges once, whatever happens between it and us. */
const charge = async (sum, key) => ({ charged: sum, key });

worker.workflow('shop.order.v1', async (ctx, input) => {
    if (input.sum <= 0)
        throw new PermanentError('an order costs something', 'bad_sum');
    const receipt = await ctx.step('charge', ({ key }) => charge(input.sum, key), { retries: 5 });
    await ctx.progress(30, 'charged');
    await ctx.sleep('cool down', Number(process.env.COOL_DOWN ?? 86400));
    let approval;
    try {
        approval = await ctx.waitSignal('approved', { timeout: 7 * 86400 });
    } catch (error) {
        if (!(error instanceof WaitTimeout))
            throw error;
        await ctx.step('refund', ({ key }) => charge(-input.sum, key), { retries: 5 });
        return { refunded: true };
    }
    const parcels = await ctx.startChildren('ship', input.items.map((item) => ({ workflow: 'shop.parcel.v1', input: item })));
    const ends = await ctx.waitChildren('shipped', parcels);
    for (const end of ends)
        if (end.status !== 'succeeded')
            throw new ChildFailed(end);
    await ctx.emit('order.shipped', { order: ctx.runId });
    return { receipt: receipt.charged, by: approval.by, parcels: ends.map((end) => end.result) };
});

worker.workflow('shop.parcel.v1', (ctx, item) => ctx.step('pack', () => `${item} in a box`));

await worker.run();
