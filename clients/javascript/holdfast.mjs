/**
 * Holdfast for JavaScript: trigger and follow runs, and work on them, over HTTP.
 *
 * One file, Node 20 or later, no dependencies; holdfast.d.mts beside it has the types. docs/javascript.md shows it at work,
 * docs/remote-workers.md is the protocol.
 *
 *     const client = new Client('http://127.0.0.1:8420'); // where `holdfast serve` listens
 *     const worker = new Worker(client);
 *     worker.workflow('order.v1', async (ctx, input) => {
 *         const receipt = await ctx.step('charge', () => charge(input.sum));
 *         await ctx.sleep('cool down', 3600);
 *         return { receipt, approval: await ctx.waitSignal('approved') };
 *     });
 *     await worker.run();
 *
 * A handler is called again from the top after a crash, a retry or a wait; each call on `ctx` that was made before answers
 * as it did then. So what changes the world, or may differ the next time, is done in a step, and the same calls are made
 * in the same order. Each is awaited; steps may run at once, with ctx.all() or Promise.all().
 *
 * SPDX-License-Identifier: Apache-2.0
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';

/** @typedef {null|boolean|number|string|Json[]|{[name: string]: Json}} Json */
/** @typedef {{id: string, workflow: string, key: string|null, status: string, input: Json, result: Json, error: Json,
 *   error_code: string|null, last_error: string|null, [name: string]: any}} Run */
/** @typedef {{workflow: string, input?: Json, key?: string, tags?: string[], delay?: number, [name: string]: any}} Trigger
 *   `delay`: not before so many seconds have passed. */
/** @typedef {{id: string, name: string, status: string, version: number, payload: Json, outcome: string|null,
 *   [name: string]: any}} Task */
/** @typedef {{run: string, status: 'succeeded'|'failed'|'cancelled'|'deleted'|null, result: Json, error: Json}} ChildEnd
 *   `status` is null while the child has not ended. */

const FINISHED = ['succeeded', 'failed', 'cancelled'];
const CLAIM_WAIT = 20; // s that a claim waits for work
const WATCH_WAIT = 20; // s that a watch waits for news of runs that are held
const WATCH_AFTER = 100; // ms that a run is held before its worker keeps a watch
const LONGEST_BEAT = 10_000; // ms between heartbeats
const TRACE_LIMIT = 8000; // characters of a stack that are kept with the run
const MESSAGE_LIMIT = 4000; // characters
const CODE_LIMIT = 200; // bytes
const MAIL_MOST = 100_000; // pieces that a claim brings
const BEAT_MOST = 1000; // runs that one heartbeat may name
const STANDSTILL = 1000; // ms after which a handler that does not meet what is remembered does not fit
const LONGEST_TIMER = 2 ** 31 - 1; // ms; with more it is due at once
const GIVE_BACK = { path: 'commit', turn: 'give_back' };

// ---- Errors ----

/** The server refused a request. `code` is stable and made for programs. */
export class HoldfastError extends Error {
    /** @param {string} code @param {string} message @param {number} [status] */
    constructor(code, message, status = 0) {
        super(message);
        this.name = new.target.name;
        this.code = code;
        this.status = status;
    }
}

/** There was no answer, or none that says what became of the request. */
export class Unavailable extends HoldfastError {}

/** Throw it to fail a run (or a step) for good: tried again, it would fail again. `code` and `details` (JSON) are kept. */
export class PermanentError extends Error {
    /** @param {string} message @param {string} [code] @param {Json} [details] */
    constructor(message, code = 'permanent', details = undefined) {
        super(message);
        this.name = new.target.name;
        this.code = code;
        this.details = details;
    }
}

/** The handler makes other calls than the run remembers. The run waits for a worker whose code it fits. */
export class HistoryMismatch extends PermanentError {
    /** @param {string} message @param {string} [why] */
    constructor(message, why = 'the code has changed under a running run; use ctx.version, or give the new code a new name') {
        super(`${message}: ${why}`, 'history_mismatch');
    }
}

/** A step has failed for good, with a code and a message of its own. It is remembered: a handler that is called again meets
 * the same error again. */
export class StepFailed extends PermanentError {
    /** @param {string} step @param {string} message @param {string} [code] @param {Json} [details] */
    constructor(step, message, code = 'step_failed', details = undefined) {
        super(message, code, details);
        this.step = step;
    }
}

/** A child that was waited for did not succeed; `end` tells how it ended. Remembered, as all that waits have told. */
export class ChildFailed extends PermanentError {
    /** @param {ChildEnd} end */
    constructor(end) {
        const why = end.error?.message ?? (typeof end.error === 'string' ? end.error : null);
        super(`the child run ${end.run} ended as ${end.status}${why ? `: ${why}` : ''}`, 'child_failed');
        this.end = end;
    }
}

/** The time of a wait has passed. Remembered, as all that waits have told. */
export class WaitTimeout extends PermanentError {
    /** @param {string} [message] */
    constructor(message) {
        super(message ?? 'the time has passed', 'wait_timeout');
    }
}

/** Throw it to fail this attempt and be tried again after so many seconds. In a step it does not use up `retries`, for as
 * long as the step's `retryAfterLimit`. */
export class RetryAfter extends Error {
    /** @param {number} seconds @param {string} [message] @param {string} [code] @param {Json} [details] */
    constructor(seconds, message = 'tried again later', code = 'retry_after', details = undefined) {
        super(message);
        if (typeof seconds !== 'number' || !Number.isFinite(seconds))
            throw new TypeError(`RetryAfter takes a number of seconds, not ${String(seconds)}`);
        this.name = 'RetryAfter';
        this.seconds = seconds;
        this.code = code;
        this.details = details;
    }
}

/** Unwinds a handler whose turn is over: the run waits, or is not held any more (`lost`), or was cancelled
 * (`cancelled`). Let it pass; if it is caught, every later call throws it again. */
export class TurnOver extends Error {
    /** @param {string} message @param {object|null} [end] @param {{lost?: boolean, cancelled?: boolean}} [why] */
    constructor(message, end = null, why = {}) {
        super(message);
        this.name = 'TurnOver';
        this.end = end; // the request that ends the turn; null: there is nothing left to say
        this.lost = Boolean(why.lost);
        this.cancelled = Boolean(why.cancelled);
    }
}

/** What a handler set off, and nobody listens to, has failed. */
class Stray extends Error {
    constructor(message, code, cause) {
        super(`${message}: ${say(cause)}`, { cause });
        this.code = code;
        this.permanent = cause instanceof PermanentError;
    }
}

/** Seconds as whole ms, for timers. */
const timerOf = (seconds) => Math.min(Math.ceil(seconds * 1000), LONGEST_TIMER);

/** Whether a time sets a limit: none, 0 and Infinity do not; a negative one has passed. */
const limits = (seconds) => seconds !== undefined && seconds !== null && seconds !== 0 && seconds !== Infinity;

const pauseFor = (ms, signal) => new Promise((resolve) => {
    const done = () => { clearTimeout(timer); signal?.removeEventListener('abort', done); resolve(); };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
    if (signal?.aborted)
        done();
});

/** Calls it, at once; a promise of what it gives or throws. */
function start(work) {
    try {
        return Promise.resolve(work());
    } catch (error) {
        return Promise.reject(error);
    }
}

/** Until all that can go on at once has done so. */
const idle = () => new Promise((resolve) => { setImmediate(resolve); });

/** Growing pauses between tries, in ms. */
function* backoff(first = 100, most = 10_000) {
    for (let pause = first; ; pause = Math.min(most, pause * 2))
        yield pause;
}

/** Text that every store takes. */
const clean = (text) => text.replaceAll('\0', '\\0').toWellFormed();

/** @returns {string} */
function say(error) {
    try {
        if (!(error instanceof Error))
            return clean(String(error));
        return clean(error.name === 'Error' || error instanceof PermanentError || error instanceof RetryAfter
            ? error.message || error.name : `${error.name}: ${error.message}`);
    } catch {
        return 'an error that cannot say what it is';
    }
}

/** Nobody has to look at it. */
function quiet(promise) {
    promise.catch(() => {});
    return promise;
}

/** An error's code for programs: its own, or its class. @returns {string} */
function codeOf(error) {
    const code = typeof error?.code === 'string' && error.code ? error.code : error instanceof Error ? error.name : 'Error';
    return Buffer.from(clean(code).replace(/[\x00-\x1f\x7f]/g, ' ')).subarray(0, CODE_LIMIT).toString().replace(/\ufffd+$/, '');
}

/** What else an error has to tell, if it is JSON. */
function detailsOf(error) {
    try {
        return error?.details === undefined || error.details === null ? {} : { details: plain(error.details) };
    } catch {
        return {};
    }
}

// ---- Stacks ----

const MINE = import.meta.url;
const origins = new WeakMap(); // an error that the context threw -> the one it comes from; not for handlers: a replay has none

/** What an error says, and its frames: the user's, without those of this file and of Node. */
function parts(error) {
    const stack = String(error?.stack ?? say(error));
    const at = stack.search(/\n {4}at /);
    if (at < 0)
        return { title: stack, frames: [] };
    const frames = stack.slice(at + 1).split('\n');
    const theirs = frames.filter((line) => !line.includes(MINE) && !/\bnode:/.test(line));
    return { title: stack.slice(0, at), frames: theirs.length ? theirs : frames };
}

/** Where it was thrown, and where what caused it was; each frame once. @returns {string} */
function trace(error, seen = new Set(), depth = 0) {
    const origin = origins.get(error) ?? error;
    const { title, frames } = parts(origin);
    const own = [...frames, ...(origin === error ? [] : parts(error).frames)].filter((line) => !seen.has(line));
    own.forEach((line) => seen.add(line));
    const text = clean([title, ...new Set(own)].join('\n'));
    return origin?.cause && depth < 10 ? `${text}\ncaused by ${trace(origin.cause, seen, depth + 1)}` : text;
}

// ---- Values ----

/** A UUIDv7 of this time (us), as the server makes them: lists are ordered by id. */
function newId(now) {
    const bytes = randomBytes(16);
    bytes.writeUIntBE(Math.floor(now / 1000), 0, 6);
    bytes.writeUInt16BE(0x7000 | ((now % 1000) * 4.096), 6);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** A run to be triggered, as the server wants it. @param {Partial<Trigger>} run */
const late = ({ delay, ...run }) => (delay === undefined ? run : { ...run, in: `${Math.round(delay * 1000)}ms` });

function refuse(path, what) {
    throw new PermanentError(`${path} ${what}`, 'result_refused');
}

const member = (path, name) => (/^[A-Za-z_]\w*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`);

/** The members of an object or a Map. */
function* membersOf(value, path) {
    if (!(value instanceof Map)) {
        yield* Object.entries(value);
        return;
    }
    for (const [name, one] of value) {
        if (typeof name !== 'string')
            refuse(path, `is a Map with a key that is no text (${typeof name})`);
        yield [name, one];
    }
}

/** As JSON.stringify sees it, and Map as an object, Set as an array, BigInt as text. `above`: what holds it. */
function plainOf(value, key, path, above) {
    if (typeof value?.toJSON === 'function')
        value = value.toJSON(key);
    if (value instanceof Number || value instanceof String || value instanceof Boolean)
        value = value.valueOf();
    if (typeof value === 'bigint')
        return String(value);
    if (typeof value === 'number')
        return Number.isFinite(value) ? value + 0 : null;
    if (typeof value === 'function' || typeof value === 'symbol')
        return undefined;
    if (typeof value !== 'object' || value === null)
        return value;
    if (above.includes(value))
        refuse(path, 'is a circle: it contains itself');
    if (typeof value.then === 'function')
        refuse(path, 'is a Promise: await it first');
    const within = [...above, value];
    if (Array.isArray(value) || value instanceof Set)
        return Array.from(value, (one, i) => plainOf(one, String(i), `${path}[${i}]`, within) ?? null);
    const made = {};
    for (const [name, one] of membersOf(value, path)) {
        const plainOne = plainOf(one, name, member(path, name), within);
        if (plainOne !== undefined)
            Object.defineProperty(made, name, { value: plainOne, enumerable: true, writable: true, configurable: true });
    }
    return made;
}

/** The value as it comes back from the store; undefined is null. `what` begins the error. */
function plain(value, what = 'it cannot be written as JSON') {
    try {
        return plainOf(value, '', '$', []) ?? null;
    } catch (error) {
        throw Object.assign(new PermanentError(`${what}: ${error.message}`, 'result_refused'), { stack: error.stack });
    }
}

// ---- Options ----

/** How many letters are different. */
function distance(a, b) {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        for (let j = 1; j <= b.length; j++)
            next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        row = next;
    }
    return row[b.length];
}

/** Throws for an option that there is not, with the nearest one. */
function checkOptions(what, options, known) {
    if (typeof options !== 'object' || options === null || Array.isArray(options))
        throw new TypeError(`${what}: options are an object, { ${known[0]}: … }`);
    for (const name of Object.keys(options)) {
        if (known.includes(name))
            continue;
        const word = name.toLowerCase().replaceAll('_', '');
        const [nearest] = [...known].sort((a, b) => distance(word, a.toLowerCase()) - distance(word, b.toLowerCase()));
        const near = distance(word, nearest.toLowerCase()) <= Math.max(2, word.length / 2);
        throw new TypeError(`${what}: there is no option "${name}"` +
            (near ? `; did you mean "${nearest}"?` : `; it has ${known.join(', ')}`));
    }
}

/** Throws for a time that is no number of seconds. */
function checkSeconds(what, options, names) {
    for (const name of names)
        if (options[name] !== undefined && options[name] !== null &&
            (typeof options[name] !== 'number' || Number.isNaN(options[name])))
            throw new TypeError(`${what}: "${name}" is a number of seconds, not ${typeof options[name]} ` +
                `${JSON.stringify(options[name])}`);
}

// ---- What belongs to which run ----

/** Which run, and which of its steps, the code at work belongs to; also for what a handler sets off and does not await.
 * Shared by all copies of this file in the process, as the process's events are. @type {AsyncLocalStorage<any>} */
const place = globalThis[Symbol.for('holdfast.place')] ??= new AsyncLocalStorage();

/** Whether Node would end the process for a promise that nobody listens to. */
function endsProcess() {
    const mode = /--unhandled-rejections[= ](\S+)/.exec([...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' '));
    return process.listenerCount('unhandledRejection') === 1 && !['warn', 'none'].includes(mode?.[1]);
}

/** One handler's forgotten promise, or what it throws in a timer, fails its own run and no other. What belongs to no run ends
 * the process, as it does without a worker, unless the program listens to these events itself. */
function guard() {
    if (globalThis[Symbol.for('holdfast.guard')])
        return;
    globalThis[Symbol.for('holdfast.guard')] = true;
    process.on('unhandledRejection', (reason) => {
        const ctx = place.getStore()?.ctx;
        if (ctx)
            ctx.stray(new Stray('a promise that was not awaited was rejected', 'not_awaited', reason));
        else if (endsProcess())
            throw reason instanceof Error ? reason : new Error(`a promise was rejected: ${say(reason)}`, { cause: reason });
    });
    process.on('uncaughtException', function ours(error) {
        const ctx = place.getStore()?.ctx;
        if (ctx) {
            ctx.stray(new Stray('it was thrown where nobody could catch it', 'uncaught', error));
        } else if (process.listenerCount('uncaughtException') === 1) {
            process.off('uncaughtException', ours);
            process.nextTick(() => { throw error; });
        }
    });
}

// ---- Client ----

/** Nothing was sent: the same request may go to another address. */
const UNHEARD = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];

/** The addresses of the servers of one store. @param {string|string[]} urls */
function addressesOf(urls) {
    const found = (Array.isArray(urls) ? urls : String(urls ?? '').split(',')).map((url) => String(url).trim()).filter(Boolean);
    for (const url of found)
        if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url))
            throw new TypeError(`not an address of a server: "${url}"; it looks like http://127.0.0.1:8420`);
    if (found.length === 0)
        throw new TypeError('a client needs the address of a server: new Client("http://127.0.0.1:8420")');
    return found.map((url) => ({ url, base: `${new URL(url).href.replace(/\/$/, '')}/v1` }));
}

/** Where a run is: by its id, or by `workflow/key`. @param {string} run */
function pathOf(run) {
    const [workflow, ...key] = String(run).split('/');
    return key.length === 0 ? `/runs/${encodeURIComponent(workflow)}`
        : `/workflows/${encodeURIComponent(workflow)}/runs/${encodeURIComponent(key.join('/'))}`;
}

/** Speaks to a server, or to several of one store: when one is away, the next is asked. Options that are not named here
 * (`key`, `tags`, …) are those of the HTTP API; times are RFC 3339, durations "90s". A run is named by its id or as
 * "workflow/key". What there is no method for can be had with ask(). */
export class Client {
    #servers;
    #at = 0; // the server that is asked
    #headers;
    #timeout;

    /** @param {string|string[]} url of the server; several in an array, or with commas between
     * @param {{token?: string, tenant?: string, timeout?: number, actor?: string}} [options]
     * `timeout`: seconds for an answer, default 30; `actor`: who acts, where there are no tokens. */
    constructor(url, options = {}) {
        checkOptions('new Client()', options, ['token', 'tenant', 'timeout', 'actor']);
        const { token, tenant, timeout = 30, actor } = options;
        this.#servers = addressesOf(url);
        this.#timeout = limits(timeout) ? timeout : Infinity;
        this.#headers = { Accept: 'application/json' };
        if (token)
            this.#headers.Authorization = `Bearer ${token}`;
        if (tenant)
            this.#headers['Holdfast-Tenant'] = tenant;
        if (actor)
            this.#headers['Holdfast-Actor'] = actor;
    }

    /** The address that is asked. */
    get url() {
        return this.#servers[this.#at].url;
    }

    /** The next address, unless somebody has gone on from this one. */
    #leave(at) {
        if (this.#at === at)
            this.#at = (at + 1) % this.#servers.length;
    }

    /** One request below /v1, sent once; the answer's JSON. `wait`: how many seconds longer than usual it may take.
     * @param {string} method @param {string} path @param {Json} [body] @param {number} [wait]
     * @param {AbortSignal} [signal] hangs up @returns {Promise<any>} */
    async ask(method, path, body, wait = 0, signal = undefined) {
        const raw = body === undefined ? undefined : JSON.stringify(body); // what is no JSON is the caller's error
        for (let tried = 1; ; tried++) {
            const at = this.#at;
            try {
                return await this.#askOne(this.#servers[at], method, path, raw, wait, signal);
            } catch (error) {
                if (!(error instanceof Unavailable) || signal?.aborted)
                    throw error;
                this.#leave(at);
                if (!error.unheard || tried >= this.#servers.length)
                    throw error;
            }
        }
    }

    async #askOne(server, method, path, raw, wait, signal) {
        // Its timer keeps the process alive: a fetch whose connection has gone may be left with nothing that does.
        const over = new AbortController();
        const hangUp = () => over.abort(signal.reason);
        const timer = setTimeout(() => over.abort(new Error('no answer in time')), timerOf(this.#timeout + wait));
        signal?.addEventListener('abort', hangUp);
        if (signal?.aborted)
            hangUp();
        let status;
        let text;
        try {
            const response = await fetch(server.base + path, {
                method,
                headers: raw === undefined ? this.#headers : { ...this.#headers, 'Content-Type': 'application/json' },
                body: raw,
                signal: over.signal,
            });
            status = response.status;
            text = await response.text();
        } catch (error) {
            throw this.#unavailable(server, method, path, error);
        } finally {
            clearTimeout(timer);
            signal?.removeEventListener('abort', hangUp);
        }
        return this.#read(status, text);
    }

    #unavailable({ url }, method, path, error) {
        const code = error.cause?.code ?? error.cause?.errors?.[0]?.code;
        const why = error.cause?.message || code || error.message;
        const made = new Unavailable('unavailable', code === 'ECONNREFUSED'
            ? `${method} ${path}: nothing listens at ${url}: start the server there with "holdfast serve" (${why})`
            : `${method} ${path}: no answer from ${url}: ${why}`);
        Object.defineProperty(made, 'unheard', { value: UNHEARD.includes(code) });
        return made;
    }

    #read(status, text) {
        let answer = null;
        try {
            answer = text ? JSON.parse(text) : null;
        } catch {
            status = status >= 400 ? status : 502;
        }
        if (status < 400)
            return answer;
        const code = String(answer?.type ?? `http_${status}`).replace(/.*:/, '');
        let message = answer?.detail ?? answer?.title ?? `the server answered ${status}`;
        if (status === 403 && answer?.detail) // what is needed, and by whom
            message = `${answer.title}: ${message}`;
        throw new (status >= 500 && status !== 507 ? Unavailable : HoldfastError)(code, message, status);
    }

    /** Starts a run; its id. With a `key` it is safe to repeat.
     * @param {string} workflow @param {Json} [input] @param {Partial<Trigger>} [options] @returns {Promise<string>} */
    async trigger(workflow, input = null, options = {}) {
        return (await this.ask('POST', '/runs', late({ workflow, input, ...options }))).id;
    }

    /** Each is accepted or refused by itself: an item of the answer has an id, or a code and a message.
     * @param {Trigger[]} runs @returns {Promise<{id?: string, code?: string, message?: string}[]>} */
    async triggerMany(runs) {
        return (await this.ask('POST', '/runs/batch', { runs: runs.map(late) })).items;
    }

    /** @param {string} run @returns {Promise<Run>} */
    get(run) {
        return this.ask('GET', pathOf(run));
    }

    /** @param {string} workflow @param {string} key @returns {Promise<Run>} */
    getByKey(workflow, key) {
        return this.ask('GET', `/workflows/${encodeURIComponent(workflow)}/runs/${encodeURIComponent(key)}`);
    }

    /** For what is there by id alone. */
    async #pathById(run) {
        return String(run).includes('/') ? pathOf((await this.get(run)).id) : pathOf(run);
    }

    /** What the run remembers. @param {string} run @returns {Promise<any[]>} */
    async steps(run) {
        const steps = [];
        for await (const step of this.#pages(`${await this.#pathById(run)}/steps`, {}))
            steps.push(step);
        return steps;
    }

    /** The run when it has ended. A HoldfastError `timeout` when that takes longer than `timeout` seconds (0: no limit). A
     * server that is away is waited for as well. @param {string} run @param {number} [timeout] @returns {Promise<Run>} */
    async wait(run, timeout = 0) {
        const until = limits(timeout) ? performance.now() + timeout * 1000 : Infinity;
        let pauses = backoff();
        let path = null;
        for (;;) {
            const patience = Math.max(0, Math.min(30_000, Math.round(until - performance.now())));
            let known;
            try {
                path ??= await this.#pathById(run);
                const found = await this.ask('GET', `${path}?wait=${patience}ms`, undefined, patience / 1000);
                if (FINISHED.includes(found.status))
                    return found;
                known = `is ${found.status}`;
                pauses = backoff();
            } catch (error) {
                if (!(error instanceof Unavailable))
                    throw error;
                known = `cannot be asked for: ${error.message}`;
                await pauseFor(Math.max(0, Math.min(pauses.next().value, until - performance.now())));
            }
            if (performance.now() >= until)
                throw new HoldfastError('timeout', `the run ${run} ${known}`);
        }
    }

    /** Runs, newest first, as many as there are.
     * @param {{[name: string]: any}} [filters] @returns {AsyncGenerator<Run>} */
    list(filters = {}) {
        return this.#pages('/runs', filters);
    }

    async *#pages(path, filters) {
        const query = new URLSearchParams(Object.entries(filters).map(([name, value]) => [name, String(value)]));
        for (;;) {
            const page = await this.ask('GET', `${path}?${query}`);
            yield* page.items;
            if (!page.next)
                return;
            query.set('cursor', page.next);
        }
    }

    async #change(run, action, reason) {
        return this.ask('POST', `${await this.#pathById(run)}/${action}`, reason ? { reason } : {});
    }

    /** @param {string} run @param {string} [reason] @returns {Promise<Run>} */
    cancel(run, reason) {
        return this.#change(run, 'cancel', reason);
    }

    /** @param {string} run @param {string} [reason] @returns {Promise<Run>} */
    pause(run, reason) {
        return this.#change(run, 'pause', reason);
    }

    /** @param {string} run @param {string} [reason] @returns {Promise<Run>} */
    resume(run, reason) {
        return this.#change(run, 'resume', reason);
    }

    /** @param {string} run @param {string} [reason] @returns {Promise<Run>} */
    retry(run, reason) {
        return this.#change(run, 'retry', reason);
    }

    /** @param {string} run @param {string} [reason] @returns {Promise<Run>} */
    delete(run, reason) {
        return this.#change(run, 'delete', reason);
    }

    /** @param {string} run @param {string} [reason] @returns {Promise<Run>} */
    restore(run, reason) {
        return this.#change(run, 'restore', reason);
    }

    /** A new run that keeps the steps before `step` (none: none of them); its id.
     * @param {string} run @param {string} [step] @param {{input?: Json, key?: string, reason?: string}} [options]
     * @returns {Promise<string>} */
    async fork(run, step, options = {}) {
        return (await this.ask('POST', `${await this.#pathById(run)}/fork`, { ...(step && { step }), ...options })).id;
    }

    /** Sends a signal; with an `id` it is taken once. False: it was there already.
     * @param {string} run @param {string} name @param {Json} [payload] @param {{id?: string}} [options]
     * @returns {Promise<boolean>} */
    async signal(run, name, payload = null, { id } = {}) {
        return !(await this.ask('POST', `${await this.#pathById(run)}/signals`,
            { name, payload, ...(id && { id }) })).duplicate;
    }

    /** The run's journal: what is there, then what comes, until the run has ended.
     * @param {string} run @param {{after?: number}} [options] @returns {AsyncGenerator<{seq: number, kind: string,
     * name: string, [name: string]: any}>} */
    async *events(run, { after = 0 } = {}) {
        let pauses = backoff();
        let over = false; // the run had ended before the stream was opened
        let path = null;
        for (;;) {
            const before = after;
            const at = this.#at;
            try {
                path ??= await this.#pathById(run);
                const response = await fetch(`${this.#servers[at].base}${path}/events`, {
                    headers: { ...this.#headers, Accept: 'text/event-stream', 'Last-Event-ID': String(after) },
                });
                if (response.status >= 400)
                    this.#read(response.status, await response.text());
                for await (const event of readEvents(response.body)) {
                    after = event.seq;
                    pauses = backoff();
                    yield event;
                }
                // Streams also end with their server, and the run may have ended since then: only one that was opened after
                // that, and had nothing to tell, says that there is no more.
                if (over && after === before)
                    return;
                over = FINISHED.includes((await this.ask('GET', path)).status);
            } catch (error) {
                if (error instanceof HoldfastError && !(error instanceof Unavailable))
                    throw error;
                this.#leave(at);
                await pauseFor(pauses.next().value);
            }
        }
    }

    // -- questions to people --

    /** Open and claimed ones, newest first; by `role`, `assignee`, `run`, `name`, `status`, `overdue`, `by_due`.
     * @param {{[name: string]: any}} [filters] @returns {AsyncGenerator<Task>} */
    tasks(filters = {}) {
        return this.#pages('/tasks', filters);
    }

    /** Answers it: a word, and what else there is to say. The same answer once more changes nothing.
     * @param {string} task @param {string} outcome @param {Json} [result] @returns {Promise<Task>} */
    completeTask(task, outcome, result = null) {
        return this.ask('POST', `/tasks/${encodeURIComponent(task)}/complete`, { outcome, result });
    }
}

async function* readEvents(body) {
    let rest = '';
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop();
        for (const line of lines)
            if (line.startsWith('data:'))
                yield JSON.parse(line.slice(5));
    }
}

// ---- What a run remembers ----

/** One remembered call: its last line in the journal. `own`: else it came with the run's start, as the steps of a fork. */
const entryOf = (name, status, data, own = true) => ({
    name, status, own, op: data.op ?? 'step', output: data.output ?? null, error: data.error ?? null,
    code: data.code ?? 'step_failed', details: data.details, attempt: data.attempt ?? 0, until: data.until ?? 0,
    deferred: data.deferred ?? 0, open: data.open ?? [],
});

/** @returns {ChildEnd} */
const endOf = (run, end) => ({
    run, status: end?.status ?? null, result: end?.result ?? null, error: end?.error ?? null,
});

/** A promise that may be forgotten: its rejection is told only to who asks. Whether somebody did is known. */
class Call extends Promise {
    static get [Symbol.species]() {
        return Promise;
    }

    /** @returns {{call: Call, resolve: (value: any) => void, reject: (error: Error) => void}} */
    static make(onTaken) {
        const made = {};
        made.call = new Call((resolve, reject) => Object.assign(made, { resolve, reject }));
        super.prototype.then.call(made.call, null, () => {});
        made.call.onTaken = onTaken;
        return made;
    }

    then(done, failed) {
        this.onTaken?.();
        return super.then(done, failed);
    }
}

const STEP_OPTIONS = ['retries', 'backoff', 'maxBackoff', 'timeout', 'retryAfterLimit'];
const never = new Promise(() => {});
const homeless = new WeakSet(); // errors of the context that do not tell yet where in the handler they belong

/**
 * What a run remembers, and the order in which it is told again: that of the journal, each answer once the handler has had
 * the chance to go on after the one before. So code that runs at once runs in the same order again.
 */
class Memory {
    #entries = []; // as they were last written
    #byName = new Map();
    #answers = []; // those that need nothing but to be told
    #next = 0; // the first of them that was not told
    #telling = false;
    #parked = new Set(); // calls that are not remembered, and wait until `entry` is met
    #left; // entries that the handler has not come by

    /** @param {any} claim */
    constructor({ steps, retried_seq: retried, seen_us: now }) {
        for (const line of steps) { // the last line of a name tells, and its place counts
            this.#byName.delete(line.name);
            this.#byName.set(line.name, Object.assign(entryOf(line.name, line.status, line.data ?? {}, line.version !== 1),
                { seq: line.seq }));
        }
        this.#entries = [...this.#byName.values()];
        if (steps.length && retried >= steps.at(-1).seq)
            this.#retry();
        this.#left = this.#entries.length;
        for (const entry of this.#entries) {
            entry.told = entry.op === 'pause' || entry.status !== 'waiting' || (entry.op === 'sleep' && entry.until <= now);
            if (entry.told)
                this.#answers.push(entry);
        }
    }

    /** An operator who has a run tried again wants the step on which it gave up tried again: the last one, or one beside
     * which nothing but what was already open came to an end. */
    #retry() {
        const after = new Set();
        for (const entry of this.#entries.toReversed()) {
            if (entry.op === 'step' && entry.status === 'failed' && [...after].every((name) => entry.open.includes(name)))
                Object.assign(entry, { status: 'waiting', attempt: 0, until: 0 });
            after.add(entry.name);
        }
    }

    find(name) {
        return this.#byName.get(name) ?? null;
    }

    /** The first that the handler has not come by; undefined: it came by all. */
    get unmet() {
        return this.#left ? this.#entries.find((entry) => !entry.met) : undefined;
    }

    /** Whether a turn of this run came by here before. */
    get replays() {
        return (this.#left > 0 || this.#next < this.#answers.length) && this.#entries.at(-1).own;
    }

    /** Whether all that can be told was. */
    get told() {
        return this.#next === this.#answers.length;
    }

    meet(entry) {
        entry.met = true;
        this.#left--;
        for (const one of this.#parked)
            if (one.entry === entry) {
                this.#parked.delete(one);
                one.go();
            }
    }

    /** Until it is this entry's turn to be told. */
    turn(entry) {
        return new Promise((resolve) => {
            entry.tell = resolve;
            this.#tellNext();
        });
    }

    #tellNext() {
        const entry = this.#answers[this.#next];
        if (this.#telling || !entry?.tell)
            return;
        this.#telling = true;
        this.#next++;
        entry.tell();
        setImmediate(() => {
            this.#telling = false;
            this.#tellNext();
            if (this.told)
                this.onTold?.();
        });
    }

    /** Until a call that is not remembered may begin; undefined: it may. */
    parking(name) {
        const entry = this.unmet;
        if (!entry || entry.open.includes(name))
            return undefined;
        return new Promise((go) => { this.#parked.add({ entry, go }); });
    }
}

/** A run in a handler's hands. */
export class Context {
    #worker;
    #claim;
    #claimed = performance.now();
    #memory;
    #over = null; // what every call throws from then on
    #rule = null; // the first rule that was broken: the run has failed, whatever the handler makes of it
    #closed = false; // the turn is over and done with
    #open = new Set(); // calls that have begun and not ended
    #forgotten = new Map(); // promises that nobody has asked, and what they are called
    #busy = 0; // calls whose work goes on or is being written
    #rested = []; // who waits until there are none
    #works = new Set(); // what the steps at work have returned
    #tail = Promise.resolve(); // the last line that is being written
    #onTold = [];
    #still; // timer
    #late; // timer, to the deadline
    #requests = 0;
    #prefix = randomBytes(6).toString('hex');
    #uses = new Map();
    #versions = new Map();
    #ends = new Map();
    #mail;
    #abort = new AbortController();
    #gone = new AbortController();

    /** @param {Worker} worker @param {any} claim */
    constructor(worker, claim) {
        this.#worker = worker;
        this.#claim = claim;
        this.#mail = [...claim.mail];
        /** @type {Run} */
        this.run = claim.run;
        /** @type {string} */
        this.runId = claim.run.id;
        /** @type {string} */
        this.workflow = claim.run.workflow;
        /** @type {string|null} */
        this.key = claim.run.key;
        /** @type {number} */
        this.attempt = claim.run.attempt;
        this.lease = claim.lease_us; // for the worker
        this.since = this.#claimed; // for the worker
        this.lost = new Promise((resolve) => { this.leave = resolve; }); // for the worker: no need to wait for the handler
        this.#memory = new Memory(claim);
        setMaxListeners(0, this.#abort.signal, this.#gone.signal);
        this.#memory.onTold = () => this.#onTold.splice(0).forEach((go) => go());
        if (claim.steps_cut)
            this.#break(new PermanentError('a run can remember 100,000 calls at most: give parts of the work to children'));
        if (claim.deadline_us)
            this.#late = setTimeout(() => this.#checkDeadline(), timerOf((claim.deadline_us - this.#now()) / 1e6));
    }

    // -- holding --

    /** The store's clock, us. */
    #now() {
        return this.#claim.seen_us + Math.round((performance.now() - this.#claimed) * 1000);
    }

    /** Aborted when the run is lost or cancelled: hand it to fetch and its like. @returns {AbortSignal} */
    get signal() {
        return this.#abort.signal;
    }

    #checkDeadline() {
        if (this.#over || !this.#claim.deadline_us || this.#now() < this.#claim.deadline_us)
            return;
        this.lose(new TurnOver('the deadline has passed', {
            path: 'fail', permanent: true, code: 'deadline_exceeded',
            message: "the run's deadline passed while it was worked on",
        }, { lost: true }));
    }

    /** Throws when the run is lost, cancelled or past its deadline. Cheap: call it in long loops. */
    check() {
        this.#checkDeadline();
        if (this.#over)
            throw this.#over;
    }

    /** The turn is over: all that is open ends with `why`. A run that is lost needs no more work, and no handler. */
    #end(why) {
        this.#over ??= why;
        clearTimeout(this.#still);
        for (const call of this.#open)
            call.reject(this.#over);
        this.#open.clear();
        this.#onTold.splice(0).forEach((go) => go());
    }

    /** For the worker: the run is not held any more. @param {TurnOver} why */
    lose(why) {
        if (this.#closed)
            return;
        if (why.lost && !this.#over?.lost)
            this.#over = why;
        this.#end(why);
        this.#abort.abort(this.#over);
        this.#gone.abort(this.#over);
        this.#rested.splice(0).forEach((go) => go());
        this.leave(null);
    }

    /** A rule was broken: that the handler catches what is thrown changes nothing. */
    #break(error) {
        if (!this.#over) {
            this.#rule = error;
            this.#end(error);
            this.leave(null);
        }
        return this.#over;
    }

    /** For the process: something that the handler set off has failed, and nobody listens. */
    stray(error) {
        if (error.cause instanceof TurnOver)
            return;
        if (this.#over || this.#closed)
            this.#worker.log(`holdfast: run ${this.runId}, after its turn: ${trace(error)}`);
        else
            this.#break(error);
    }

    /** What is refused for its content is the caller's to handle. While there is no answer it is sent again: the server knows
     * it by its id. */
    async #send(path, body) {
        const request = `${this.#prefix}-${++this.#requests}`;
        for (const pause of backoff()) {
            if (this.#gone.signal.aborted)
                throw this.#over;
            try {
                return await this.#worker.askHeld(this, path, { ...body, request }, this.#gone.signal);
            } catch (error) {
                const why = { cancelled: 'the run was cancelled', not_found: 'the run is not there any more',
                    stale: 'somebody else holds the run' }[error.code];
                if (why)
                    this.lose(new TurnOver(why, null, { lost: true, cancelled: error.code === 'cancelled' }));
                else if (!(error instanceof Unavailable || [401, 403, 507].includes(error.status)))
                    throw error;
                else if (!this.#gone.signal.aborted)
                    this.#worker.complain(`run ${this.runId}`, error);
                await pauseFor(pause, this.#gone.signal);
            }
        }
        throw this.#over;
    }

    // -- calls --

    /** Begins a call; `play` gives its answer. `above`: the method whose caller is to be named by errors. A call that waits
     * stands alone. */
    #begin(op, name, above, check, play, waits = false) {
        const late = place.getStore()?.over;
        if (late?.aborted) // a step that was left behind: what it does changes nothing
            return quiet(Promise.reject(late.reason));
        const { call: promise, resolve, reject } = Call.make(() => this.#forgotten.delete(promise));
        const site = {};
        Error.captureStackTrace(site, above);
        const call = { op, name, full: name, waits, entry: null, site, reject };
        const label = { name: op === 'tell' ? `"${name}"` : `"${name}" (${op})`, error: null };
        const fail = (error) => {
            label.error = error;
            reject(this.#at(site, error));
        };
        this.#forgotten.set(promise, label);
        try {
            this.check();
            check?.();
            this.#enter(call);
        } catch (error) {
            fail(error);
            return promise;
        }
        const end = (settle) => (value) => {
            this.#open.delete(call);
            settle(value);
            this.#rest();
        };
        play(call).then(end(resolve), end(fail));
        this.#watchStill();
        return promise;
    }

    /** An error of the context tells where in the handler the call stands. */
    #at(site, error) {
        if (homeless.delete(error) || error instanceof StepFailed || error instanceof WaitTimeout || error instanceof ChildFailed)
            error.stack = [`${error.name}: ${error.message}`, ...parts(site).frames].join('\n');
        return error;
    }

    #misuse(code, message) {
        const error = new PermanentError(message, code);
        homeless.add(error);
        return this.#break(error);
    }

    /** Names the call, and finds what is remembered of it. */
    #enter(call) {
        const { op, name } = call;
        const where = place.getStore();
        if (where?.ctx === this && where.step && op !== 'tell')
            throw this.#misuse('calls_overlap', `"${name}" (${op}) was called inside the step "${where.step}": ` +
                'a step does its work without ctx');
        for (const other of this.#open)
            if (call.waits || other.waits)
                throw this.#misuse('calls_overlap', `"${name}" (${op}) was called before "${other.full}" (${other.op}) ended; ` +
                    `"${(call.waits ? call : other).name}" waits, and stands alone: is an await missing?`);
        if (op !== 'tell')
            this.#remember(call);
        this.#open.add(call);
    }

    #remember(call) {
        const { op, name } = call;
        const used = this.#uses.get(name) ?? 0;
        call.full = used === 0 ? name : `${name}#${used + 1}`;
        this.#uses.set(name, used + 1);
        call.entry = this.#memory.find(call.full);
        if (!call.entry)
            return;
        if (call.entry.op !== op)
            throw this.#mismatch(`"${call.full}" (${op}) was called where "${call.entry.name}" (${call.entry.op}) is remembered`);
        this.#memory.meet(call.entry);
    }

    #checkName(op, name) {
        if (typeof name !== 'string' || !name || Buffer.byteLength(name) > 500 || /.#\d+$/.test(name))
            throw this.#misuse('bad_call', `the name of a call (${op}) is a text of 1 to 500 bytes with no "#" and number at ` +
                `its end, not ${typeof name === 'string' ? `"${name}"` : typeof name}`);
    }

    /** What has the wrong shape was written wrong: it fails the run. */
    #checkCall(op, name, options, known = [], seconds = []) {
        this.#checkName(op, name);
        try {
            checkOptions(`${op} "${name}"`, options, known);
            checkSeconds(`${op} "${name}"`, options, seconds);
        } catch (error) {
            throw this.#misuse('bad_call', error.message);
        }
    }

    #mismatch(message, why = undefined) {
        const error = new HistoryMismatch(message, why);
        homeless.add(error);
        return this.#break(error);
    }

    /** Waits for its turn, if it is remembered: the entry; null: it is to be done, now. */
    #recall(call) {
        const { entry } = call;
        if (entry?.told)
            return this.#stand(call, this.#memory.turn(entry)).then(() => entry);
        const parking = entry ? undefined : this.#memory.parking(call.full);
        return parking ? this.#stand(call, parking).then(() => null) : null;
    }

    /** Waits for the handler to come by what is remembered. */
    async #stand(call, until) {
        call.stands = true;
        await until;
        call.stands = false;
        if (this.#over)
            await never;
    }

    /** A handler that stands still where it should meet what is remembered has other code than it had. */
    #watchStill() {
        clearTimeout(this.#still);
        if (this.#over || this.#busy || ![...this.#open].some((call) => call.stands))
            return;
        this.#still = setTimeout(() => {
            const call = [...this.#open].find((one) => one.stands);
            const entry = this.#memory.unmet;
            if (call && entry && !this.#busy && !this.#over)
                this.#at(call.site, this.#mismatch(
                    `"${call.full}" (${call.op}) was called where "${entry.name}" (${entry.op}) is remembered`));
        }, STANDSTILL);
    }

    /** The work of a call begins, or has ended. */
    #work(more) {
        this.#busy += more;
        if (this.#busy === 0)
            this.#rested.splice(0).forEach((go) => go());
        this.#watchStill();
    }

    /** When nothing is left to do but to try steps again later, the turn is over. */
    #rest() {
        setImmediate(() => {
            const calls = [...this.#open];
            if (this.#over || calls.length === 0 || !calls.every((call) => call.later))
                return this.#watchStill();
            const until = Math.min(...calls.map((call) => call.later.until));
            const told = calls.filter((call) => call.later.data);
            const events = told.map(({ full, later }) => ({
                kind: 'step', name: 'waiting', step: full, data: this.#beside(full, later.data),
            }));
            this.#suspend(told[0]?.full, events, { waiting_kind: 'step', waiting_until_us: until });
            return undefined;
        });
    }

    // -- the end of a turn --

    /** For the worker: what the handler came to (`result` or `error`; null: nobody waits for it); answers what is to be said
     * to the server: null if nothing. */
    async conclude(outcome) {
        await idle(); // a promise that nobody awaits may be rejected just now
        if (outcome && !outcome.failed)
            this.#finish();
        this.#end(new TurnOver('the handler has ended'));
        await this.#rests();
        this.#closed = true;
        clearTimeout(this.#late);
        this.#abort.abort(this.#over);
        this.#gone.abort(this.#over);
        if (this.#rule && !this.#over.lost)
            return { error: this.#rule, failed: true };
        if (this.#over instanceof TurnOver && (this.#over.end || this.#over.lost))
            return { end: this.#over.end };
        return outcome;
    }

    /** What steps have done is written, also when the handler does not wait for it. */
    async #rests() {
        while (this.#busy && !this.#gone.signal.aborted)
            await new Promise((resolve) => { this.#rested.push(resolve); });
    }

    /** The handler has returned. */
    #finish() {
        if (this.#over)
            return;
        const open = [...this.#open].map((call) => `"${call.full}" (${call.op})`);
        const forgotten = [...this.#forgotten.values()].map(({ name, error }) =>
            (error ? `${name}, which failed: ${say(error)}` : name));
        const names = [...new Set([...open, ...forgotten])];
        const entry = this.#memory.unmet;
        if (names.length)
            this.#break(new PermanentError(`the handler ended and did not await ${names.slice(0, 10).join(', ')}` +
                `${names.length > 10 ? ', …' : ''}: is an await missing?`, 'not_awaited'));
        else if (entry)
            this.#mismatch(`the handler ended where "${entry.name}" (${entry.op}) is remembered`);
    }

    /** For the worker: what goes on although nobody waits for it. */
    get works() {
        return [...this.#works];
    }

    // -- recording --

    #line(op, { started, attempt, until, error, ...output } = {}) {
        return {
            op, ...(attempt && { attempt }), ...(started && { started, finished: this.#now() }), ...(until && { until }),
            ...(error !== undefined && { error }), ...output,
        };
    }

    /** A line names what was open beside it. */
    #beside(full, data) {
        const open = [...this.#open].filter((call) => call.full !== full && call.op !== 'tell').map((call) => call.full);
        return open.length ? { ...data, open } : data;
    }

    /** One line at a time; the handler goes on after an answer before the next. */
    async #alone(write) {
        const before = this.#tail;
        let next;
        this.#tail = new Promise((resolve) => { next = resolve; });
        await before;
        try {
            return await write();
        } finally {
            setImmediate(next);
        }
    }

    /** What is new is told after all that is remembered. */
    async #untilTold(call) {
        while (!this.#memory.told && !this.#over) {
            call.stands = true;
            this.#work(-1);
            await new Promise((resolve) => { this.#onTold.push(resolve); });
            this.#work(1);
            call.stands = false;
        }
        if (!this.#memory.told)
            throw this.#over;
    }

    /** Remembers a call, durably, together with what else is written with it. */
    async #record(call, status, data, extra) {
        this.#work(1);
        try {
            await this.#untilTold(call);
            return await this.#alone(() => {
                const line = this.#beside(call.full, data);
                if (!extra)
                    return this.#send('step', { name: call.full, status, data: line });
                return this.#send('commit', { turn: 'go_on',
                    events: [{ kind: 'step', name: status, step: call.full, data: line }], ...extra });
            });
        } finally {
            this.#work(-1);
        }
    }

    /** The run waits: what is open ends with TurnOver. */
    #suspend(current, events, wait) {
        if (this.#mail.length >= MAIL_MOST && this.#mail.length === this.#claim.mail.length && !wait.pause) {
            // It would be woken at once for what it has not seen, and see the same again.
            throw this.#break(new PermanentError(`the mailbox holds more than a function sees at once, ${MAIL_MOST} signals ` +
                'and ends of children, and none of them is what it waits for'));
        }
        const { seen_position, seen_us } = this.#claim;
        this.#end(new TurnOver('the run waits', { path: 'commit', turn: 'wait', seen_position, seen_us, ...wait,
            ...(current !== undefined && { current_step: current }), ...(events?.length && { events }) }));
        return never;
    }

    /** A call waits; `data` is its line if it has none. */
    #wait(call, data, wait) {
        const line = data && { kind: 'step', name: 'waiting', step: call.full, data };
        return this.#suspend(data ? call.full : undefined, line ? [line] : [], wait);
    }

    // -- steps --

    /** Calls `work` once and remembers what it returned (JSON); StepFailed once it has failed 1 + `retries` times, by
     * default as often as the run itself may be tried. What takes longer than `timeout` seconds has failed, and the handler
     * goes on without it; `signal` is aborted then, and when the run is lost. `key` is the same for every attempt of this
     * step of this run, and for no other: hand it to what must not happen twice. Steps may run at once.
     * @template T
     * @param {string} name
     * @param {(step: {key: string, attempt: number, signal: AbortSignal}) => T|Promise<T>} work
     * @param {{retries?: number, backoff?: number, maxBackoff?: number, timeout?: number, retryAfterLimit?: number}} [options]
     * times in seconds; `retryAfterLimit`: for how long RetryAfter may put it off (3600; 0: no limit)
     * @returns {Promise<T>} */
    step(name, work, options = {}) {
        if (typeof work?.then === 'function')
            Promise.resolve(work).catch(() => {}); // the run fails for what follows, and not for this
        return this.#begin('step', name, this.step, () => this.#checkStep(name, work, options),
            (call) => this.#step(call, work, options));
    }

    #checkStep(name, work, options) {
        this.#checkName('step', name);
        if (typeof work !== 'function') {
            const given = typeof work?.then === 'function' ? 'a Promise, of work that goes on already' :
                work === undefined ? 'nothing' : work === null ? 'null' : `a value of type ${typeof work}`;
            throw this.#misuse('bad_call', `step "${name}": what it shall do is ${given}; hand the function over: ` +
                `ctx.step(${JSON.stringify(name)}, () => …)`);
        }
        this.#checkCall('step', name, options, STEP_OPTIONS, STEP_OPTIONS.slice(1));
        const { retries } = options;
        if (retries !== undefined && (typeof retries !== 'number' || Number.isNaN(retries) || retries < 0))
            throw this.#misuse('bad_call', `step "${name}": "retries" is a number, at least 0`);
    }

    async #step(call, work, options) {
        const recalled = this.#recall(call);
        const known = recalled && await recalled; // what is done at once has the handler on its stack
        if (known?.status === 'succeeded')
            return known.output;
        if (known)
            throw new StepFailed(call.full, known.error ?? call.full, known.code, known.details);
        if (call.entry && this.#now() < call.entry.until)
            return this.#later(call, { until: call.entry.until });
        return this.#attempt(call, work, options);
    }

    /** It is tried again in a later turn, which begins once no step is at work any more. */
    #later(call, later) {
        call.later = later;
        this.#rest();
        return never;
    }

    async #attempt(call, work, options) {
        const attempt = (call.entry?.attempt ?? 0) + 1;
        const started = this.#now();
        let output;
        this.#work(1);
        try {
            output = plain(await this.#perform(call, work, attempt, options.timeout),
                `the step "${call.full}" has happened, and its result cannot be written as JSON`);
        } catch (error) {
            return this.#failed(call, options, { attempt, started, error });
        } finally {
            this.#work(-1);
        }
        return this.#succeeded(call, options, { attempt, started, output });
    }

    /** What was done is not to be done again because its output is refused. */
    async #succeeded(call, options, { attempt, started, output }) {
        try {
            await this.#record(call, 'succeeded', this.#line('step', { attempt, started, output }));
        } catch (error) {
            if (!(error instanceof HoldfastError))
                throw error;
            return this.#failed(call, options, { attempt, started, error: new PermanentError(
                `the step "${call.full}" has happened, and its result is refused: ${error.message}`, 'result_refused') });
        }
        return output;
    }

    /** Calls it, and waits no longer than its limit, nor than the run is held. */
    async #perform(call, work, attempt, timeout) {
        const limit = new AbortController();
        const step = { key: `${this.runId}/${call.full}`, attempt, signal: AbortSignal.any([this.signal, limit.signal]) };
        const late = Object.assign(new Error(`the step took longer than its limit of ${timeout}s`), { code: 'timeout' });
        if (limits(timeout) && timeout < 0)
            throw Object.assign(new Error('the step\'s time had passed before it began'), { code: 'timeout' });
        const begun = performance.now();
        const doing = start(() => place.run({ ctx: this, step: call.full, over: limit.signal }, work, step));
        this.#works.add(doing);
        doing.catch(() => {}).then(() => this.#works.delete(doing));
        const done = new AbortController(); // of what goes on beside it
        const passed = limits(timeout) ? pauseFor(timerOf(timeout), done.signal) : never;
        const gone = new Promise((resolve) => {
            this.#gone.signal.addEventListener('abort', () => resolve(), { signal: done.signal });
        });
        try {
            const first = await Promise.race([doing.then((value) => ({ value })), passed.then(() => null), gone]);
            if (this.#gone.signal.aborted)
                throw this.#over;
            if (first && !(limits(timeout) && performance.now() - begun >= timeout * 1000))
                return first.value;
            limit.abort(late);
            this.#works.delete(doing);
            if (!first)
                this.#worker.abandon(doing);
            throw late;
        } finally {
            done.abort();
        }
    }

    async #failed(call, options, { attempt, started, error }) {
        if (this.#gone.signal.aborted)
            throw this.#over;
        const { retries = this.run.max_attempts - 1, backoff: base = 1, maxBackoff = 300, retryAfterLimit = 3600 } = options;
        const failure = { error: say(error).slice(0, MESSAGE_LIMIT), code: codeOf(error), ...detailsOf(error) };
        const now = this.#now();
        const pause = error instanceof RetryAfter ? Math.max(0, error.seconds)
            : Math.min(maxBackoff, base * 2 ** (attempt - 1)) * 1.25;
        const until = now + Math.round(pause * 1e6);
        const since = call.entry?.deferred || now;
        const deferred = error instanceof RetryAfter &&
            (!limits(retryAfterLimit) || until <= since + retryAfterLimit * 1e6);
        if (deferred || (!(error instanceof PermanentError) && attempt <= retries)) {
            this.#worker.log(`holdfast: run ${this.runId}, step "${call.full}" ${deferred ? 'is put off' : 'failed'} ` +
                `in attempt ${attempt}: ${trace(error)}`);
            if (this.#over)
                throw this.#over;
            const counted = deferred ? { attempt: attempt - 1, deferred: since } : { attempt };
            return this.#later(call, { until, data: this.#line('step', { ...counted, started, until, ...failure }) });
        }
        await this.#recordFailure(call, this.#line('step', { attempt, started, ...failure }));
        const made = new StepFailed(call.full, failure.error, failure.code, failure.details);
        origins.set(made, error);
        throw made;
    }

    /** Its details may be too much. */
    async #recordFailure(call, { details, ...line }) {
        try {
            await this.#record(call, 'failed', details === undefined ? line : { ...line, details });
        } catch (error) {
            if (!(error instanceof HoldfastError) || details === undefined)
                throw error;
            await this.#record(call, 'failed', line);
        }
    }

    /** Waits until all have ended, and only then throws what the first of them that failed has thrown. Of functions, which
     * are called at once, or of promises; of an array, or of an object whose members are named alike in the result.
     * @template T @param {T} calls @returns {Promise<any>} */
    all(calls) {
        const { call: promise, resolve, reject } = Call.make(() => this.#forgotten.delete(promise));
        const { call: wrong, reject: refused } = Call.make();
        if (typeof calls !== 'object' || calls === null || typeof calls.then === 'function') {
            refused(this.#misuse('bad_call',
                'ctx.all takes an array of calls, or an object: ctx.all([ctx.step(…), ctx.step(…)])'));
            return wrong;
        }
        this.#forgotten.set(promise, { name: 'ctx.all' });
        const list = Array.isArray(calls) || !(Symbol.iterator in calls) ? calls : [...calls];
        const names = Object.keys(list);
        const begun = names.map((name) => (typeof list[name] === 'function'
            ? start(() => list[name]()) : list[name]));
        Promise.allSettled(begun).then((ends) => {
            const failed = ends.find((end) => end.status === 'rejected');
            if (failed)
                return reject(this.#over ?? failed.reason);
            const values = names.map((name, i) => [name, ends[i].value]);
            return resolve(Array.isArray(list) ? values.map(([, value]) => value) : Object.fromEntries(values));
        });
        return promise;
    }

    // -- waiting --

    /** us; 0: no limit. */
    #limit(seconds) {
        return limits(seconds) ? this.#now() + Math.round(seconds * 1e6) : 0;
    }

    /** The run waits, at no cost, for so many seconds. @param {string} name @param {number} seconds */
    sleep(name, seconds) {
        return this.#begin('sleep', name, this.sleep, () => {
            if (typeof seconds !== 'number' || !Number.isFinite(seconds))
                throw this.#misuse('bad_call', `sleep "${name}": a number of seconds is missing: ctx.sleep("${name}", 60)`);
            this.#checkName('sleep', name);
        }, (call) => this.#sleepUntil(call, (now) => now + Math.round(seconds * 1e6)), true);
    }

    /** @param {string} name @param {Date|number} at a Date, or ms since the epoch */
    sleepUntil(name, at) {
        return this.#begin('sleep', name, this.sleepUntil, () => {
            if (!Number.isFinite(Number(at)) || at === null)
                throw this.#misuse('bad_call', `sleepUntil "${name}": a Date, or ms since the epoch, is missing`);
            this.#checkName('sleep', name);
        }, (call) => this.#sleepUntil(call, () => Math.round(Number(at) * 1000)), true);
    }

    async #sleepUntil(call, when) {
        if (await this.#recall(call))
            return;
        const started = this.#now();
        const until = call.entry ? call.entry.until : when(started);
        if (call.entry && until <= started)
            return;
        const data = this.#line('sleep', { started, until });
        if (until <= started)
            await this.#record(call, 'succeeded', data);
        else
            await this.#wait(call, call.entry ? null : data, { waiting_kind: 'sleep', waiting_until_us: until });
    }

    /** Paused until a person resumes the run, or the time has passed. @param {string} name @param {number} [timeout] s */
    pause(name, timeout = undefined) {
        return this.#begin('pause', name, this.pause, () => this.#checkCall('pause', name, { timeout }, ['timeout'], ['timeout']),
            async (call) => {
                if (await this.#recall(call))
                    return;
                const until = this.#limit(timeout);
                await this.#wait(call, this.#line('pause', { started: this.#now(), until }),
                    { pause: true, waiting_until_us: until });
            }, true);
    }

    /** The payload of the next signal of this name, also of one that came before. WaitTimeout after so many seconds.
     * @param {string} name @param {{timeout?: number}} [options] @returns {Promise<any>} */
    waitSignal(name, options = {}) {
        return this.#begin('wait', name, this.waitSignal,
            () => this.#checkCall('wait', name, options, ['timeout'], ['timeout']), (call) => {
                const mail = this.#mail.find((one) => one.type === 'external' && one.name === name);
                return this.#receive(call, mail, options.timeout, 'no signal came in time', { waiting_kind: 'signal' });
            }, true);
    }

    /** Asks people, once, and waits for the answer. The task is called `title`, or as this call. WaitTimeout after `timeout`
     * seconds; the task is withdrawn then.
     * @param {string} name @param {Json} [payload] @param {{title?: string, assignee?: string, roles?: string[], form?: Json,
     * dueIn?: number, timeout?: number}} [options] times in seconds
     * @returns {Promise<{task: string, outcome: string, result: any, by: string}>} */
    ask(name, payload = null, options = {}) {
        let content;
        return this.#begin('ask', name, this.ask, () => {
            this.#checkCall('ask', name, options, ['title', 'assignee', 'roles', 'form', 'dueIn', 'timeout'],
                ['dueIn', 'timeout']);
            const { title, assignee, roles = [], form } = options;
            content = plain({ title: title ?? name, payload, form, assignee, roles }, `ask "${name}"`);
        }, (call) => {
            const { title, ...rest } = content;
            const { dueIn, timeout } = options;
            const mail = this.#mail.find((one) => one.type === 'task' && one.token === call.full);
            const due_at = typeof dueIn === 'number' ? new Date(this.#now() / 1000 + dueIn * 1000).toISOString() : undefined;
            const task = { name: title, token: call.full, ...rest, due_at };
            return this.#receive(call, mail, timeout, 'no answer came in time',
                { waiting_kind: 'task', waiting_token: call.full, ...(!call.entry && { tasks: [task] }) },
                { withdrawn_tasks: [call.full] });
        }, true);
    }

    /** What the mail says, if there is some; else the turn ends with `wait`. `tooLate` is committed with the time-out. */
    async #receive(call, mail, timeout, error, wait, tooLate) {
        const known = await this.#recall(call);
        if (known?.status === 'succeeded')
            return known.output;
        if (known)
            throw new WaitTimeout(known.error);
        const { op, entry } = call;
        const started = this.#now();
        const until = entry ? entry.until : this.#limit(timeout);
        if (mail) {
            await this.#record(call, 'succeeded', this.#line(op, { started, output: mail.payload }), { consumed: [mail.id] });
            this.#mail = this.#mail.filter((one) => one !== mail);
            return mail.payload;
        }
        if (until && until <= started) {
            await this.#record(call, 'failed', this.#line(op, { started, error }), tooLate);
            throw new WaitTimeout(error);
        }
        return this.#wait(call, entry ? null : this.#line(op, { started, until }), { waiting_until_us: until, ...wait });
    }

    // -- children --

    /** Starts a run that is cancelled with this one and whose end can be waited for; its id.
     * @param {string} name @param {string} workflow @param {Json} [input] @param {Partial<Trigger>} [options]
     * @returns {Promise<string>} */
    startChild(name, workflow, input = null, options = {}) {
        return this.#start(name, this.startChild, [{ workflow, input, ...options }], ([id]) => id);
    }

    /** Starts many: all or none; their ids in the same order.
     * @param {string} name @param {Trigger[]} runs @returns {Promise<string[]>} */
    startChildren(name, runs) {
        return this.#start(name, this.startChildren, runs, (ids) => ids);
    }

    #start(name, above, runs, answer) {
        let children;
        return this.#begin('children', name, above, () => {
            this.#checkName('children', name);
            if (!Array.isArray(runs) || runs.some((run) => typeof run?.workflow !== 'string'))
                throw this.#misuse('bad_call', `children "${name}": each is an object with a workflow: ` +
                    `ctx.startChildren("${name}", [{ workflow: "parcel.v1", input: … }])`);
            children = runs.map((run, i) => plain(late(run), `child ${i} of "${name}"`));
        }, async (call) => {
            const known = await this.#recall(call);
            if (known ?? call.entry) {
                const ids = (known ?? call.entry).output ?? [];
                if (ids.length !== runs.length)
                    throw this.#mismatch(`"${call.full}" starts ${runs.length} children where ${ids.length} are remembered`);
                return answer(ids);
            }
            const now = this.#now();
            const ids = runs.map((_, i) => newId(now + i));
            await this.#record(call, 'succeeded', this.#line('children', { output: ids }), { children, child_ids: ids });
            return answer(ids);
        });
    }

    /** The child's result. ChildFailed if it did not succeed, WaitTimeout when the time has passed first.
     * @param {string} name @param {string} run @param {{timeout?: number}} [options] @returns {Promise<any>} */
    waitChild(name, run, options = {}) {
        return this.#waitFor(name, this.waitChild, [run], options, ['timeout'], ([end]) => {
            if (!end.status)
                throw new WaitTimeout('not all children ended in time');
            if (end.status !== 'succeeded')
                throw new ChildFailed(end);
            return end.result;
        });
    }

    /** Waits until "all" have ended, "any" has, or "all_or_failure"; the ends come in the order of `runs`. Those that have no
     * status had not ended when the wait was over.
     * @param {string} name @param {string[]} runs
     * @param {{waitFor?: 'all'|'any'|'all_or_failure', timeout?: number}} [options] @returns {Promise<ChildEnd[]>} */
    waitChildren(name, runs, options = {}) {
        return this.#waitFor(name, this.waitChildren, runs, options, ['waitFor', 'timeout'], (ends) => ends);
    }

    #waitFor(name, above, runs, options, known, answer) {
        return this.#begin('children_wait', name, above, () => {
            this.#checkCall('children_wait', name, options, known, ['timeout']);
            const { waitFor = 'all' } = options;
            if (!['all', 'any', 'all_or_failure'].includes(waitFor) || !Array.isArray(runs) ||
                new Set(runs).size !== runs.length || runs.some((run) => typeof run !== 'string'))
                throw this.#misuse('bad_call', `"${name}": children are waited for once each, by their ids: all, any or ` +
                    'all_or_failure');
        }, async (call) => answer(await this.#ended(call, runs, options)), true);
    }

    async #ended(call, runs, { waitFor = 'all', timeout }) {
        const known = await this.#recall(call);
        if (known) {
            const told = known.output ?? [];
            if (told.length !== runs.length)
                throw this.#mismatch(`"${call.full}" waits for ${runs.length} children where ${told.length} are remembered`);
            return this.#keep(runs.map((run, i) => endOf(run, told[i])));
        }
        if (runs.length === 0)
            throw this.#misuse('bad_call', `"${call.full}" waits for no children: leave the call out where there are none`);
        const { entry } = call;
        const started = this.#now();
        const until = entry ? entry.until : this.#limit(timeout);
        const { ends, mine, others } = this.#look(runs);
        const ended = ends.filter((end) => end.status).length;
        const over = ended === ends.length || (waitFor === 'any' && ended > 0) ||
            (waitFor === 'all_or_failure' && ends.some((end) => end.status && end.status !== 'succeeded'));
        if (over || (until && until <= started)) {
            const output = ends.map(({ status, result, error }) => (status ? {
                status, ...(result !== null && { result }), ...(error !== null && { error }),
            } : null));
            const error = over ? undefined : 'not all children ended in time';
            await this.#record(call, over ? 'succeeded' : 'failed', this.#line('children_wait', { error, output }),
                { consumed: [...mine].map((mail) => mail.id) });
            this.#mail = this.#mail.filter((mail) => !mine.has(mail));
            return this.#keep(ends);
        }
        // Ends of other children count as mail, too: more than those must come.
        const missing = waitFor === 'any' ? 1 : ends.length - ended;
        return this.#wait(call, entry ? null : this.#line('children_wait', { started, until }), {
            waiting_kind: 'children',
            waiting_until_us: until,
            wait_children: mine.size + others.length + missing,
            wake_on_child_failure: waitFor === 'all_or_failure',
        });
    }

    /** How the children stand, the mail that tells so, and the mail of other children. */
    #look(runs) {
        const mail = new Map(this.#mail.filter((one) => one.type === 'child').map((one) => [one.id, one]));
        const mine = new Set();
        const ends = runs.map((run) => {
            const told = mail.get(`child:${run}`);
            if (this.#ends.has(run) || !told)
                return this.#ends.get(run) ?? endOf(run);
            mine.add(told);
            return endOf(run, told.payload);
        });
        return { ends, mine, others: [...mail.values()].filter((one) => !mine.has(one)) };
    }

    #keep(ends) {
        for (const end of ends)
            if (end.status)
                this.#ends.set(end.run, end);
        return ends;
    }

    // -- telling --

    /**
     * How far the run is. Seen at once; not remembered, and not told again as long as the run has remembered something that
     * lies ahead.
     * @param {number} percent @param {string} [text]
     */
    progress(percent, text) {
        return this.#tell('progress', this.progress,
            () => ({ events: [{ kind: 'domain', name: 'progress', data: plain({ percent, text }, 'progress') }] }));
    }

    /** Publishes the run's state, at once; not remembered, and told once, as progress is. @param {Json} state */
    publish(state) {
        return this.#tell('publish', this.publish,
            () => ({ events: [{ kind: 'domain', name: 'published' }], state: plain(state, 'publish') }));
    }

    #tell(name, above, make) {
        let told;
        return this.#begin('tell', name, above, () => { told = make(); }, async () => {
            if (this.#memory.replays)
                return;
            this.#work(1);
            try {
                await this.#alone(() => this.#send('commit', { turn: 'go_on', ...told }));
            } finally {
                this.#work(-1);
            }
        });
    }

    /** Puts an event into the outbox, once. @param {string} type @param {Json} [data] */
    emit(type, data = null) {
        let payload;
        return this.#begin('emit', type, this.emit, () => {
            this.#checkName('emit', type);
            payload = plain(data, `emit "${type}"`);
        }, async (call) => {
            if (!await this.#recall(call))
                await this.#record(call, 'succeeded', this.#line('emit', { started: this.#now() }),
                    { outbox: [{ type, payload }] });
        });
    }

    // -- the same every time --

    #fix(op, above, fresh, answer = (value) => value) {
        return this.#begin(op, op, above, null, async (call) => {
            const known = await this.#recall(call);
            const output = known ? known.output : fresh();
            if (!known)
                await this.#record(call, 'succeeded', this.#line(op, { output }));
            return answer(output);
        });
    }

    /** ms since the epoch, on the store's clock. @returns {Promise<number>} */
    now() {
        return this.#fix('now', this.now, () => this.#now(), (us) => us / 1000);
    }

    /** At least 0 and less than 1. @returns {Promise<number>} */
    random() {
        return this.#fix('random', this.random, () => randomBytes(8).toString('hex'),
            (text) => Number(BigInt(`0x${text}`) >> 11n) / 2 ** 53);
    }

    /** @returns {Promise<string>} */
    uuid() {
        return this.#fix('uuid', this.uuid, () => newId(this.#now()));
    }

    /** Which version of a piece of code this run goes through: `current` for runs that come here for the first time, 0 for
     * those that passed here before the change was there. The first answer holds for the whole run.
     * @param {string} change @param {number} current @returns {Promise<number>} */
    version(change, current) {
        if (!this.#over && this.#versions.has(change))
            return this.#versions.get(change);
        const call = this.#begin(this.#isNew(change) ? 'version' : 'tell', change, this.version, () => {
            this.#checkName('version', change);
            if (!Number.isInteger(current) || current < 1)
                throw this.#misuse('bad_call', `version "${change}": the current version is a whole number, at least 1`);
        }, async (one) => (one.op === 'tell' ? 0 : this.#version(one, current)));
        this.#versions.set(change, call);
        return call;
    }

    /** Else the run has passed here before the change was there: nothing is remembered of it. */
    #isNew(change) {
        const used = this.#uses.get(change) ?? 0;
        const full = used === 0 ? change : `${change}#${used + 1}`;
        const { unmet } = this.#memory;
        return this.#memory.find(full)?.op === 'version' || !unmet || unmet.open.includes(full);
    }

    async #version(call, current) {
        const known = await this.#recall(call);
        if (known && known.output > current)
            throw this.#mismatch(`version ${known.output} of "${call.full}" is remembered, and this code knows versions up ` +
                `to ${current}`, 'it is older than the run');
        if (!known)
            await this.#record(call, 'succeeded', this.#line('version', { output: current }));
        return known ? known.output : current;
    }
}

// ---- The worker ----

/** @typedef {(ctx: Context, input: any) => any} Handler */

const NAME_MOST = 200; // bytes
const SECONDS = ['retryBase', 'retryCap', 'lease', 'timeout', 'retention', 'rateInterval', 'keyRateInterval', 'fitWithin'];
const ALIASES = { attempts: 'maxAttempts', backoff: 'retryBase', maxBackoff: 'retryCap' };
const SETTINGS = [...Object.keys(ALIASES), 'maxAttempts', ...SECONDS, 'deadLetter', 'onCancel', 'children', 'maxRunning',
    'keyMaxRunning', 'rateCount', 'rateBurst', 'keyRateCount', 'keyRateBurst', 'schedule'];

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** Seconds, as the HTTP API wants them; text stays what it is. */
const duration = (value) => (typeof value === 'number' ? `${Math.round(value * 1000)}ms` : value);

/** Settings as PUT /v1/workflows/{name} has them. */
function settingsOf(workflow, settings) {
    const given = Object.fromEntries(Object.entries(settings).map(([name, value]) => [camel(name), value]));
    checkOptions(`workflow("${workflow}")`, given, SETTINGS);
    const { schedule, ...rest } = given;
    const members = {};
    for (const [name, value] of Object.entries(rest))
        if (value !== undefined)
            members[snake(ALIASES[name] ?? name)] = SECONDS.includes(ALIASES[name] ?? name) ? duration(value) : value;
    return members;
}

/** Schedules that start it, by their names, as PUT /v1/schedules/{name} has them. */
function schedulesOf(workflow, schedule) {
    const found = {};
    for (const one of schedule === undefined || schedule === null ? [] : [schedule].flat()) {
        const { name = workflow, ...rest } = typeof one === 'string' ? { cron: one } : one;
        if (found[name])
            throw new TypeError(`workflow("${workflow}"): two schedules are called "${name}": give each a name of its own`);
        found[name] = { ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [snake(key), value])), workflow };
    }
    return found;
}

/** The name of a workflow, or of a family of them. */
function checkPattern(name) {
    if (typeof name !== 'string' || !name)
        throw new TypeError('a handler needs the name of its workflow: worker.workflow("order.v1", async (ctx, input) => …)');
    if (name.startsWith('holdfast.'))
        throw new TypeError(`workflow "${name}": names that begin with "holdfast." are the engine's own`);
    const stem = name.endsWith('*') ? name.slice(0, -1).replace(/\.$/, '') : name;
    if (stem ? !/^[A-Za-z0-9][A-Za-z0-9_.:-]*$/.test(stem) || /\.\.|\.$/.test(stem) : name !== '*')
        throw new TypeError(`workflow "${name}": a name begins with a letter or a digit, and has letters, digits and ` +
            '_ . : - only, no two dots in a row and none at its end; a family ends with "*"');
    if (name.length > NAME_MOST)
        throw new TypeError(`workflow "${name.slice(0, 40)}…": a name has ${NAME_MOST} bytes at most`);
}

/** Claims runs, calls handlers, says how they ended. */
export class Worker {
    #handlers = new Map();
    #settings = {};
    #schedules = {};
    #prefixes;
    #stopping = new AbortController();
    #hangUp = new AbortController(); // on the claim that waits, when the stop's limit has passed
    #refusal = null; // why the server has never let it in
    #shutOut = false; // it was let in, and is not any more
    #quit = false; // the stop's limit has passed
    #held = new Map(); // context -> its turn's promise
    #freed = () => {}; // wakes who waits for a turn to end
    #stuck = 0; // what was given up, and has not come back
    #told = Promise.resolve(); // the last time that the server was told of it
    #watching = false;
    #beatTimer;
    #lastBeat = 0;

    /** @param {Client} client
     * @param {{name?: string, concurrency?: number, stopLimit?: number, prefixes?: string|string[],
     * log?: (message: string) => void}} [options]
     * `name` must be unique; `stopLimit` is how many seconds handlers have to finish after a stop, then their runs are given
     * back; `prefixes`: only handlers whose names begin with one of them (default: WORKER_TYPE_PREFIXES). */
    constructor(client, options = {}) {
        checkOptions('new Worker()', options, ['name', 'concurrency', 'stopLimit', 'prefixes', 'log']);
        const { name, concurrency = 4, stopLimit = 30, log = console.error } = options;
        const { prefixes = process.env.WORKER_TYPE_PREFIXES } = options;
        if (typeof client?.ask !== 'function')
            throw new TypeError('a worker needs a client: new Worker(new Client("http://127.0.0.1:8420"))');
        if (!Number.isInteger(concurrency) || concurrency < 1)
            throw new TypeError('new Worker(): "concurrency" is a whole number, at least 1');
        this.client = client;
        this.name = name ?? `${hostname()}:${process.pid}:${randomBytes(3).toString('hex')}`;
        this.concurrency = concurrency;
        this.stopLimit = stopLimit;
        this.log = log;
        this.#prefixes = (Array.isArray(prefixes) ? prefixes : String(prefixes ?? '').split(','))
            .map((prefix) => prefix.trim()).filter(Boolean);
    }

    /** Serves a workflow ("order.v1", created if new) or a family ("billing.*"). The longest match wins. `settings` are those
     * of the workflow, times in seconds: they are set when the worker joins.
     * @param {string} name @param {object|Handler} settings @param {Handler} [handler] @returns {this} */
    workflow(name, settings, handler = undefined) {
        checkPattern(name);
        if (typeof settings === 'function' && handler === undefined)
            [settings, handler] = [{}, settings];
        if (typeof handler !== 'function')
            throw new TypeError(`workflow "${name}": the handler is missing: ` +
                `worker.workflow("${name}", async (ctx, input) => …)`);
        if (this.#handlers.has(name))
            throw new TypeError(`workflow "${name}" has a handler already; each name has one`);
        const members = settingsOf(name, settings);
        const schedules = schedulesOf(name, settings.schedule);
        if (name.endsWith('*') && (Object.keys(schedules).length || Object.keys(members).length))
            throw new TypeError(`workflow "${name}": a family has no settings; give them to its workflows`);
        if (Object.keys(members).length)
            this.#settings[name] = members;
        Object.assign(this.#schedules, schedules);
        this.#handlers.set(name, handler);
        return this;
    }

    /** The names that the prefixes leave. */
    #served() {
        const names = [...this.#handlers.keys()];
        if (names.length === 0)
            throw new Error('the worker serves no workflow: worker.workflow("order.v1", async (ctx, input) => …)');
        const served = names.filter((name) => this.#prefixes.length === 0 ||
            this.#prefixes.some((prefix) => name.startsWith(prefix.replace(/\*$/, ''))));
        if (served.length === 0)
            throw new Error(`no handler fits the prefixes ${this.#prefixes.join(', ')} (option "prefixes", or ` +
                `WORKER_TYPE_PREFIXES): there are handlers for ${names.join(', ')}`);
        return served;
    }

    /** Works until stop(), or (unless `signals` is false) SIGTERM or SIGINT. Rejected with a HoldfastError when the server does
     * not let it in: its token, say, is not good for this. One that was let in, and is not any more, tries on.
     * @param {{signals?: boolean}} [options] */
    async run(options = {}) {
        checkOptions('worker.run()', options, ['signals']);
        const { signals = true } = options;
        const served = this.#served();
        guard();
        const stop = () => this.stop();
        if (signals)
            for (const name of ['SIGTERM', 'SIGINT'])
                process.on(name, stop);
        const claimer = this.#claimAll(served);
        await new Promise((resolve) => {
            this.#stopping.signal.addEventListener('abort', resolve);
            if (this.#stopping.signal.aborted)
                resolve();
        });
        await this.#drain(claimer);
        for (const name of ['SIGTERM', 'SIGINT'])
            process.off(name, stop);
        if (this.#refusal)
            throw this.#refusal;
    }

    /** No new claims; handlers at work may finish. */
    stop() {
        if (this.#stopping.signal.aborted)
            return;
        this.#stopping.abort();
        this.#freed();
    }

    /** Whether joining again is of no use; then it stops. */
    #refused({ status, code, message }) {
        if (![400, 401, 403, 404].includes(status) || code === 'disabled')
            return false;
        this.#refusal = new HoldfastError(code,
            `${this.client.url} does not let the worker in: ${message} (${status} ${code})`, status);
        this.stop();
        return true;
    }

    /** For contexts, too. A disabled tenant shuts its workers out until it is enabled again: they go on then, and say so once
     * until then. */
    complain(what, { status, code, message }) {
        if (![401, 403].includes(status)) {
            this.log(`holdfast: ${what}: ${message}`);
        } else if (!this.#shutOut) {
            this.#shutOut = true;
            this.log(`holdfast: ${what}: ${this.client.url} does not let the worker in any more, it tries on: ` +
                `${message} (${status} ${code})`);
        }
    }

    #letIn() {
        if (this.#shutOut)
            this.log(`holdfast: ${this.client.url} lets the worker in again`);
        this.#shutOut = false;
    }

    /** The claim that waits is answered by it; one that was on its way meets the next. */
    async #leave(claimer, done) {
        let claims = !this.#refusal;
        claimer.then(() => { claims = false; });
        while (claims && !done.aborted) {
            await this.client.ask('POST', '/work/leave', { worker: this.name }).catch((error) =>
                this.complain('could not leave', error));
            await Promise.race([claimer, pauseFor(200, done)]);
        }
    }

    async #drain(claimer) {
        const done = new AbortController();
        const drained = this.#leave(claimer, done.signal).then(() => Promise.all(this.#held.values()));
        await Promise.race([drained, pauseFor(timerOf(this.stopLimit), done.signal)]);
        done.abort();
        this.#quit = true;
        this.#hangUp.abort();
        clearTimeout(this.#beatTimer);
        await Promise.all([...this.#held.keys()].map(async (ctx) => {
            ctx.lose(new TurnOver('the worker stops', null, { lost: true }));
            await this.askHeld(ctx, 'commit', { turn: 'give_back' }).catch((error) =>
                this.log(`holdfast: run ${ctx.runId} was not given back: ${error.message}`));
        }));
    }

    // -- claiming --

    async #join(about) {
        const some = (object) => Object.keys(object).length > 0;
        const served = (object, workflow) => Object.fromEntries(
            Object.entries(object).filter((entry) => about.workflows.includes(workflow(entry))));
        const settings = served(this.#settings, ([name]) => name);
        const schedules = served(this.#schedules, ([, schedule]) => schedule.workflow);
        await this.client.ask('POST', '/work/join',
            { ...about, ...(some(settings) && { settings }), ...(some(schedules) && { schedules }) });
    }

    async #claimAll(workflows) {
        const about = { worker: this.name, workflows, threads: this.concurrency, host: hostname(), program: 'holdfast.mjs' };
        const stopped = this.#stopping.signal;
        let joined = false;
        let pauses = backoff();
        while (!stopped.aborted) {
            const free = this.concurrency - this.#held.size;
            if (free === 0) {
                await new Promise((resolve) => { this.#freed = resolve; });
                continue;
            }
            try {
                if (!joined)
                    await this.#join(about);
                joined = true;
                if (stopped.aborted)
                    return;
                const asked = performance.now();
                const { items } = await this.client.ask('POST', '/work/claim',
                    { ...about, limit: Math.min(100, free), wait: `${CLAIM_WAIT}s` }, CLAIM_WAIT, this.#hangUp.signal);
                this.#letIn();
                items.forEach((claim) => this.#begin(claim));
                if (items.length === 0 && performance.now() - asked < 1000) // it did not wait: it stops
                    await pauseFor(300, stopped);
                pauses = backoff();
            } catch (error) {
                if (!joined && this.#refused(error))
                    return;
                this.complain('cannot claim', error);
                await pauseFor(pauses.next().value, stopped);
            }
        }
    }

    #begin(claim) {
        const ctx = new Context(this, claim);
        this.#held.set(ctx, this.#turn(ctx, claim).catch((error) =>
            this.log(`holdfast: run ${ctx.runId}: ${trace(error)}`)).then(() => {
            this.#held.delete(ctx);
            this.#freed();
        }));
        this.#scheduleBeat();
        this.#watch();
    }

    // -- playing --

    async #turn(ctx) {
        const end = this.#stopping.signal.aborted ? GIVE_BACK : await this.#play(ctx);
        if (end)
            await this.#end(ctx, end);
    }

    #find(workflow) {
        const names = [...this.#handlers.keys()].filter((name) => name === workflow ||
            (name.endsWith('*') && workflow.startsWith(name.slice(0, -1))));
        return this.#handlers.get(names.sort((a, b) => b.length - a.length)[0]);
    }

    /** Calls the handler; what is to be said then, null: nothing. A handler whose run is lost, or has failed, is not waited
     * for: its hand is free. */
    async #play(ctx) {
        const handler = this.#find(ctx.workflow);
        if (!handler)
            return GIVE_BACK;
        const called = place.run({ ctx, step: null }, async () => plain(await handler(ctx, ctx.run.input),
            "the handler's result cannot be written as JSON"));
        const playing = called.then((result) => ({ result }), (error) => ({ error, failed: true }));
        const outcome = await Promise.race([playing, ctx.lost]);
        if (!outcome)
            this.abandon(Promise.allSettled([playing, ...ctx.works]));
        const { result, error, failed, end } = await ctx.conclude(outcome);
        if (end !== undefined)
            return end;
        return failed ? this.#failure(ctx, error) : { path: 'commit', turn: 'succeed', result };
    }

    /** Counts work that is not waited for any more, until it comes back. @param {Promise<any>} work */
    abandon(work) {
        const count = (more) => {
            this.#stuck += more;
            if (!this.#quit) // told at once: there may be no run left to be told of with it
                this.#told = this.#told.then(() => this.#beatFor([], LONGEST_BEAT));
        };
        const back = () => count(-1);
        count(1);
        work.then(back, back);
    }

    /** The server knows for how long it may wait for code that it fits, and fails it then. */
    #unfit(ctx, { message }) {
        this.log(`holdfast: run ${ctx.runId} (${ctx.workflow}) does not fit this code: ${message}`);
        return { path: 'unfit', message: clean(message).slice(0, MESSAGE_LIMIT) };
    }

    #failure(ctx, error) {
        try {
            return this.#tellFailure(ctx, error);
        } catch { // of a getter, say: the attempt ends all the same
            return { path: 'fail', code: 'failed', message: 'an error that cannot say what it is' };
        }
    }

    #tellFailure(ctx, error) {
        if (error instanceof HistoryMismatch)
            return this.#unfit(ctx, error);
        const text = trace(error);
        if (!(error instanceof RetryAfter))
            this.log(`holdfast: run ${ctx.runId} (${ctx.workflow}) failed in attempt ${ctx.attempt}: ${text}`);
        const about = { code: codeOf(error), message: say(error).slice(0, MESSAGE_LIMIT) };
        const more = { ...(error instanceof StepFailed && { step: error.step }), ...detailsOf(error) };
        const end = { path: 'fail', ...about,
            error: { attempt: ctx.attempt, ...about, ...more, trace: text.slice(0, TRACE_LIMIT) } };
        if (error instanceof PermanentError || error?.permanent)
            end.permanent = true;
        else if (error instanceof RetryAfter)
            end.retry_after = `${Math.max(1, Math.round(error.seconds * 1000))}ms`;
        return end;
    }

    /** For contexts. @param {Context} ctx @param {string} path @param {object} body @param {AbortSignal} [signal] */
    askHeld(ctx, path, body, signal = undefined) {
        return this.client.ask('POST', `/work/runs/${ctx.runId}/${path}`,
            { worker: this.name, version: ctx.run.version, ...body }, 0, signal);
    }

    /** Repeated until there is an answer: if the first was lost, the second says stale, and that is as good. */
    async #end(ctx, end) {
        let { path, ...body } = end;
        for (const pause of backoff()) {
            try {
                await this.askHeld(ctx, path, body);
                return;
            } catch (error) {
                if (['stale', 'cancelled', 'not_found'].includes(error.code))
                    return;
                this.complain(`run ${ctx.runId}`, error);
                if (error instanceof Unavailable || [401, 403, 507].includes(error.status)) {
                    if (this.#quit)
                        return;
                    await pauseFor(pause);
                } else if (path === 'commit') { // also of what is no JSON: nobody would take it
                    const code = body.turn === 'wait' ? 'wait_refused' : 'result_refused';
                    path = 'fail';
                    body = { permanent: true, code, message: error.message };
                } else if (body.error) { // said again in short: the trace may have been too much
                    body = { ...body, error: undefined, message: body.message.slice(0, 200) };
                } else if (path === 'fail' && body.code !== 'failed') { // the attempt ends, whatever can be said of it
                    body = { permanent: body.permanent, retry_after: body.retry_after, code: 'failed',
                        message: `what went wrong could not be written: ${clean(error.message).slice(0, 200)}` };
                } else {
                    return;
                }
            }
        }
    }

    // -- hearing of a cancel --

    /** One question that waits while runs are held for longer than a moment. Its answer is a hint: a heartbeat for those runs
     * tells the truth. */
    async #watch() {
        if (this.#watching)
            return;
        this.#watching = true;
        let pauses = backoff();
        while (this.#held.size > 0 && !this.#quit) {
            const held = performance.now() - Math.min(...[...this.#held.keys()].map((ctx) => ctx.since));
            if (held < WATCH_AFTER) {
                await pauseFor(WATCH_AFTER - held, this.#hangUp.signal);
                continue;
            }
            try {
                await this.#hear();
                pauses = backoff();
            } catch (error) {
                if ([400, 404, 405].includes(error.status)) // a server that does not know it; it stays so
                    return;
                await pauseFor(pauses.next().value, this.#hangUp.signal);
            }
        }
        this.#watching = false;
    }

    async #hear() {
        const asked = performance.now();
        const { items } = await this.client.ask('POST', '/work/watch', { worker: this.name, wait: `${WATCH_WAIT}s` }, WATCH_WAIT,
            this.#hangUp.signal);
        const ids = new Set(items.map((item) => item.id));
        const named = [...this.#held.keys()].filter((ctx) => ids.has(ctx.runId));
        if (named.length > 0)
            await this.#beatFor(named.slice(0, BEAT_MOST), LONGEST_BEAT);
        else if (performance.now() - asked < 1000) // it stops, or names what was let go of
            await pauseFor(WATCH_AFTER, this.#hangUp.signal);
    }

    // -- heartbeat --

    /** For all runs that are held, three times in the shortest lease. */
    #scheduleBeat() {
        clearTimeout(this.#beatTimer);
        if (this.#held.size === 0 || this.#quit)
            return;
        const pause = Math.min(LONGEST_BEAT, ...[...this.#held.keys()].map((ctx) => ctx.lease / 3000));
        this.#lastBeat = this.#held.size === 1 ? performance.now() : this.#lastBeat;
        this.#beatTimer = setTimeout(() => this.#beat(pause), Math.max(0, this.#lastBeat + pause - performance.now()));
    }

    async #beat(pause) {
        const held = [...this.#held.keys()];
        const parts = [];
        this.#lastBeat = performance.now();
        for (let i = 0; i < held.length; i += BEAT_MOST)
            parts.push(this.#beatFor(held.slice(i, i + BEAT_MOST), pause));
        await Promise.all(parts);
        this.#scheduleBeat();
    }

    /** A connection that went silent shall not cost the leases: there is time for the next beat, on another one. */
    async #beatFor(held, patience) {
        if (this.#quit)
            return;
        try {
            const runs = held.map((ctx) => ({ id: ctx.runId, version: ctx.run.version, lease_us: ctx.lease }));
            const { items } = await this.client.ask('POST', '/work/heartbeat', { worker: this.name, stuck: this.#stuck, runs }, 0,
                AbortSignal.timeout(Math.ceil(patience)));
            this.#letIn();
            items.forEach((item, i) => {
                if (item.code === 'cancelled')
                    held[i].lose(new TurnOver('the run was cancelled', null, { lost: true, cancelled: true }));
                else if (item.code !== 'ok')
                    held[i].lose(new TurnOver('somebody else holds the run', null, { lost: true }));
            });
        } catch (error) {
            this.complain('heartbeat', error);
        }
    }
}
