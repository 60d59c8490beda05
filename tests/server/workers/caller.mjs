// Calls one method of the client in JavaScript. usage: caller.mjs URL METHOD ARGUMENTS OPTIONS. caller.py is the same in
// Python, whose names these are.

import { Client, HoldfastError } from '../../../clients/javascript/holdfast.mjs';

const [url, name, args, options] = process.argv.slice(2);
const client = new Client(url, { token: process.env.TOKEN, actor: process.env.ACTOR });
const method = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
try {
    const last = options === '{}' ? [] : [JSON.parse(options)];
    const given = client[method](...JSON.parse(args), ...last);
    if (Symbol.asyncIterator in given)
        for await (const item of given)
            say(item);
    else
        say(await given);
} catch (error) {
    if (!(error instanceof HoldfastError))
        throw error;
    say({ refused: error.code });
}
