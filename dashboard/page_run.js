/* One run: what it is, what it did, what it carries, what can be done with it. Live. */
import { h, fill, refill } from './dom.js';
import { icon } from './icons.js';
import { ask, get, follow, isAbort, query } from './api.js';
import { pageHead, card, badge, button, menu, loading, idText, runLink, workflowLink, isFinished, statuses, meter, problemBox, skeleton, tag, notThere } from './ui.js';
import { ms, when, whenExactly, number, exactTime, clockTime, otherDay, plural, bytes, shortId } from './format.js';
import { members, rawItems, jsonView, copyButton, pretty } from './json.js';
import { Story } from './story.js';
import { drawTimeline } from './timeline.js';
import { changes, changeRun, signalRun, forkRun } from './actions.js';
import { tookOf, waitsFor, waitsForWorker, BRIEF } from './runlist.js';
import { moreButton } from './pager.js';

const EVENTS = 200;          /* lines of the journal at a time */
const MOST_FOR_STORY = 2000; /* lines that the timeline is made from */
const MOST_OF_A_LINE = 44;   /* characters of data that fit beside an event */
const CHILDREN = 50;
const PAUSE = 1000;          /* ms before a stream that ended is opened again */

/* ---- Facts ---- */

function fact(name, value) {
  return value === null || value === undefined || value === '' ? null : h('div', { class: 'fact' }, h('dt', null, name), h('dd', null, value));
}

function facts(run) {
  const next = run.status === 'leased' ? null : run.run_at;
  return h('dl', { class: 'facts' },
    fact('Id', idText(run.id)),
    fact('Workflow', workflowLink(run.workflow)),
    fact('Key', run.key && h('span', { class: 'id' }, h('span', { class: 'break' }, run.key), copyButton(run.key, 'Copy key'))),
    fact('Created', whenExactly(run.created_at, run.actor && h('span', { class: 'muted' }, ` by ${run.actor}`))),
    fact('Started', run.started_at && whenExactly(run.started_at)),
    fact('Finished', run.finished_at && whenExactly(run.finished_at)),
    fact('Took', run.started_at && tookOf(run)),
    fact('Attempt', run.attempt > 0 ? `${run.attempt} of ${run.max_attempts}` : null),
    fact('Worker', run.leased_by ?? run.last_worker),
    fact('Lease ends', run.lease_until && when(run.lease_until)),
    fact('Next attention', next && when(next)),
    fact('Waits for', run.status === 'waiting' ? [waitsFor(run), run.wait_count > 0 ? ` (${run.wait_count} left)` : '', run.waiting_until && [', until ', when(run.waiting_until)]] : null),
    fact('Current step', run.current_step),
    fact('Deadline', run.timeout_at && when(run.timeout_at)),
    fact('Priority', run.priority || null),
    fact('Subject', run.subject),
    fact('Reference', run.reference),
    fact('Tags', run.tags?.length ? run.tags.map((text) => h('a', { class: 'chip', href: `/runs${query({ tag: text })}` }, text)) : null),
    fact('Parent', run.parent && runLink(run.parent)),
    fact('Root', run.root && run.root !== run.id && run.root !== run.parent ? runLink(run.root) : null),
    fact('Partition', run.partition),
    fact('Trace', run.trace && h('span', { class: 'mono break' }, run.trace)),
    fact('Deleted', run.deleted_at && [when(run.deleted_at), run.delete_reason && h('span', { class: 'muted' }, ` ${run.delete_reason}`)]),
    fact('Revision', `${run.revision}`));
}

function whatFailed(run) {
  if (waitsForWorker(run)) return 'It waits for a worker whose code fits what it remembers';
  return run.status === 'failed' ? 'Failed for good' : 'The last attempt failed';
}

/* ---- What it carries ---- */

function payload(name, text) {
  if (text === undefined || text === 'null') return null;
  return card(name, jsonView(text, name), { about: bytes(new Blob([text]).size), actions: copyButton(() => pretty(text), `Copy ${name.toLowerCase()}`) });
}

/* ---- The journal ---- */

function eventRow(event, text) {
  const data = event.data === null || event.data === undefined ? null : members(text).get('data');
  const long = data && data.length > MOST_OF_A_LINE;
  return h('tr', { 'data-row': '', 'data-seq': event.seq },
    h('td', { class: 'c-num muted' }, event.seq),
    h('td', { class: 'c-time', title: exactTime(ms(event.at)) }, otherDay(ms(event.at)) && h('span', { class: 'exact' }, otherDay(ms(event.at))), clockTime(ms(event.at))),
    h('td', null, h('span', { class: `event-kind k-${event.kind}` }, event.kind)),
    h('td', { class: 'c-event', title: event.step }, event.step && h('strong', null, event.step), ' ', h('span', null, event.name)),
    h('td', { class: 'muted c-actor', title: event.actor }, event.actor),
    h('td', { class: 'c-data mono' }, data && (long
      ? h('details', null, h('summary', null, `${data.slice(0, 120)}…`), jsonView(data, `Data of event ${event.seq}`))
      : data)));
}

class Journal {
  constructor(run, signal) {
    this.path = `/v1/runs/${run}/events`;
    this.signal = signal;
    this.body = h('tbody');
    this.foot = h('div', { class: 'list-more' });
    this.last = 0;      /* of the lines that are shown */
    this.atEnd = false; /* all there is, is shown: new ones are added as they come */
    const jump = h('input', { type: 'number', min: '1', 'aria-label': 'Go to line', placeholder: 'line' });
    const form = h('form', { class: 'jump', onsubmit: (event) => { event.preventDefault(); this.start(Math.max(0, Number(jump.value || 1) - 1)); } }, jump, button('Go', { type: 'submit', small: true }));
    this.tools = [form, button('First', { small: true, onclick: () => this.start(0) }), button('Newest', { small: true, onclick: () => this.newest() })];
    this.node = h('div', null, h('div', { class: 'table-wrap journal', tabindex: '0', role: 'group', 'aria-label': 'Lines of the journal' }, h('table', { class: 'table compact' },
      h('thead', null, h('tr', null, ['Seq', 'At', 'Kind', 'What', 'Who', 'Data'].map((name, i) => h('th', { scope: 'col', class: ['c-num', 'c-time', 'c-kind', 'c-event', 'c-actor', 'c-data'][i] }, name)))), this.body)), this.foot);
  }

  async page(after, limit = EVENTS) {
    const { text, json } = await ask('GET', `${this.path}${query({ after, limit })}`, { signal: this.signal });
    return { ...json, text };
  }

  start(after) {
    this.last = after;
    fill(this.body);
    return this.more();
  }

  async more() {
    try {
      const page = await this.page(this.last);
      const raw = rawItems(page.text);
      this.body.append(...page.items.map((event, i) => eventRow(event, raw[i])));
      this.last = page.items.at(-1)?.seq ?? this.last;
      this.atEnd = page.next === null;
      fill(this.foot, page.next !== null && moreButton(() => this.more()));
      return page.items;
    } catch (error) {
      if (!isAbort(error)) fill(this.foot, problemBox(error, () => this.more()));
      return [];
    }
  }

  /* Where its last lines begin, of which there is one page. The journal has no gaps, so its end is found by halving. */
  async tail(from) {
    let low = from, high = Math.max(EVENTS, from * 2);
    while ((await this.page(high, 1)).items.length > 0) { low = high; high *= 2; }
    while (high - low > EVENTS / 2) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.page(middle, 1)).items.length > 0) low = middle;
      else high = middle;
    }
    return Math.max(0, low - EVENTS / 2);
  }

  async newest() {
    await this.start(await this.tail(this.last));
    this.body.lastElementChild?.scrollIntoView({ block: 'nearest' });
  }

  /* Shows the line and those around it. */
  async find(seq) {
    if (!this.body.querySelector(`[data-seq="${seq}"]`)) await this.start(Math.max(0, seq - 10));
    const row = this.body.querySelector(`[data-seq="${seq}"]`);
    if (!row) return;
    this.body.querySelector('.current')?.classList.remove('current');
    row.classList.add('current');
    row.querySelector('details')?.setAttribute('open', '');
    row.scrollIntoView({ block: 'center' });
    (row.querySelector('summary') ?? this.node.firstElementChild).focus({ preventScroll: true });
  }

  add(event, text) {
    if (!this.atEnd || event.seq !== this.last + 1) return;
    this.last = event.seq;
    const row = eventRow(event, text);
    row.classList.add('flash');
    this.body.append(row);
    if (this.body.children.length > 1000) this.body.firstElementChild.remove();
  }
}

/* ---- Children ---- */

const childrenOf = (run, signal, cursor) => get(`/v1/runs/${run}/children${query({ limit: CHILDREN, cursor })}`, { signal, headers: BRIEF });

function childRow(run, signal) {
  const open = h('button', { type: 'button', class: 'icon-button small twist', 'aria-label': 'Show its children', 'aria-expanded': 'false' }, icon('chevron'));
  const inner = h('div', { class: 'grandchildren', hidden: true });
  const row = h('li', null, h('div', { class: 'child', 'data-row': '', 'data-href': `/runs/${run.id}` }, open, badge(run.status), h('div', { class: 'grow run-name' }, runLink(run.id, run.workflow), run.key ? h('span', { class: 'run-key', title: run.key }, run.key) : h('span', { class: 'mono muted', title: run.id }, shortId(run.id))),
    h('span', { class: 'num muted' }, tookOf(run)), h('span', { class: 'num' }, when(run.created_at))), inner);
  open.addEventListener('click', () => {
    inner.hidden = !inner.hidden;
    open.setAttribute('aria-expanded', String(!inner.hidden));
    if (!inner.hidden && !inner.firstChild) loading(inner, async () => {
      const page = await childrenOf(run.id, signal);
      return page.items.length ? childList(page, run.id, signal) : h('p', { class: 'muted small no-children' }, 'It has no children.');
    }, { rows: 1, kind: 'row' });
  });
  return row;
}

function childList(page, parent, signal) {
  const list = h('ul', { class: 'children' }, page.items.map((run) => childRow(run, signal)));
  const more = h('div', { class: 'list-more' });
  let next = page.next;
  const offer = () => fill(more, next && moreButton(async () => {
    const following = await childrenOf(parent, signal, next);
    list.append(...following.items.map((run) => childRow(run, signal)));
    next = following.next;
    offer();
  }, { small: true }));
  offer();
  return h('div', null, list, more);
}

function childCounts(counts) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const done = counts.succeeded + counts.failed + counts.cancelled;
  return h('div', { class: 'child-counts' }, meter(all ? done / all : 0, `${number(done)} of ${number(all)} have ended`),
    Object.keys(statuses).filter((name) => counts[name] > 0).map((name) => badge(name, `${number(counts[name])} ${statuses[name].label.toLowerCase()}`)));
}

/* ---- The page ---- */

function progressOf(run, story) {
  const state = run.state ?? {};
  const percent = story.progress?.percent ?? state.percent ?? (typeof state.progress === 'number' ? state.progress * (state.progress <= 1 ? 100 : 1) : undefined);
  if (typeof percent !== 'number' || run.status === 'succeeded') return null;
  const text = story.progress?.text ?? state.message ?? '';
  return h('div', { class: 'progress-line' }, h('progress', { max: '100', value: String(percent), 'aria-label': 'Progress' }), h('span', null, `${Math.round(percent)} %`), h('span', { class: 'muted' }, text));
}

export function runPage({ main, signal, params, title }) {
  const id = params.id;
  title(`Run ${id.slice(0, 8)}`);
  const story = new Story();
  const journal = new Journal(id, signal);
  const head = h('div');
  const note = h('div', { class: 'run-note' });
  const side = h('aside', { class: 'side', 'aria-label': 'Facts' });
  const timelineBox = h('div', null, skeleton(3, 'row'));
  const cutNote = h('p', { class: 'muted small pad', hidden: true }, `Made from the first ${number(MOST_FOR_STORY)} lines of the journal.`);
  const dataBox = h('div', { class: 'payloads' });
  const childBox = h('div');
  let run = null, stop = null, timer = null, shownData = '', shownHead = '', redraw = null, pause = null, childrenSeen = null;

  const act = async (name) => { if (await changeRun(run, name)) await read(true); };

  function showHead() {
    const offered = Object.keys(changes).filter((name) => changes[name].may(run));
    const waitsForSignal = run.status === 'waiting' && run.waiting_kind === 'signal';
    const primary = offered.filter((name) => name !== 'delete').slice(0, waitsForSignal ? 1 : 2);
    const others = offered.filter((name) => !primary.includes(name));
    const items = [
      !isFinished(run.status) && !run.workflow.startsWith('holdfast.') && { label: 'Send a signal', icon: 'signal', onclick: async () => { if (await signalRun(run)) read(true); } },
      { label: 'Fork from a step', icon: 'fork', onclick: () => forkRun(run, [...story.steps.keys()]) },
      ...others.map((name) => ({ label: changes[name].label, icon: changes[name].icon, danger: changes[name].danger, onclick: () => act(name) })),
    ].filter(Boolean);
    const facts = JSON.stringify([run.status, run.waiting_kind, run.pause_requested, run.deleted_at, run.finished_at, offered]);
    if (facts !== shownHead) fill(head, pageHead(run.workflow, { // an open menu stays open while nothing of it changes
      crumbs: [['Runs', '/runs'], ...(run.parent ? [['Parent', `/runs/${run.parent}`]] : []), [shortId(run.id)]],
      extra: h('div', { class: 'run-sub' }, badge(run.status), run.pause_requested && tag('paused', 'paused', 'shall pause'), run.deleted_at && tag('cancelled', 'trash', 'Deleted'),
        run.key && h('span', { class: 'run-key big', title: run.key }, run.key), h('span', { class: 'muted' }, run.finished_at ? ['ended ', when(run.finished_at)] : ['created ', when(run.created_at)])),
      actions: [waitsForSignal && button('Send a signal', { icon: 'signal', kind: 'primary', onclick: async () => { if (await signalRun(run)) read(true); } }),
        primary.map((name) => button(changes[name].label, { icon: changes[name].icon, kind: name === 'retry' || (name === 'resume' && !waitsForSignal) ? 'primary' : '', onclick: () => act(name) })), menu('More actions', items)],
    }));
    shownHead = facts;
    title(`${run.workflow}${run.key ? ` ${run.key}` : ''} · ${statuses[run.status]?.label ?? run.status}`);
    const failing = run.last_error && run.status !== 'succeeded';
    fill(note, failing && h('div', { class: `callout ${run.status === 'failed' ? 'bad' : 'warn'}`, role: 'note' }, icon('alert'),
      h('div', null, h('strong', null, whatFailed(run), run.error_code && h('code', null, run.error_code)), h('p', { class: 'break' }, run.last_error))),
    progressOf(run, story));
  }

  function showData(raw) {
    const parts = ['error', 'result', 'state', 'input'].map((name) => [name, raw.get(name)]);
    const now = JSON.stringify(parts.map(([, text]) => text?.length > 100000 ? `${text.length}${text.slice(0, 100)}` : text));
    if (now === shownData) return;
    shownData = now;
    fill(dataBox, parts.map(([name, text]) => payload(name[0].toUpperCase() + name.slice(1), text)));
  }

  function draw() {
    clearTimeout(redraw);
    if (signal.aborted) return;
    const open = !isFinished(run.status) && !isCut();
    drawTimeline(timelineBox, story, { open, created: run.created_at, onPick: (seq) => journal.find(seq) });
    cutNote.hidden = !isCut();
    if (open) redraw = setTimeout(draw, story.steps.size > 100 ? 5000 : 1000);
  }

  async function read(again) {
    const { text, json } = await ask('GET', `/v1/runs/${id}`, { signal });
    run = json;
    showHead();
    refill(side, card('Facts', facts(run)));
    showData(members(text));
    if (story.count) draw();
    readChildren();
    if (again && !stop) listen();
  }

  function readSoon() {
    timer ??= setTimeout(() => { timer = null; read().catch(() => {}); }, 250);
  }

  async function readChildren() {
    try {
      const page = await childrenOf(id, signal);
      const seen = JSON.stringify(page.counts);
      if (seen === childrenSeen) return;
      childrenSeen = seen;
      fill(childBox, page.items.length > 0 && card('Children', [childCounts(page.counts), childList(page, id, signal)],
        { about: plural(Object.values(page.counts).reduce((sum, count) => sum + count, 0), 'run'), actions: h('a', { href: `/runs${query({ parent: id })}` }, 'As a list') }));
    } catch { /* the rest of the page does not need it */ }
  }

  /* From the last line that is known on, until the run has ended. */
  function listen() {
    const over = isFinished(run.status);
    clearTimeout(pause);
    stop?.();
    stop = follow(`/v1/runs/${id}/events?after=${known}`, {
      lastId: known, endsByItself: true,
      onState: (state) => { if (state === 'ended') { stop = null; goOn(over); } },
      onEvent: ({ data }) => {
        const event = JSON.parse(data);
        if (event.seq <= known) return;
        known = event.seq;
        if (isCut()) story.hear(event);
        else story.add(event);
        journal.add(event, data);
        readSoon();
      },
    });
  }

  /* The stream may have ended before the run, with its server, and the run since then: only one that was opened after the
   * run's end had all there is. What is refused stays refused. */
  async function goOn(over) {
    try {
      await read();
    } catch (error) {
      if (isAbort(error) || (error.status >= 400 && error.status < 500)) return;
    }
    if (!stop && !signal.aborted && !over) pause = setTimeout(listen, PAUSE);
  }

  let known = 0; /* the last line that was read, or heard of */
  const isCut = () => story.count >= MOST_FOR_STORY;
  async function readStory() {
    const first = await journal.start(0);
    for (const event of first) story.add(event);
    known = first.at(-1)?.seq ?? 0;
    let more = !journal.atEnd; /* pages end by their size, too */
    while (more && !isCut()) {
      const { items, next } = await journal.page(known);
      for (const event of items) story.add(event);
      known = items.at(-1)?.seq ?? known;
      more = next !== null;
    }
    if (isCut()) await readTail();
  }

  /* The timeline has its lines. How the run stands is told by the last ones, and by those that come. */
  async function readTail() {
    let after = await journal.tail(known);
    story.progress = null;
    for (let more = true; more;) {
      const { items, next } = await journal.page(after);
      for (const event of items) story.hear(event);
      after = items.at(-1)?.seq ?? after;
      more = next !== null;
    }
    known = Math.max(known, after);
  }

  const layout = h('div', { class: 'run-page' },
    h('div', { class: 'column' }, note, card('Timeline', [timelineBox, cutNote], { id: 'timeline' }), dataBox, childBox), side);
  const lines = card('Journal', journal.node, { actions: journal.tools });
  const box = h('div');
  fill(head, pageHead('Run', { crumbs: [['Runs', '/runs'], [shortId(id)]] }));
  fill(main, head, box);
  loading(box, async () => {
    await read();
    readStory().then(() => { draw(); showHead(); if (!isFinished(run.status)) listen(); }).catch((error) => { if (!isAbort(error)) fill(timelineBox, problemBox(error)); });
    return [layout, lines];
  }, { missing: () => { title('No such run'); fill(main, notThere('run', [['Runs', '/runs'], [shortId(id)]], h('p', { class: 'mono break' }, id))); } });
  signal.addEventListener('abort', () => { stop?.(); clearTimeout(timer); clearTimeout(redraw); clearTimeout(pause); });
}
