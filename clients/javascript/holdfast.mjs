/**
 * Holdfast for JavaScript: trigger and follow runs, and work on them, over HTTP.
 *
 * One file, Node 20 or later, no dependencies. docs/javascript.md shows it at work, docs/remote-workers.md is the protocol.
 *
 *     const client = new Client('http://127.0.0.1:8421');
 *     const worker = new Worker(client);
 *     worker.workflow('order.v1', async (ctx, input) => {
 *         const receipt = await ctx.step('charge', () => charge(input.sum));
 *         await ctx.sleep('cool down', 3600);
 *         return { receipt, approval: await ctx.waitSignal('approved') };
 *     });
 *     await worker.run();
 *
 * A handler is called again from the top after a crash, a retry or a wait; each call on `ctx` that was made before answers
 * as it did then. So what changes the world, or may differ the next time, is done in a step, and calls come in the same
 * order: one after the other, each awaited.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

import { randomBytes } from 'node:crypto';
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
const LONGEST_BEAT = 10_000; // ms between heartbeats
const TRACE_LIMIT = 8000; // characters of a stack that are kept with the run
const MAIL_MOST = 100_000; // pieces that a claim brings
const BEAT_MOST = 1000; // runs that one heartbeat may name
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

/** Throw it to fail a run (or a step) for good: tried again, it would fail again. `code` is kept with the run. */
export class PermanentError extends Error {
    /** @param {string} message @param {string} [code] */
    constructor(message, code = 'permanent') {
        super(message);
        this.name = new.target.name;
        this.code = code;
    }
}

/** The handler makes other calls than the run remembers. */
export class HistoryMismatch extends PermanentError {
    /** @param {string} message */
    constructor(message) {
        super(`${message}: the code has changed under a running run; use ctx.version, or give the new code a new name`,
            'history_mismatch');
    }
}

/** A step has failed for good. It is remembered: a handler that is called again meets it again. */
export class StepFailed extends PermanentError {
    /** @param {string} step @param {string} message */
    constructor(step, message) {
        super(message, 'step_failed');
        this.step = step;
    }
}

/** A child that was waited for did not succeed; `end` tells how it ended. Remembered, as all that waits have told. */
export class ChildFailed extends PermanentError {
    /** @param {ChildEnd} end */
    constructor(end) {
        super(`the child run ${end.run} ended as ${end.status}`, 'child_failed');
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

/** Throw it to fail this attempt and be tried again after so many seconds. */
export class RetryAfter extends Error {
    /** @param {number} seconds @param {string} [message] */
    constructor(seconds, message = 'tried again later') {
        super(message);
        this.name = 'RetryAfter';
        this.seconds = seconds;
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

/** Seconds as whole ms, for timers. */
const timerOf = (seconds) => Math.min(Math.ceil(seconds * 1000), LONGEST_TIMER);

const pauseFor = (ms, signal) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
});

/** Growing pauses between tries, in ms. */
function* backoff(first = 100, most = 10_000) {
    for (let pause = first; ; pause = Math.min(most, pause * 2))
        yield pause;
}

/** Text that every store takes. */
const clean = (text) => text.replaceAll('\0', '\\0').toWellFormed();

/** @returns {string} */
function say(error) {
    if (!(error instanceof Error))
        return clean(String(error));
    return clean(error.name === 'Error' || error instanceof PermanentError || error instanceof RetryAfter
        ? error.message || error.name : `${error.name}: ${error.message}`);
}

/** Where it was thrown, and where what caused it was. @returns {string} */
function trace(error, depth = 0) {
    const own = error instanceof Error ? String(error.stack ?? say(error)) : String(error);
    return error?.cause && depth < 10 ? `${own}\ncaused by ${trace(error.cause, depth + 1)}` : own;
}

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

/** The value as it comes back from the store; undefined is null. */
function plain(value) {
    try {
        return JSON.parse(JSON.stringify(value) ?? 'null');
    } catch (error) {
        throw new PermanentError(`this is no JSON: ${error.message}`, 'result_refused');
    }
}

// ---- Client ----

/** Speaks to a server. Options that are not named here (`key`, `tags`, …) are those of the HTTP API; times are RFC 3339,
 * durations "90s". What there is no method for can be had with ask(). */
export class Client {
    #url;
    #headers;
    #timeout;

    /** @param {string} url @param {{token?: string, tenant?: string, timeout?: number, actor?: string}} [options]
     * `timeout`: seconds for an answer, default 30; `actor`: who acts, where there are no tokens. */
    constructor(url, { token, tenant, timeout = 30, actor } = {}) {
        this.url = url;
        this.#url = `${new URL(url).href.replace(/\/$/, '')}/v1`;
        this.#timeout = timeout;
        this.#headers = { Accept: 'application/json' };
        if (token)
            this.#headers.Authorization = `Bearer ${token}`;
        if (tenant)
            this.#headers['Holdfast-Tenant'] = tenant;
        if (actor)
            this.#headers['Holdfast-Actor'] = actor;
    }

    /** One request below /v1, sent once; the answer's JSON. `wait`: how many seconds longer than usual it may take.
     * @param {string} method @param {string} path @param {Json} [body] @param {number} [wait]
     * @param {AbortSignal} [signal] hangs up @returns {Promise<any>} */
    async ask(method, path, body, wait = 0, signal = undefined) {
        const raw = body === undefined ? undefined : JSON.stringify(body); // what is no JSON is the caller's error
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
            const response = await fetch(this.#url + path, {
                method,
                headers: raw === undefined ? this.#headers : { ...this.#headers, 'Content-Type': 'application/json' },
                body: raw,
                signal: over.signal,
            });
            status = response.status;
            text = await response.text();
        } catch (error) {
            throw new Unavailable('unavailable', `${method} ${path}: ${error.cause?.message ?? error.message}`);
        } finally {
            clearTimeout(timer);
            signal?.removeEventListener('abort', hangUp);
        }
        return this.#read(status, text);
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
        return this.ask('GET', `/runs/${run}`);
    }

    /** @param {string} workflow @param {string} key @returns {Promise<Run>} */
    getByKey(workflow, key) {
        return this.ask('GET', `/workflows/${encodeURIComponent(workflow)}/runs/${encodeURIComponent(key)}`);
    }

    /** What the run remembers. @param {string} run @returns {Promise<any[]>} */
    async steps(run) {
        const steps = [];
        for await (const step of this.#pages(`/runs/${run}/steps`, {}))
            steps.push(step);
        return steps;
    }

    /** The run when it has ended. A HoldfastError `timeout` when that takes longer than `timeout` seconds. A server that is
     * away is waited for as well. @param {string} run @param {number} [timeout] @returns {Promise<Run>} */
    async wait(run, timeout = Infinity) {
        const until = performance.now() + timeout * 1000;
        let pauses = backoff();
        for (;;) {
            const patience = Math.max(0, Math.min(30_000, Math.round(until - performance.now())));
            let known;
            try {
                const found = await this.ask('GET', `/runs/${run}?wait=${patience}ms`, undefined, patience / 1000);
                if (FINISHED.includes(found.status))
                    return found;
                known = `is ${found.status}`;
                pauses = backoff();
            } catch (error) {
                if (!(error instanceof Unavailable))
                    throw error;
                known = `cannot be asked for: ${error.message}`;
                await pauseFor(Math.min(pauses.next().value, until - performance.now()));
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

    #change(run, action, reason) {
        return this.ask('POST', `/runs/${run}/${action}`, reason ? { reason } : {});
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
        return (await this.ask('POST', `/runs/${run}/fork`, { ...(step && { step }), ...options })).id;
    }

    /** Sends a signal; with an `id` it is taken once. False: it was there already.
     * @param {string} run @param {string} name @param {Json} [payload] @param {{id?: string}} [options]
     * @returns {Promise<boolean>} */
    async signal(run, name, payload = null, { id } = {}) {
        return !(await this.ask('POST', `/runs/${run}/signals`, { name, payload, ...(id && { id }) })).duplicate;
    }

    /** The run's journal: what is there, then what comes, until the run has ended.
     * @param {string} run @param {{after?: number}} [options] @returns {AsyncGenerator<{seq: number, kind: string,
     * name: string, [name: string]: any}>} */
    async *events(run, { after = 0 } = {}) {
        let pauses = backoff();
        let over = false; // the run had ended before the stream was opened
        for (;;) {
            const before = after;
            try {
                const response = await fetch(`${this.#url}/runs/${run}/events`, {
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
                over = FINISHED.includes((await this.get(run)).status);
            } catch (error) {
                if (error instanceof HoldfastError && !(error instanceof Unavailable))
                    throw error;
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
        return this.ask('POST', `/tasks/${task}/complete`, { outcome, result });
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
    attempt: data.attempt ?? 0, until: data.until ?? 0,
});

/** @returns {ChildEnd} */
const endOf = (run, end) => ({
    run, status: end?.status ?? null, result: end?.result ?? null, error: end?.error ?? null,
});

/** A run in a handler's hands. Its calls are made one after the other, each awaited. */
export class Context {
    #worker;
    #claim;
    #claimed = performance.now();
    #over = null; // what every call throws from then on
    #open = null; // the call that has begun and not ended
    #uses = new Map();
    #versions = new Map();
    #ends = new Map();
    #mail;
    #entries = []; // in the order in which they were first recorded
    #next = 0; // the entry that the next call must meet
    #abort = new AbortController();

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
        this.#recall();
    }

    #recall() {
        const found = new Map();
        for (const line of this.#claim.steps) {
            const entry = entryOf(line.name, line.status, line.data ?? {}, line.version !== 1);
            if (found.has(line.name)) {
                Object.assign(found.get(line.name), entry);
            } else {
                found.set(line.name, entry);
                this.#entries.push(entry);
            }
        }
        // An operator who has a run tried again wants the step on which it gave up tried again.
        const last = this.#entries.at(-1);
        if (last?.status === 'failed' && last.op === 'step' && this.#claim.retried_seq >= this.#claim.steps.at(-1).seq)
            Object.assign(last, { status: 'waiting', attempt: 0, until: 0 });
        if (this.#claim.steps_cut)
            this.lose(new PermanentError('a run can remember 100,000 calls at most: give parts of the work to children'));
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

    /** Throws when the run is lost, cancelled or past its deadline. Cheap: call it in long loops. */
    check() {
        if (!this.#over && this.#claim.deadline_us && this.#now() >= this.#claim.deadline_us)
            this.lose(new TurnOver('the deadline has passed', {
                path: 'fail', permanent: true, code: 'deadline_exceeded',
                message: "the run's deadline passed while it was worked on",
            }, { lost: true }));
        if (this.#over)
            throw this.#over;
    }

    /** For the worker. @param {Error} why */
    lose(why) {
        this.#over ??= why;
        this.#abort.abort(this.#over);
    }

    /** What is refused for its content is the caller's to handle; all else ends the turn. */
    async #send(path, body) {
        try {
            return await this.#worker.askHeld(this, path, body);
        } catch (error) {
            if (error.code === 'stale')
                this.lose(new TurnOver('somebody else holds the run', null, { lost: true }));
            else if (error.code === 'cancelled')
                this.lose(new TurnOver('the run was cancelled', null, { lost: true, cancelled: true }));
            else if (error instanceof Unavailable || [401, 403, 507].includes(error.status))
                // It may have been written or not: whoever claims the run next will see.
                this.lose(new TurnOver(error.message, GIVE_BACK, { lost: true }));
            else
                throw error;
        }
        throw this.#over;
    }

    // -- meeting what is remembered --

    #full(name) {
        const used = this.#uses.get(name) ?? 0;
        return used === 0 ? name : `${name}#${used + 1}`;
    }

    /** The remembered name of this use, and its entry; null: it was not called before. */
    #call(op, name) {
        this.check();
        if (!name || Buffer.byteLength(name) > 500 || /.#\d+$/.test(name))
            throw new PermanentError(`the name of a call has 1 to 500 bytes and no "#" and number at its end: "${name}"`);
        if (this.#open)
            throw new PermanentError(`"${name}" (${op}) was called before "${this.#open}" ended: calls are awaited`);
        const full = this.#full(name);
        this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1);
        const entry = this.#entries[this.#next] ?? null;
        if (entry && (entry.name !== full || entry.op !== op))
            this.#mismatch(`"${full}" (${op}) was called where "${entry.name}" (${entry.op}) is remembered`);
        this.#next += entry ? 1 : 0;
        return { full, entry };
    }

    #mismatch(message) {
        this.lose(new HistoryMismatch(message));
        throw this.#over;
    }

    /** For the worker: the handler has returned. */
    finish() {
        const entry = this.#entries[this.#next];
        if (!this.#over && this.#open)
            this.lose(new PermanentError(`the handler ended before "${this.#open}" did: calls are awaited`));
        if (!this.#over && entry)
            this.#mismatch(`the handler ended where "${entry.name}" (${entry.op}) is remembered`);
        this.check();
    }

    // -- recording --

    #line(op, { started, attempt, until, error, ...output } = {}) {
        return {
            op, ...(attempt && { attempt }), ...(started && { started, finished: this.#now() }), ...(until && { until }),
            ...(error !== undefined && { error }), ...output,
        };
    }

    /** Remembers a call, durably, together with what else is written with it. `entry`: its line before, or null. */
    async #record(name, entry, status, data, extra) {
        const outer = this.#open;
        this.#open = name;
        try {
            if (extra)
                await this.#send('commit', { turn: 'go_on', events: [{ kind: 'step', name: status, step: name, data }],
                    ...extra });
            else
                await this.#send('step', { name, status, data });
        } finally {
            this.#open = outer;
        }
        if (!entry) {
            this.#entries.push(entryOf(name, status, data));
            this.#next++;
        }
    }

    #suspend(name, data, wait) {
        if (this.#mail.length >= MAIL_MOST && this.#mail.length === this.#claim.mail.length && !wait.pause) {
            // It would be woken at once for what it has not seen, and see the same again.
            this.lose(new PermanentError(`the mailbox holds more than a function sees at once, ${MAIL_MOST} signals and ` +
                'ends of children, and none of them is what it waits for'));
            throw this.#over;
        }
        const { seen_position, seen_us } = this.#claim;
        const end = { path: 'commit', turn: 'wait', seen_position, seen_us, ...wait };
        if (data)
            Object.assign(end, {
                current_step: name, events: [{ kind: 'step', name: 'waiting', step: name, data }],
            });
        this.lose(new TurnOver('the run waits', end));
        throw this.#over;
    }

    // -- steps --

    /** What was done is not to be done again because its output is refused. */
    async #recordSuccess(full, entry, line) {
        try {
            await this.#record(full, entry, 'succeeded', line);
        } catch (error) {
            throw error instanceof HoldfastError ? new PermanentError(error.message, 'result_refused') : error;
        }
    }

    /** Calls `work` once and remembers what it returned (JSON); StepFailed once it has failed 1 + `retries` times, by
     * default as often as the run itself may be tried. What takes longer than `timeout` seconds counts as failed; `signal` is aborted then, and when the run is lost. `key` is the same
     * for every attempt of this step of this run, and for no other: hand it to what must not happen twice.
     * @template T
     * @param {string} name
     * @param {(step: {key: string, attempt: number, signal: AbortSignal}) => T|Promise<T>} work
     * @param {{retries?: number, backoff?: number, maxBackoff?: number, timeout?: number}} [options] times in seconds
     * @returns {Promise<T>} */
    async step(name, work, options = {}) {
        const { retries = this.run.max_attempts - 1, backoff: base = 1, maxBackoff = 300, timeout = Infinity } = options;
        const { full, entry } = this.#call('step', name);
        if (entry?.status === 'succeeded')
            return entry.output;
        if (entry?.status === 'failed')
            throw new StepFailed(full, entry.error ?? full);
        if (entry && this.#now() < entry.until)
            this.#suspend(null, null, { waiting_kind: 'step', waiting_until_us: entry.until });
        const attempt = (entry?.attempt ?? 0) + 1;
        const started = this.#now();
        const begun = performance.now();
        this.#open = full;
        try {
            const signals = Number.isFinite(timeout) ? [this.signal, AbortSignal.timeout(timerOf(timeout))] : [this.signal];
            const step = { key: `${this.runId}/${full}`, attempt, signal: AbortSignal.any(signals) };
            const output = plain(await work(step));
            if (performance.now() - begun >= timeout * 1000)
                throw new Error(`the step took longer than its limit of ${timeout}s`);
            await this.#recordSuccess(full, entry, this.#line('step', { attempt, started, output }));
            return output;
        } catch (error) {
            this.check();
            const message = say(error);
            if (!(error instanceof PermanentError) && attempt <= retries) {
                const pause = error instanceof RetryAfter
                    ? error.seconds : Math.min(maxBackoff, base * 2 ** (attempt - 1)) * 1.25;
                const until = this.#now() + Math.round(pause * 1e6);
                this.#worker.log(`holdfast: run ${this.runId}, step "${full}" failed in attempt ${attempt}: ${trace(error)}`);
                this.#suspend(full, this.#line('step', { attempt, started, until, error: message }),
                    { waiting_kind: 'step', waiting_until_us: until });
            }
            await this.#record(full, entry, 'failed', this.#line('step', { attempt, started, error: message }));
            throw Object.assign(new StepFailed(full, message), { cause: error });
        } finally {
            this.#open = null;
        }
    }

    // -- waiting --

    #limit(seconds) {
        return Number.isFinite(seconds) ? this.#now() + Math.max(0, Math.round(seconds * 1e6)) : 0;
    }

    /** The run waits, at no cost, for so many seconds. @param {string} name @param {number} seconds */
    async sleep(name, seconds) {
        await this.#sleepUntil(name, () => this.#limit(seconds));
    }

    /** @param {string} name @param {Date|number} at a Date, or ms since the epoch */
    async sleepUntil(name, at) {
        await this.#sleepUntil(name, () => Math.round(Number(at) * 1000));
    }

    async #sleepUntil(name, when) {
        const { full, entry } = this.#call('sleep', name);
        const started = this.#now();
        const until = entry ? entry.until : when();
        if (entry && until <= started)
            return;
        const data = this.#line('sleep', { started, until });
        if (until <= started)
            await this.#record(full, entry, 'succeeded', data);
        else
            this.#suspend(full, entry ? null : data, { waiting_kind: 'sleep', waiting_until_us: until });
    }

    /** Paused until a person resumes the run, or the time has passed. @param {string} name @param {number} [timeout] s */
    async pause(name, timeout = Infinity) {
        const { full, entry } = this.#call('pause', name);
        const until = this.#limit(timeout);
        if (!entry)
            this.#suspend(full, this.#line('pause', { started: this.#now(), until }),
                { pause: true, waiting_until_us: until });
    }

    /** The payload of the next signal of this name, also of one that came before. WaitTimeout after so many seconds.
     * @param {string} name @param {{timeout?: number}} [options] @returns {Promise<any>} */
    async waitSignal(name, { timeout = Infinity } = {}) {
        const { full, entry } = this.#call('wait', name);
        const mail = this.#mail.find((one) => one.type === 'external' && one.name === name);
        return this.#receive('wait', full, entry, mail, timeout, 'no signal came in time', { waiting_kind: 'signal' });
    }

    /** Asks people, once, and waits for the answer. The task is called `title`, or as this call. WaitTimeout after `timeout`
     * seconds; the task is withdrawn then.
     * @param {string} name @param {Json} [payload] @param {{title?: string, assignee?: string, roles?: string[], form?: Json,
     * dueIn?: number, timeout?: number}} [options] times in seconds
     * @returns {Promise<{task: string, outcome: string, result: any, by: string}>} */
    async ask(name, payload = null, { title, assignee, roles = [], form, dueIn, timeout = Infinity } = {}) {
        const content = plain({ payload, form });
        const { full, entry } = this.#call('ask', name);
        const mail = this.#mail.find((one) => one.type === 'task' && one.token === full);
        const due_at = dueIn === undefined ? undefined : new Date(this.#limit(dueIn) / 1000).toISOString();
        const task = { name: title ?? name, token: full, ...content, assignee, roles, due_at };
        return this.#receive('ask', full, entry, mail, timeout, 'no answer came in time',
            { waiting_kind: 'task', waiting_token: full, ...(!entry && { tasks: [task] }) }, { withdrawn_tasks: [full] });
    }

    /** What the mail says, if there is some; else the turn ends with `wait`. `tooLate` is committed with the time-out. */
    async #receive(op, full, entry, mail, timeout, error, wait, tooLate) {
        if (entry?.status === 'succeeded')
            return entry.output;
        if (entry?.status === 'failed')
            throw new WaitTimeout(entry.error);
        const started = this.#now();
        const until = entry ? entry.until : this.#limit(timeout);
        if (mail) {
            await this.#record(full, entry, 'succeeded', this.#line(op, { started, output: mail.payload }),
                { consumed: [mail.id] });
            this.#mail = this.#mail.filter((one) => one !== mail);
            return mail.payload;
        }
        if (until && until <= started) {
            await this.#record(full, entry, 'failed', this.#line(op, { started, error }), tooLate);
            throw new WaitTimeout(error);
        }
        return this.#suspend(full, entry ? null : this.#line(op, { started, until }), { waiting_until_us: until, ...wait });
    }

    // -- children --

    /** Starts a run that is cancelled with this one and whose end can be waited for; its id.
     * @param {string} name @param {string} workflow @param {Json} [input] @param {Partial<Trigger>} [options]
     * @returns {Promise<string>} */
    async startChild(name, workflow, input = null, options = {}) {
        return (await this.startChildren(name, [{ workflow, input, ...options }]))[0];
    }

    /** Starts many: all or none; their ids in the same order.
     * @param {string} name @param {Trigger[]} runs @returns {Promise<string[]>} */
    async startChildren(name, runs) {
        const children = plain(runs.map(late));
        const { full, entry } = this.#call('children', name);
        if (entry) {
            const known = entry.output ?? [];
            if (known.length !== runs.length)
                this.#mismatch(`"${full}" starts ${runs.length} children where ${known.length} are remembered`);
            return known;
        }
        const now = this.#now();
        const ids = runs.map((_, i) => newId(now + i));
        await this.#record(full, entry, 'succeeded', this.#line('children', { output: ids }),
            { children, child_ids: ids });
        return ids;
    }

    /** The child's result. ChildFailed if it did not succeed, WaitTimeout when the time has passed first.
     * @param {string} name @param {string} run @param {{timeout?: number}} [options] @returns {Promise<any>} */
    async waitChild(name, run, options = {}) {
        const [end] = await this.waitChildren(name, [run], options);
        if (!end.status)
            throw new WaitTimeout('not all children ended in time');
        if (end.status !== 'succeeded')
            throw new ChildFailed(end);
        return end.result;
    }

    /** Waits until "all" have ended, "any" has, or "all_or_failure"; the ends come in the order of `runs`. Those that have no
     * status had not ended when the wait was over.
     * @param {string} name @param {string[]} runs
     * @param {{waitFor?: 'all'|'any'|'all_or_failure', timeout?: number}} [options] @returns {Promise<ChildEnd[]>} */
    async waitChildren(name, runs, { waitFor = 'all', timeout = Infinity } = {}) {
        if (!['all', 'any', 'all_or_failure'].includes(waitFor) || new Set(runs).size !== runs.length)
            throw new PermanentError(`"${name}": children are waited for once each, by all, any or all_or_failure`);
        const { full, entry } = this.#call('children_wait', name);
        if (entry && entry.status !== 'waiting') {
            const told = entry.output ?? [];
            if (told.length !== runs.length)
                this.#mismatch(`"${full}" waits for ${runs.length} children where ${told.length} are remembered`);
            return this.#keep(runs.map((run, i) => endOf(run, told[i])));
        }
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
            await this.#record(full, entry, over ? 'succeeded' : 'failed', this.#line('children_wait', { error, output }),
                { consumed: [...mine].map((mail) => mail.id) });
            this.#mail = this.#mail.filter((mail) => !mine.has(mail));
            return this.#keep(ends);
        }
        // Ends of other children count as mail, too: more than those must come.
        const missing = waitFor === 'any' ? 1 : ends.length - ended;
        return this.#suspend(full, entry ? null : this.#line('children_wait', { started, until }), {
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

    /** Whether a turn of this run came by here before. */
    #replays() {
        return this.#next < this.#entries.length && this.#entries.at(-1).own;
    }

    /**
     * How far the run is. Seen at once; not remembered, and not told again as long as the run has remembered something that
     * lies ahead.
     * @param {number} percent @param {string} [text]
     */
    async progress(percent, text) {
        await this.#tell({ events: [{ kind: 'domain', name: 'progress', data: { percent, text } }] }, true);
    }

    /** Publishes the run's state, at once; not remembered. @param {Json} state */
    async publish(state) {
        await this.#tell({ events: [{ kind: 'domain', name: 'published' }], state });
    }

    async #tell(body, once = false) {
        this.check();
        const told = plain(body);
        if (!(once && this.#replays()))
            await this.#send('commit', { turn: 'go_on', ...told });
    }

    /** Puts an event into the outbox, once. @param {string} type @param {Json} [data] */
    async emit(type, data = null) {
        const payload = plain(data);
        const { full, entry } = this.#call('emit', type);
        if (!entry)
            await this.#record(full, entry, 'succeeded', this.#line('emit', { started: this.#now() }),
                { outbox: [{ type, payload }] });
    }

    // -- the same every time --

    async #fix(op, fresh) {
        const { full, entry } = this.#call(op, op);
        if (!entry)
            await this.#record(full, entry, 'succeeded', this.#line(op, { output: fresh }));
        return entry ? entry.output : fresh;
    }

    /** ms since the epoch, on the store's clock. @returns {Promise<number>} */
    async now() {
        return (await this.#fix('now', this.#now())) / 1000;
    }

    /** At least 0 and less than 1. @returns {Promise<number>} */
    async random() {
        const text = await this.#fix('random', randomBytes(8).toString('hex'));
        return Number(BigInt(`0x${text}`) >> 11n) / 2 ** 53;
    }

    /** @returns {Promise<string>} */
    uuid() {
        return this.#fix('uuid', newId(this.#now()));
    }

    /** Which version of a piece of code this run goes through: `current` for runs that come here for the first time, 0 for
     * those that passed here before the change was there. The first answer holds for the whole run.
     * @param {string} change @param {number} current @returns {Promise<number>} */
    async version(change, current) {
        this.check();
        if (!this.#versions.has(change)) {
            const next = this.#entries[this.#next];
            let version = 0;
            if (!next || (next.op === 'version' && next.name === this.#full(change))) {
                const { full, entry } = this.#call('version', change);
                if (!entry)
                    await this.#record(full, entry, 'succeeded', this.#line('version', { output: current }));
                version = entry ? entry.output : current;
            }
            this.#versions.set(change, version);
        }
        return this.#versions.get(change);
    }
}

// ---- The worker ----

/** @typedef {(ctx: Context, input: any) => any} Handler */

/** Claims runs, calls handlers, says how they ended. */
export class Worker {
    #handlers = new Map();
    #stopping = new AbortController();
    #hangUp = new AbortController(); // on the claim that waits, when the stop's limit has passed
    #refusal = null; // why the server has never let it in
    #shutOut = false; // it was let in, and is not any more
    #quit = false; // the stop's limit has passed
    #held = new Map(); // context -> its turn's promise
    #freed = () => {}; // wakes who waits for a turn to end
    #beatTimer;
    #lastBeat = 0;

    /** @param {Client} client
     * @param {{name?: string, concurrency?: number, stopLimit?: number, log?: (message: string) => void}} [options]
     * `name` must be unique; `stopLimit` is how many seconds handlers have to finish after a stop, then their runs are given
     * back. */
    constructor(client, { name, concurrency = 4, stopLimit = 30, log = console.error } = {}) {
        this.client = client;
        this.name = name ?? `${hostname()}:${process.pid}:${randomBytes(3).toString('hex')}`;
        this.concurrency = concurrency;
        this.stopLimit = stopLimit;
        this.log = log;
    }

    /** Serves a workflow ("order.v1", created if new) or a family ("billing.*"). The longest match wins.
     * @param {string} name @param {Handler} handler @returns {this} */
    workflow(name, handler) {
        this.#handlers.set(name, handler);
        return this;
    }

    /** Works until stop(), or (unless `signals` is false) SIGTERM or SIGINT. Rejected with a HoldfastError when the server does
     * not let it in: its token, say, is not good for this. One that was let in, and is not any more, tries on.
     * @param {{signals?: boolean}} [options] */
    async run({ signals = true } = {}) {
        if (this.#handlers.size === 0)
            throw new Error('the worker serves no workflow');
        const stop = () => this.stop();
        if (signals)
            for (const name of ['SIGTERM', 'SIGINT'])
                process.on(name, stop);
        const claimer = this.#claimAll();
        await new Promise((resolve) => { this.#stopping.signal.addEventListener('abort', resolve); });
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

    /** A disabled tenant shuts its workers out until it is enabled again: they go on then, and say so once until then. */
    #complain(what, { status, code, message }) {
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
                this.#complain('could not leave', error));
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

    async #claimAll() {
        const about = { worker: this.name, workflows: [...this.#handlers.keys()], threads: this.concurrency,
            host: hostname(), program: 'holdfast.mjs' };
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
                    await this.client.ask('POST', '/work/join', about);
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
                this.#complain('cannot claim', error);
                await pauseFor(pauses.next().value, stopped);
            }
        }
    }

    #begin(claim) {
        const ctx = new Context(this, claim);
        this.#held.set(ctx, this.#turn(ctx).catch((error) =>
            this.log(`holdfast: run ${ctx.runId}: ${error.stack}`)).then(() => {
            this.#held.delete(ctx);
            this.#freed();
        }));
        this.#scheduleBeat();
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

    /** Calls the handler; what is to be said then, null: nothing. */
    async #play(ctx) {
        const handler = this.#find(ctx.workflow);
        if (!handler)
            return GIVE_BACK;
        try {
            const result = plain(await handler(ctx, ctx.run.input));
            ctx.finish();
            return { path: 'commit', turn: 'succeed', result };
        } catch (error) {
            let over = error;
            try {
                ctx.check(); // what became of the turn counts more than what the handler made of it
            } catch (known) {
                over = known;
            }
            return over instanceof TurnOver ? over.end : this.#failure(ctx, over);
        }
    }

    #failure(ctx, error) {
        const text = trace(error);
        if (!(error instanceof RetryAfter))
            this.log(`holdfast: run ${ctx.runId} (${ctx.workflow}) failed in attempt ${ctx.attempt}: ${text}`);
        const about = { code: error instanceof PermanentError ? error.code : 'failed', message: say(error).slice(0, 4000) };
        const end = { path: 'fail', ...about,
            error: { attempt: ctx.attempt, ...about, trace: clean(text.slice(0, TRACE_LIMIT)) } };
        if (error instanceof PermanentError)
            end.permanent = true;
        else if (error instanceof RetryAfter)
            end.retry_after = `${Math.max(1, Math.round(error.seconds * 1000))}ms`;
        return end;
    }

    /** For contexts. @param {Context} ctx @param {string} path @param {object} body */
    askHeld(ctx, path, body) {
        return this.client.ask('POST', `/work/runs/${ctx.runId}/${path}`,
            { worker: this.name, version: ctx.run.version, ...body });
    }

    /** Repeated until there is an answer: if the first was lost, the second says stale, and that is as good. */
    async #end(ctx, end) {
        let { path, ...body } = end;
        for (const pause of backoff()) {
            try {
                await this.askHeld(ctx, path, body);
                return;
            } catch (error) {
                if (error.code === 'stale' || error.code === 'cancelled')
                    return;
                this.#complain(`run ${ctx.runId}`, error);
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
                } else {
                    return;
                }
            }
        }
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
        try {
            const runs = held.map((ctx) => ({ id: ctx.runId, version: ctx.run.version, lease_us: ctx.lease }));
            const { items } = await this.client.ask('POST', '/work/heartbeat', { worker: this.name, runs }, 0,
                AbortSignal.timeout(Math.ceil(patience)));
            this.#letIn();
            items.forEach((item, i) => {
                if (item.code === 'cancelled')
                    held[i].lose(new TurnOver('the run was cancelled', null, { lost: true, cancelled: true }));
                else if (item.code !== 'ok')
                    held[i].lose(new TurnOver('somebody else holds the run', null, { lost: true }));
            });
        } catch (error) {
            this.#complain('heartbeat', error);
        }
    }
}
