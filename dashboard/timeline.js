/* The story of a run as bars over time: its turns, and its steps and waits. */
import { h, fill, reconcile } from './dom.js';
import { icon } from './icons.js';
import { ms, duration, clockTime, exactTime } from './format.js';

const ops = {
  step: ['step', 'step'], sleep: ['schedules', 'sleep'], wait: ['signal', 'waits for a signal'], pause: ['paused', 'waits for a person'],
  children: ['child', 'starts children'], children_wait: ['child', 'waits for children'], emit: ['outbox', 'sends an event'], ask: ['tasks', 'asks people'],
  version: ['fork', 'version'], now: ['schedules', 'reads the time'],
};
const opOf = (step) => ops[step.op] ?? ['step', step.op];

const MOST_ROWS = 200;

/* A worker's clock may be behind that of the store, and a fork remembers what was before it. */
function bar(since, to, kind, range, text) {
  const span = range.to - range.from || 1;
  const from = Math.max(since, range.from);
  const box = h('div', { class: `bar ${kind}`, title: text });
  box.style.left = `min(${((from - range.from) / span) * 100}%, 100% - 3px)`;
  box.style.width = `max(3px, ${(Math.max(0, to - from) / span) * 100}%)`;
  return box;
}

function ticks(range) {
  const span = range.to - range.from;
  return [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const tick = h('span', { class: 'tick', title: exactTime(range.from + span * share) }, share === 0 ? clockTime(range.from) : `+${duration(span * share)}`);
    tick.style.left = `${share * 100}%`;
    return tick;
  });
}

const endTexts = { succeeded: 'succeeded', failed: 'failed', retried: 'failed, tried again', waiting: 'went to wait', given_back: 'given back', paused: 'paused', cancelled: 'cancelled', lost: 'its lease was lost' };
const endKinds = { succeeded: 'good', failed: 'bad', retried: 'bad', lost: 'bad', cancelled: 'off' };

function turnsRow(story, range) {
  const turns = story.attempts;
  const end = (turn) => turn.to ?? range.to;
  const queued = turns.length ? turns[0].from - range.from : range.to - range.from;
  return {
    key: 'turns', iconName: 'bolt', name: turns.length === 1 ? '1 turn' : `${turns.length} turns`, about: 'turns of workers', kind: 'tl-attempts',
    took: duration(turns.reduce((sum, turn) => sum + (end(turn) - turn.from), 0)),
    bars: [queued > 0 && bar(range.from, range.from + queued, 'queued', range, `Waited ${duration(queued)} for its first turn`), turns.map((turn, i) =>
      bar(turn.from, end(turn), `attempt ${turn.end ? endKinds[turn.end] ?? '' : 'live'}`, range,
        `Turn ${i + 1} on ${turn.worker ?? '?'}: ${turn.end ? endTexts[turn.end] : 'under way'}, ${duration(end(turn) - turn.from)}`))],
  };
}

const textOf = (error) => (typeof error === 'string' ? error : JSON.stringify(error));

function partText(step, part, took) {
  const what = part.kind === 'wait' ? (step.op === 'step' ? 'waits to be tried again' : opOf(step)[1]) : part.attempt > 1 || step.attempt > 1 ? `attempt ${part.attempt}` : opOf(step)[1];
  return `${step.name}: ${what}, ${took}${part.error ? `\n${textOf(part.error)}` : ''}`;
}

function stepRow(step, range, open) {
  const end = (part) => part.to ?? Math.max(part.from, step.op === 'sleep' ? Math.min(step.until ?? range.to, range.to) : range.to);
  const parts = step.parts;
  const from = parts[0].from, to = end(parts.at(-1));
  const bad = step.status === 'failed';
  return {
    key: `step ${step.name}`, iconName: opOf(step)[0], name: step.name, seq: step.seq, times: step.attempt > 1 ? step.attempt : 0, kind: bad ? 'is-bad' : '',
    about: `${opOf(step)[1]}, ${step.status}${step.attempt > 1 ? `, attempt ${step.attempt}` : ''}`,
    took: parts.length === 1 && parts[0].known === false ? '' : duration(to - from),
    bars: parts.map((part) => bar(part.from, end(part), `${part.to === null && open ? 'live ' : ''}${bad && part.kind === 'good' ? 'bad' : part.kind}`, range, partText(step, part, duration(end(part) - part.from)))),
  };
}

function make(row, onPick) {
  const label = row.seq ? h('button', { type: 'button', class: 'tl-label', onclick: (event) => onPick(Number(event.currentTarget.dataset.seq)) }) : h('span', { class: 'tl-label' });
  const element = h('div', { role: 'listitem' }, h('div', { class: 'tl-name' }, icon(row.iconName), label, h('span', { class: 'tl-times' })), h('div', { class: 'tl-track', 'aria-hidden': 'true' }), h('div', { class: 'tl-took' }));
  update(element, row);
  return element;
}

/* What can be focused stays, for a live run is drawn anew every second. */
function update(element, row) {
  const [name, track, took] = element.children;
  const label = name.children[1];
  element.className = `tl-row ${row.kind}`;
  name.title = `${row.name} – ${row.about}`;
  if (label.textContent !== row.name) label.textContent = row.name;
  if (row.seq) label.dataset.seq = row.seq;
  name.children[2].textContent = row.times ? `×${row.times}` : '';
  fill(track, row.bars);
  fill(took, h('span', { class: 'offscreen' }, `${row.about} took `), row.took);
}

function frame() {
  return h('div', { class: 'tl-scroll', tabindex: '0', role: 'group', 'aria-label': 'Timeline of the run' },
    h('div', { class: 'tl-row tl-axis', 'aria-hidden': 'true' }, h('div', { class: 'tl-name' }), h('div', { class: 'tl-track' }), h('div', { class: 'tl-took' })),
    h('div', { class: 'timeline', role: 'list', 'aria-label': 'Turns, steps and waits' }));
}

/* Draws the story into `box`; `open`: the run goes on, so that what has no end reaches until now. onPick(seq): the line
 * of the journal that tells how a step ended was asked for. */
export function drawTimeline(box, story, { open, created, onPick }) {
  const range = { from: ms(created), to: open ? Math.max(Date.now(), story.to) : story.to };
  const steps = [...story.steps.values()];
  if (!box.querySelector('.tl-scroll')) fill(box, frame(), h('p', { class: 'muted small pad', hidden: true }));
  const [scroll, note] = box.children;
  const [axis, list] = scroll.children;
  fill(axis.children[1], ticks(range));
  reconcile(list, [turnsRow(story, range), ...steps.slice(0, MOST_ROWS).map((step) => stepRow(step, range, open))], (row) => row.key, (row) => make(row, onPick), update);
  note.hidden = steps.length <= MOST_ROWS;
  note.textContent = `The first ${MOST_ROWS} of ${steps.length} steps are shown.`;
}
