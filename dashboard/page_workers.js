/* Workers: who works, on what, how busy. */
import { h, fill } from './dom.js';
import { get } from './api.js';
import { pageHead, loading, table, tag, meter, empty, command } from './ui.js';
import { when, number, plural } from './format.js';

const EXAMPLE = "holdfast worker --exec 'hello.*=./greet.sh'";

function state(worker) {
  if (!worker.live) return tag('failed', 'failed', 'Dead', 'Its heartbeat is overdue; its runs are taken over');
  if (worker.draining) return tag('paused', 'paused', 'Stopping', 'Takes no more runs');
  return worker.running > 0 ? tag('leased', 'leased', 'Working') : tag('succeeded', 'check', 'Idle');
}

export function workersPage({ main, signal, title }) {
  title('Workers');
  const box = h('div');
  const load = () => loading(box, async () => {
    const all = (await get('/v1/workers', { signal })).items.sort((a, b) => Number(b.live) - Number(a.live) || a.name.localeCompare(b.name));
    if (all.length === 0) return empty('workers', 'No workers', h('p', { class: 'muted' }, 'Any executable can be a handler:'), command(EXAMPLE));
    const live = all.filter((worker) => worker.live);
    const sum = (name) => live.reduce((total, worker) => total + worker[name], 0);
    const dead = all.length - live.length;
    const idle = !live.some((worker) => worker.serves?.length);
    return [h('p', { class: 'muted summary' }, `${plural(live.length, 'live worker')}, ${number(sum('running'))} of ${plural(sum('threads'), 'hand')} busy${dead ? `, ${number(dead)} dead` : ''}`),
      h('section', { class: 'card', 'aria-label': 'Workers' }, table('Workers', [
        { name: 'Worker', class: 'c-name', cell: (worker) => [h('strong', null, worker.name), h('div', { class: 'muted small' }, [...new Set([worker.host, worker.pid && `pid ${worker.pid}`, worker.program])].filter(Boolean).join(' · '))] },
        { name: 'State', cell: state },
        { name: 'Serves', class: 'c-wide', cell: (worker) => (worker.serves?.length ? worker.serves.map((pattern) => h('span', { class: 'chip mono' }, pattern)) : h('span', { class: 'muted' }, 'chores only')) },
        { name: 'Busy', class: 'c-num', cell: (worker) => h('span', { class: 'busy-cell' }, meter(worker.running / Math.max(1, worker.threads), `${worker.running} of ${worker.threads} busy`), `${number(worker.running)}/${number(worker.threads)}`) },
        { name: 'Started', class: 'c-num', cell: (worker) => when(worker.started_at) },
        { name: 'Seen', class: 'c-num', cell: (worker) => when(worker.seen_at) },
      ], all)),
      idle && empty('workers', 'None serves a workflow', h('p', { class: 'muted' }, 'Any executable can be a handler:'), command(EXAMPLE))];
  }, { rows: 5, kind: 'row' });
  const again = setInterval(() => { if (!document.hidden) load(); }, 4000);
  signal.addEventListener('abort', () => clearInterval(again));
  fill(main, pageHead('Workers'), box);
  load();
}
