/**
 * The types of holdfast.mjs, for TypeScript. Keep both files side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A run as the HTTP API shows it. */
export interface Run {
    id: string;
    workflow: string;
    key: string | null;
    status: 'pending' | 'leased' | 'waiting' | 'paused' | 'succeeded' | 'failed' | 'cancelled';
    attempt: number;
    max_attempts: number;
    input: any;
    state: any;
    result: any;
    error: any;
    error_code: string | null;
    last_error: string | null;
    [name: string]: any;
}

/** Options of a trigger beside the workflow and its input: those of the HTTP API. */
export interface TriggerOptions {
    /** Given once: the same key names the same run. */
    key?: string;
    tags?: string[];
    /** Not before so many seconds have passed. */
    delay?: number;
    [name: string]: any;
}

export interface Trigger extends TriggerOptions {
    workflow: string;
    input?: unknown;
}

export interface Task {
    id: string;
    name: string;
    status: string;
    version: number;
    payload: any;
    outcome: string | null;
    [name: string]: any;
}

/** A line of a run's journal. */
export interface JournalEvent {
    seq: number;
    kind: string;
    name: string;
    [name: string]: any;
}

/** How a child ended; `status` is null while it has not. */
export interface ChildEnd<Result = any> {
    run: string;
    status: 'succeeded' | 'failed' | 'cancelled' | 'deleted' | null;
    result: Result;
    error: any;
}

/** A person's answer. */
export interface Answer<Result = any> {
    task: string;
    outcome: string;
    result: Result;
    by: string;
}

/** The server refused a request. `code` is stable and made for programs. */
export class HoldfastError extends Error {
    constructor(code: string, message: string, status?: number);
    readonly code: string;
    /** Of HTTP; 0: there was no answer. */
    readonly status: number;
}

/** There was no answer, or none that says what became of the request. */
export class Unavailable extends HoldfastError {}

/** Throw it to fail a run (or a step) for good. `code` and `details` (JSON) are kept. */
export class PermanentError extends Error {
    constructor(message: string, code?: string, details?: unknown);
    readonly code: string;
    readonly details: any;
}

/** The handler makes other calls than the run remembers. The run waits for a worker whose code it fits. */
export class HistoryMismatch extends PermanentError {
    constructor(message: string, why?: string);
}

/** A step has failed for good, with a code and a message of its own; the same in every replay. */
export class StepFailed extends PermanentError {
    constructor(step: string, message: string, code?: string, details?: unknown);
    readonly step: string;
}

/** A child that was waited for did not succeed. */
export class ChildFailed extends PermanentError {
    constructor(end: ChildEnd);
    readonly end: ChildEnd;
}

/** The time of a wait has passed. */
export class WaitTimeout extends PermanentError {
    constructor(message?: string);
}

/** Throw it to be tried again after so many seconds. In a step it uses up no `retries`. */
export class RetryAfter extends Error {
    constructor(seconds: number, message?: string, code?: string, details?: unknown);
    readonly seconds: number;
    readonly code: string;
    readonly details: any;
}

/** Unwinds a handler whose turn is over. Let it pass. */
export class TurnOver extends Error {
    constructor(message: string, end?: object | null, why?: { lost?: boolean; cancelled?: boolean });
    readonly end: object | null;
    readonly lost: boolean;
    readonly cancelled: boolean;
}

export interface ClientOptions {
    token?: string;
    tenant?: string;
    /** Seconds for an answer; default 30, 0: no limit. */
    timeout?: number;
    /** Who acts, where there are no tokens. */
    actor?: string;
}

/** Speaks to a server, or to several of one store. A run is named by its id or as "workflow/key". */
export class Client {
    /** Several addresses in an array, or with commas between. */
    constructor(url: string | readonly string[], options?: ClientOptions);
    /** The address that is asked. */
    readonly url: string;
    /** One request below /v1; the answer's JSON. `wait`: how many seconds longer than usual it may take. */
    ask(method: string, path: string, body?: unknown, wait?: number, signal?: AbortSignal): Promise<any>;
    /** Starts a run; its id. With a `key` it is safe to repeat. */
    trigger(workflow: string, input?: unknown, options?: TriggerOptions): Promise<string>;
    triggerMany(runs: readonly Trigger[]): Promise<{ id?: string; code?: string; message?: string; [name: string]: any }[]>;
    get(run: string): Promise<Run>;
    getByKey(workflow: string, key: string): Promise<Run>;
    /** What the run remembers. */
    steps(run: string): Promise<any[]>;
    /** The run when it has ended. HoldfastError `timeout` after so many seconds; 0: no limit. */
    wait(run: string, timeout?: number): Promise<Run>;
    list(filters?: { [name: string]: any }): AsyncGenerator<Run, void, undefined>;
    cancel(run: string, reason?: string): Promise<Run>;
    pause(run: string, reason?: string): Promise<Run>;
    resume(run: string, reason?: string): Promise<Run>;
    retry(run: string, reason?: string): Promise<Run>;
    delete(run: string, reason?: string): Promise<Run>;
    restore(run: string, reason?: string): Promise<Run>;
    /** A new run that keeps the steps before `step`; its id. */
    fork(run: string, step?: string, options?: { input?: unknown; key?: string; reason?: string }): Promise<string>;
    /** False: a signal with this id was there already. */
    signal(run: string, name: string, payload?: unknown, options?: { id?: string }): Promise<boolean>;
    /** The journal: what is there, then what comes, until the run has ended. */
    events(run: string, options?: { after?: number }): AsyncGenerator<JournalEvent, void, undefined>;
    tasks(filters?: { [name: string]: any }): AsyncGenerator<Task, void, undefined>;
    completeTask(task: string, outcome: string, result?: unknown): Promise<Task>;
}

/** What a step's function is given. */
export interface Step {
    /** The same for every attempt of this step of this run, and for no other. */
    readonly key: string;
    readonly attempt: number;
    /** Aborted when the step's time has passed, or the run is lost. */
    readonly signal: AbortSignal;
}

/** Times in seconds. */
export interface StepOptions {
    /** Attempts after the first; default: as often as the run may be tried. */
    retries?: number;
    /** Before the second attempt; then twice as long each time. Default 1. */
    backoff?: number;
    /** Default 300. */
    maxBackoff?: number;
    /** 0: no limit. */
    timeout?: number;
    /** For how long RetryAfter may put it off; default 3600, 0: no limit. */
    retryAfterLimit?: number;
}

export interface AskOptions {
    /** What the task is called; default: as the call. */
    title?: string;
    assignee?: string;
    roles?: readonly string[];
    form?: unknown;
    dueIn?: number;
    timeout?: number;
}

/** What ctx.all gives for what it is given. */
export type Given<T> = T extends () => infer R ? Awaited<R> : Awaited<T>;

/** A run in a handler's hands. Every call is awaited; steps may run at once, waits stand alone. */
export class Context {
    private constructor();
    readonly run: Run;
    readonly runId: string;
    readonly workflow: string;
    readonly key: string | null;
    readonly attempt: number;
    /** Aborted when the run is lost or cancelled. */
    readonly signal: AbortSignal;
    /** Throws when the run is lost, cancelled or past its deadline. */
    check(): void;
    /** Calls `work` once and remembers what it returned. */
    step<T>(name: string, work: (step: Step) => T | PromiseLike<T>, options?: StepOptions): Promise<T>;
    /** Waits until all have ended, then throws what the first that failed has thrown. */
    all<T extends readonly unknown[] | []>(calls: T): Promise<{ -readonly [P in keyof T]: Given<T[P]> }>;
    all<T extends { [name: string]: unknown }>(calls: T): Promise<{ [P in keyof T]: Given<T[P]> }>;
    sleep(name: string, seconds: number): Promise<void>;
    sleepUntil(name: string, at: Date | number): Promise<void>;
    pause(name: string, timeout?: number): Promise<void>;
    waitSignal<Payload = any>(name: string, options?: { timeout?: number }): Promise<Payload>;
    ask<Result = any>(name: string, payload?: unknown, options?: AskOptions): Promise<Answer<Result>>;
    startChild(name: string, workflow: string, input?: unknown, options?: TriggerOptions): Promise<string>;
    startChildren(name: string, runs: readonly Trigger[]): Promise<string[]>;
    waitChild<Result = any>(name: string, run: string, options?: { timeout?: number }): Promise<Result>;
    waitChildren<Result = any>(name: string, runs: readonly string[],
        options?: { waitFor?: 'all' | 'any' | 'all_or_failure'; timeout?: number }): Promise<ChildEnd<Result>[]>;
    progress(percent: number, text?: string): Promise<void>;
    publish(state: unknown): Promise<void>;
    emit(type: string, data?: unknown): Promise<void>;
    /** ms since the epoch, on the store's clock. */
    now(): Promise<number>;
    random(): Promise<number>;
    uuid(): Promise<string>;
    version(change: string, current: number): Promise<number>;
}

export type Handler<Input = any, Result = any> = (ctx: Context, input: Input) => Result | PromiseLike<Result>;

/** A schedule that starts the workflow. */
export interface Schedule {
    /** Default: the workflow's. */
    name?: string;
    cron: string;
    timezone?: string;
    input?: unknown;
    overlap?: 'skip' | 'allow' | 'queue' | 'cancel';
    catchUp?: 'one' | 'none' | 'all';
    [name: string]: any;
}

/** Settings of a workflow, set when the worker joins. Times in seconds, or as text ("90d"). */
export interface Settings {
    attempts?: number;
    backoff?: number | string;
    maxBackoff?: number | string;
    lease?: number | string;
    timeout?: number | string;
    retention?: number | string;
    deadLetter?: string;
    onCancel?: string;
    children?: 'cancel' | 'leave' | 'fail';
    fitWithin?: number | string;
    maxRunning?: number;
    keyMaxRunning?: number;
    rateCount?: number;
    rateInterval?: number | string;
    rateBurst?: number;
    keyRateCount?: number;
    keyRateInterval?: number | string;
    keyRateBurst?: number;
    schedule?: string | Schedule | (string | Schedule)[];
}

export interface WorkerOptions {
    /** Unique among the workers that live. */
    name?: string;
    /** Runs that are worked on at once; default 4. */
    concurrency?: number;
    /** Seconds that handlers have to finish after a stop; default 30. */
    stopLimit?: number;
    /** Only handlers whose names begin with one of them; default: WORKER_TYPE_PREFIXES. */
    prefixes?: string | readonly string[];
    log?: (message: string) => void;
}

/** Claims runs, calls handlers, says how they ended. */
export class Worker {
    constructor(client: Client, options?: WorkerOptions);
    readonly client: Client;
    readonly name: string;
    readonly concurrency: number;
    workflow<Input = any, Result = any>(name: string, handler: Handler<Input, Result>): this;
    workflow<Input = any, Result = any>(name: string, settings: Settings, handler: Handler<Input, Result>): this;
    /** Works until stop(), or SIGTERM or SIGINT. */
    run(options?: { signals?: boolean }): Promise<void>;
    /** No new claims; handlers at work may finish. */
    stop(): void;
}
