/* What happens now, and what needs somebody. */
import { h, fill, refill, reconcile } from './dom.js';
import { icon } from './icons.js';
import { get, follow, isAbort } from './api.js';
import { pageHead, card, badge, loading, problemBox, skeleton, workflowLink, runLink, meter, tag } from './ui.js';
import { shortNumber, when, ms, duration, clockTime, exactTime } from './format.js';
import { throughputChart } from './charts.js';
import { firstRun, pageOf } from './runlist.js';

const EVERY = 2000;
const FEED = 40;

function tile(label, value, { href, about, tone, sub }) {
  return h(href ? 'a' : 'div', { class: `tile ${tone ?? ''}`, href, title: about }, h('span', { class: 'tile-label' }, label), h('span', { class: 'tile-value' }, value), h('span', { class: 'tile-sub' }, sub ?? ''));
}

/* Of each workflow no more than `most` are counted. */
const counted = (value, capped) => shortNumber(value) + (capped ? '+' : '');

function tiles(stats) {
  const total = stats.total;
  const sum = (name) => counted(total[name], stats.workflows.some((one) => one[name] >= stats.most));
  const oldest = ms(total.oldest_due);
  const late = Number.isNaN(oldest) ? 0 : ms(stats.at) - oldest;
  return [
    tile('Due', sum('due'), { href: '/runs?overdue=true', about: 'Want a worker now', sub: total.due ? `the oldest for ${duration(late)}` : 'nothing waits for a worker', tone: late > 60000 ? 'warn' : '' }),
    tile('Running', sum('leased'), { href: '/runs?status=leased', about: 'Leased by a worker', sub: 'held by workers' }),
    tile('Waiting', sum('waiting'), { href: '/runs?status=waiting', about: 'For a time, a signal, a child or a person', sub: 'for a time, a signal, a person' }),
    tile('Delayed', sum('delayed'), { href: '/runs?status=pending', about: 'Pending, due later', sub: 'due later' }),
    tile('Failed', sum('failed'), { href: '/runs?status=failed', about: 'For good; retry or delete them', sub: total.failed ? 'need attention' : 'none', tone: total.failed ? 'bad' : '' }),
  ];
}

function queues(stats) {
  const busy = stats.workflows.filter((one) => !one.name.startsWith('holdfast.') && one.due + one.leased + one.failed + one.waiting + one.delayed > 0)
    .sort((a, b) => b.due - a.due || b.leased - a.leased || b.failed - a.failed).slice(0, 8);
  if (busy.length === 0) return h('p', { class: 'muted pad' }, 'Nothing is under way.');
  const cell = (label, value, tone) => h('td', { class: `c-num ${value ? tone ?? '' : 'muted'}`, 'data-label': label }, counted(value, value >= stats.most));
  return h('div', { class: 'table-wrap' }, h('table', { class: 'table compact queues fields-table' },
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Workflow'), ['Due', 'Running', 'Waiting', 'Failed'].map((name) => h('th', { scope: 'col', class: 'c-num' }, name)))),
    h('tbody', null, busy.map((one) => h('tr', { 'data-row': '', 'data-href': `/workflows/${encodeURIComponent(one.name)}` },
      h('td', { class: 'c-name' }, h('div', { class: 'run-name' }, workflowLink(one.name), one.paused && tag('paused', 'paused', 'Paused'))), cell('Due', one.due), cell('Running', one.leased), cell('Waiting', one.waiting), cell('Failed', one.failed, 'bad'))))));
}

const words = { created: 'created', started: 'started', succeeded: 'succeeded', failed: 'failed', retried: 'will be tried again', waiting: 'waits', given_back: 'was given back',
  paused: 'paused', resumed: 'resumed', cancelled: 'cancelled', deleted: 'deleted', restored: 'restored', pause_requested: 'shall pause' };
const looks = { created: 'plus', started: 'play', retried: 'retry', given_back: 'restore', resumed: 'play', deleted: 'trash', restored: 'restore', pause_requested: 'pause' };
const tones = { succeeded: 'succeeded', failed: 'failed', retried: 'failed', waiting: 'waiting', cancelled: 'cancelled', started: 'leased' };

function feedLine(event) {
  const step = event.kind === 'step';
  const name = step ? `${event.step} ${words[event.name] ?? event.name}` : event.kind === 'signal' ? `signal ${event.name}` : event.kind === 'domain' ? event.name : words[event.name] ?? event.name;
  const look = step ? 'step' : event.kind === 'signal' ? 'signal' : event.kind === 'domain' ? 'note' : looks[event.name] ?? event.name;
  return h('li', { class: 'feed-line' },
    h('span', { class: `feed-icon s-${tones[event.name] ?? 'pending'}` }, icon(look)),
    h('span', { class: 'feed-text' }, h('a', { href: `/runs/${event.run}` }, event.workflow ?? 'a run'), event.key && h('span', { class: 'run-key' }, event.key), h('span', { class: 'muted' }, name)),
    h('time', { class: 'muted', datetime: event.at, title: exactTime(ms(event.at)) }, clockTime(ms(event.at))));
}

function liveFeed(signal) {
  const list = h('ul', { class: 'feed', 'aria-label': 'What happens' });
  const state = h('span', { class: 'live' }, 'connecting…');
  const quiet = h('p', { class: 'muted pad', hidden: true }, 'Nothing has happened yet. This fills by itself.');
  let lines = [], timer = null;
  const show = () => {
    timer = null;
    quiet.hidden = lines.length > 0;
    reconcile(list, lines, (event) => event.position, feedLine);
  };
  const stop = follow(`/v1/stream?last=${FEED}`, {
    onState: (now) => { state.textContent = now === 'live' ? 'live' : now === 'ended' ? 'off' : 'reconnecting…'; state.classList.toggle('on', now === 'live'); if (now === 'live') timer ??= setTimeout(show, 900); },
    onEvent: ({ name, data }) => {
      if (name !== 'message') return;
      const event = JSON.parse(data);
      lines = [event, ...lines].slice(0, FEED);
      timer ??= setTimeout(show, 150);
    },
  });
  signal.addEventListener('abort', () => { stop(); clearTimeout(timer); });
  return card('Live', h('div', { class: 'feed-box', tabindex: '0', role: 'group', 'aria-label': 'Live events' }, quiet, list), { actions: state });
}

async function failures(box, signal) {
  await loading(box, async () => {
    const page = await get(pageOf({ status: 'failed' }, { limit: 6 }), { signal, headers: { Prefer: 'return=minimal' } });
    if (page.items.length === 0) return h('p', { class: 'muted pad' }, 'No run has failed.');
    return h('ul', { class: 'lines' }, page.items.map((run) => h('li', { 'data-row': '', 'data-href': `/runs/${run.id}` }, badge('failed'),
      h('div', { class: 'grow' }, h('div', { class: 'run-name' }, runLink(run.id, run.workflow), run.key && h('span', { class: 'run-key' }, run.key)), h('div', { class: 'run-lately muted' }, run.last_error ?? run.error_code ?? '')),
      when(run.finished_at ?? run.updated_at))));
  }, { rows: 3, kind: 'row' });
}

async function workers(box, signal) {
  await loading(box, async () => {
    const all = (await get('/v1/workers', { signal })).items;
    const live = all.filter((worker) => worker.live);
    if (live.length === 0) return h('p', { class: 'pad warn-text' }, icon('alert'), 'No live worker: nothing is being worked on.');
    return h('ul', { class: 'lines' }, live.slice(0, 6).map((worker) => h('li', null, h('div', { class: 'grow' }, h('div', { class: 'run-name' }, worker.name), h('div', { class: 'run-lately muted' }, (worker.serves ?? []).join(', ') || 'chores')),
      meter(worker.running / Math.max(1, worker.threads), `${worker.running} of ${worker.threads} busy`), h('span', { class: 'num' }, `${worker.running}/${worker.threads}`))),
      live.length > 6 && h('li', null, h('a', { href: '/workers' }, `${live.length - 6} more`)));
  }, { rows: 2, kind: 'row' });
}

export function overview({ main, signal, title }) {
  title('Overview');
  const tileBox = h('div', { class: 'tiles' }, skeleton(5, 'tile'));
  const chartBox = h('div', { class: 'chart-box' }, skeleton(1, 'chart'));
  const queueBox = h('div', null, skeleton(4, 'row'));
  const failedBox = h('div', null, skeleton(3, 'row'));
  const workerBox = h('div', null, skeleton(2, 'row'));
  const first = h('div', { hidden: true }, h('section', { class: 'card' }, firstRun()));
  const grid = h('div', { class: 'overview' },
    h('div', { class: 'column' }, card('Throughput', chartBox, { about: 'the last hour, per minute' }), card('Queues', queueBox, { actions: h('a', { href: '/workflows' }, 'All workflows') }),
      card('Latest failures', failedBox, { actions: h('a', { href: '/runs?status=failed' }, 'All failed runs') })),
    h('div', { class: 'column side' }, liveFeed(signal), card('Workers', workerBox, { actions: h('a', { href: '/workers' }, 'All workers') })));
  fill(main, pageHead('Overview'), tileBox, first, grid);

  let timer = null, failed = null, looks = 0, hasHour = false;
  async function look() {
    try {
      const stats = await get('/v1/stats', { signal });
      grid.hidden = false;
      refill(tileBox, tiles(stats));
      hasHour = stats.throughput !== null;
      if (hasHour) fill(chartBox, throughputChart(stats.throughput));
      if (hasHour && ms(stats.throughput.since) > ms(stats.at) - 3500e3) chartBox.append(h('p', { class: 'muted small' }, 'Counted since ', when(stats.throughput.since), '.'));
      refill(queueBox, queues(stats));
      first.hidden = stats.workflows.some((one) => !one.name.startsWith('holdfast.'));
      if (failed !== stats.total.failed) {
        failed = stats.total.failed;
        if (failed === 0) fill(failedBox, h('p', { class: 'muted pad' }, 'No run has failed.'));
        else failures(failedBox, signal);
      }
      if (looks++ % 3 === 0) workers(workerBox, signal);
    } catch (error) {
      if (isAbort(error)) return;
      if (looks === 0) { fill(tileBox, problemBox(error, look)); grid.hidden = true; }
    }
    if (!signal.aborted) timer = setTimeout(look, document.hidden ? EVERY * 10 : hasHour ? EVERY : 300);
  }
  signal.addEventListener('abort', () => clearTimeout(timer));
  look();
}
