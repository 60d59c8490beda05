/* What a run did, made from the lines of its journal: the turns that workers had, and each step and wait in its parts. */
import { ms } from './format.js';

const endings = new Set(['succeeded', 'failed', 'retried', 'waiting', 'given_back', 'paused', 'cancelled', 'started']);

const SKEW = 1000; /* ms that the clocks of a worker and of the store may differ */

/* Takes in events one by one, so that a live run grows. */
export class Story {
  constructor() {
    this.attempts = [];       /* { from, to, end, worker } */
    this.steps = new Map();   /* name -> { name, op, status, attempt, error, seq, parts } */
    this.progress = null;     /* { percent, text } */
    this.to = -Infinity;
    this.count = 0;
    this.waits = new Set();   /* the sleeps and pauses that go on */
  }

  add(event) {
    const at = ms(event.at);
    this.reach(at);
    this.count++;
    if (event.kind === 'lifecycle') this.addLifecycle(event, at);
    else if (event.kind === 'step') this.addStep(event, at);
    else this.hear(event);
  }

  /* What a line tells that is no part of the timeline. */
  hear(event) {
    if (event.kind === 'domain' && event.name === 'progress') this.progress = { percent: event.data?.percent, text: event.data?.text };
  }

  reach(at) {
    this.to = Math.max(this.to, at);
  }

  addLifecycle(event, at) {
    const last = this.attempts.at(-1);
    if (last && last.to === null && endings.has(event.name)) {
      last.to = at;
      last.end = event.name === 'started' ? 'lost' : event.name;
    }
    if (event.name === 'started') this.attempts.push({ from: at, to: null, end: null, worker: event.actor });
    if (event.name === 'started') this.endWaits((step) => step.op === 'sleep' && step.until <= at + SKEW, at);
    if (event.name === 'resumed') this.endWaits((step) => step.op === 'pause', at);
  }

  /* The end of a sleep or a pause is not written down: what comes after tells it. */
  endWaits(which, at) {
    for (const step of [...this.waits].filter(which)) {
      this.endPart(step.parts.at(-1), Math.min(step.until ?? at, at));
      step.status = 'over';
      this.waits.delete(step);
    }
  }

  endPart(part, at) {
    if (part?.to === null) part.to = Math.max(at, part.from);
  }

  addStep(event, at) {
    const data = event.data ?? {};
    const name = event.step ?? event.name;
    const step = this.steps.get(name) ?? { name, parts: [] };
    step.op = data.op ?? step.op ?? 'step';
    step.status = event.name;
    step.attempt = data.attempt ?? step.attempt;
    step.error = data.error ?? null;
    step.until = data.until ? ms(data.until) : null;
    step.seq = event.seq;
    this.addParts(step, data, at);
    if (event.name === 'waiting' && (step.op === 'sleep' || step.op === 'pause')) this.waits.add(step);
    else this.waits.delete(step);
    this.steps.set(name, step);
  }

  /* Each attempt of a step is a part, and so is each wait: for another attempt, a signal, a time, children. */
  addParts(step, data, at) {
    const waiting = step.status === 'waiting';
    const works = step.op === 'step';
    const last = step.parts.at(-1);
    const from = data.started ? ms(data.started) : last?.to === null ? last.from : at;
    const to = Math.max(data.finished ? ms(data.finished) : at, from);
    if (works || !waiting) this.endPart(last, works ? from : Math.max(to, at));
    if (works) step.parts.push({ kind: waiting || step.status === 'failed' ? 'bad' : 'good', from, to, attempt: step.attempt, error: step.error });
    else if (!last && !waiting) step.parts.push({ kind: step.status === 'failed' ? 'bad' : 'good', from, to, known: Boolean(data.started) });
    if (waiting && last?.to !== null) step.parts.push({ kind: 'wait', from: works ? to : from, to: null });
    this.reach(to);
  }
}
