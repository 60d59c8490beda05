// Calls methods of the client in JavaScript. usage: caller.mjs URL. caller.py is the same in Python, whose names these are.

import { createInterface } from 'node:readline';
import { Client, HoldfastError } from '../../../clients/javascript/holdfast.mjs';

const client = new Client(process.argv[2], { actor: 'kim' });
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

for await (const line of createInterface({ input: process.stdin })) {
    const [name, args, options] = JSON.parse(line);
    const method = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    try {
        const given = client[method](...args, ...(Object.keys(options).length ? [options] : []));
        if (!(Symbol.asyncIterator in given)) {
            say(await given);
            continue;
        }
        for await (const item of given)
            say(item);
        say(null);
    } catch (error) {
        if (!(error instanceof HoldfastError))
            throw error;
        say({ refused: error.code });
    }
}
