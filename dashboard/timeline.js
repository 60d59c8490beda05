/* What a run did, as bars over time: its attempts, and its steps and waits. Made from the journal's lines. */
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { ms, duration, clockTime, exactTime } from './format.js';

const endings = new Set(['succeeded', 'failed', 'retried', 'waiting', 'given_back', 'paused', 'cancelled', 'started']);
const ops = {
  step: ['step', 'step'], sleep: ['schedules', 'sleep'], wait: ['signal', 'waits for a signal'], pause: ['paused', 'waits for a person'],
  children: ['child', 'starts children'], children_wait: ['child', 'waits for children'], emit: ['outbox', 'sends an event'],
  version: ['fork', 'version'], now: ['schedules', 'reads the time'],
};
const opOf = (step) => ops[step.op] ?? ['step', step.op];

/* Takes in events one by one, so that a live run grows. */
export class Story {
  constructor() {
    this.attempts = [];       /* { number, from, to, end } */
    this.steps = new Map();   /* name -> { name, op, status, from, to, until, attempt, error, seq } */
    this.progress = null;     /* { percent, text } */
    this.from = Infinity;
    this.to = -Infinity;
    this.count = 0;
  }

  add(event) {
    const at = ms(event.at);
    this.from = Math.min(this.from, at);
    this.to = Math.max(this.to, at);
    this.count++;
    if (event.kind === 'lifecycle') this.addLifecycle(event, at);
    else if (event.kind === 'step') this.addStep(event, at);
    else if (event.kind === 'domain' && event.name === 'progress') this.progress = { percent: event.data?.percent, text: event.data?.text };
  }

  addLifecycle(event, at) {
    const last = this.attempts.at(-1);
    if (last && last.to === null && endings.has(event.name)) {
      last.to = at;
      last.end = event.name === 'started' ? 'lost' : event.name;
    }
    if (event.name === 'started') this.attempts.push({ from: at, to: null, end: null, worker: event.actor });
  }

  addStep(event, at) {
    const data = event.data ?? {};
    const name = event.step ?? event.name;
    const old = this.steps.get(name);
    const step = old ?? { name, from: at, seq: event.seq };
    step.op = data.op ?? step.op ?? 'step';
    step.status = event.name;
    step.attempt = data.attempt ?? step.attempt;
    step.error = data.error ?? null;
    step.until = data.until ? ms(data.until) : step.until;
    if (event.name === 'waiting') {
      if (!old) step.from = at;
      step.to = null;
    } else {
      if (data.started && !(old?.waited)) step.from = Math.min(ms(data.started), step.from);
      step.to = data.finished ? Math.max(ms(data.finished), step.from) : at;
    }
    step.waited = step.waited || event.name === 'waiting';
    this.from = Math.min(this.from, step.from);
    this.to = Math.max(this.to, step.to ?? at);
    if (!old) this.steps.set(name, step);
  }
}

const MOST_ROWS = 200;

function bar(from, to, kind, range, text) {
  const span = range.to - range.from || 1;
  const box = h('div', { class: `bar ${kind}`, title: text });
  box.style.left = `${((from - range.from) / span) * 100}%`;
  box.style.width = `max(3px, ${((to - from) / span) * 100}%)`;
  return box;
}

function row(iconName, name, about, took, bars, kind) {
  return h('div', { class: `tl-row ${kind ?? ''}`, role: 'listitem' },
    h('div', { class: 'tl-name', title: about ? `${name} – ${about}` : name }, icon(iconName), h('span', { class: 'tl-label' }, name)),
    h('div', { class: 'tl-track', 'aria-hidden': 'true' }, bars),
    h('div', { class: 'tl-took' }, h('span', { class: 'offscreen' }, `${about ?? ''} took `), took));
}

function ticks(range) {
  const span = range.to - range.from;
  return h('div', { class: 'tl-row tl-axis', 'aria-hidden': 'true' }, h('div', { class: 'tl-name' }),
    h('div', { class: 'tl-track' }, [0, 0.25, 0.5, 0.75, 1].map((share) => {
      const tick = h('span', { class: 'tick', title: exactTime(range.from + span * share) }, share === 0 ? clockTime(range.from) : `+${duration(span * share)}`);
      tick.style.left = `${share * 100}%`;
      return tick;
    })), h('div', { class: 'tl-took' }));
}

const endTexts = { succeeded: 'succeeded', failed: 'failed', retried: 'failed, tried again', waiting: 'went to wait', given_back: 'given back', paused: 'paused', cancelled: 'cancelled', lost: 'its lease was lost' };
const endKinds = { succeeded: 'good', failed: 'bad', retried: 'bad', lost: 'bad', cancelled: 'off' };

/* Draws the story into `box`; `open`: the run goes on, so that what has no end reaches until now. */
export function drawTimeline(box, story, { open, created }) {
  const now = Date.now();
  const range = { from: Math.min(story.from, ms(created) || Infinity), to: open ? Math.max(now, story.to) : story.to };
  const steps = [...story.steps.values()];
  const attempts = story.attempts.map((attempt, i) => {
    const to = attempt.to ?? (open ? now : story.to);
    return bar(attempt.from, to, `attempt ${attempt.end ? endKinds[attempt.end] ?? '' : 'live'}`, range,
      `Turn ${i + 1} on ${attempt.worker ?? '?'}: ${attempt.end ? endTexts[attempt.end] : 'under way'}, ${duration(to - attempt.from)}`);
  });
  const worked = story.attempts.reduce((sum, attempt) => sum + ((attempt.to ?? (open ? now : story.to)) - attempt.from), 0);
  const queued = story.attempts.length ? story.attempts[0].from - range.from : range.to - range.from;
  const rows = [ticks(range)];
  rows.push(row('bolt', story.attempts.length === 1 ? '1 turn' : `${story.attempts.length} turns`, 'turns of workers', duration(worked),
    [bar(range.from, range.from + queued, 'queued', range, `Waited ${duration(queued)} for its first turn`), attempts], 'tl-attempts'));
  for (const step of steps.slice(0, MOST_ROWS)) {
    const to = step.to ?? (open ? now : story.to);
    const kind = step.status === 'failed' ? 'bad' : step.to === null ? 'live wait' : step.waited ? 'wait' : 'good';
    const about = `${opOf(step)[1]}, ${step.status}${step.attempt > 1 ? `, attempt ${step.attempt}` : ''}`;
    rows.push(row(opOf(step)[0], step.name, about, duration(to - step.from),
      bar(step.from, to, kind, range, `${step.name}: ${about}, ${duration(to - step.from)}${step.error ? `\n${typeof step.error === 'string' ? step.error : JSON.stringify(step.error)}` : ''}`), step.status === 'failed' ? 'is-bad' : ''));
  }
  const scrolled = box.querySelector('.tl-scroll')?.scrollTop ?? 0;
  const scroll = h('div', { class: 'tl-scroll', tabindex: '0', role: 'group', 'aria-label': 'Timeline of the run' },
    rows.shift(), h('div', { class: 'timeline', role: 'list', 'aria-label': 'Turns, steps and waits' }, rows));
  fill(box, scroll,
    steps.length > MOST_ROWS && h('p', { class: 'muted small pad' }, `The first ${MOST_ROWS} of ${steps.length} steps are shown.`));
  scroll.scrollTop = scrolled;
}
