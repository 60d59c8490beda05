/* A list of runs by pages, which learns of what happens to the runs that it shows. */
import { h, fill, reconcile } from './dom.js';
import { icon } from './icons.js';
import { get, query, follow, isAbort } from './api.js';
import { badge, skeleton, problemBox, button, empty, command } from './ui.js';
import { when, age, duration, ms, shortId, plural } from './format.js';

const PAGE = 50;
const MOST_AT_ONCE = 12; /* runs that are read again after they changed */

export const pageOf = (filter, extra) => `/v1/runs${query({ ...filter, ...extra })}`;
export const BRIEF = { Prefer: 'return=minimal' };

function waitText(run) {
  const kind = { signal: 'a signal', sleep: 'its time', children: 'children', timer: 'its time' }[run.waiting_kind] ?? run.waiting_kind ?? 'something';
  return `waits for ${kind}${run.current_step ? ` · ${run.current_step}` : ''}`;
}

/* One line on what matters now. */
function lately(run) {
  if (run.deleted_at) return `deleted${run.delete_reason ? `: ${run.delete_reason}` : ''}`;
  if (run.status === 'failed') return run.last_error || run.error_code || '';
  if (run.status === 'waiting') return waitText(run);
  if (run.status === 'leased') return [run.current_step, run.leased_by].filter(Boolean).join(' · ');
  if (run.status === 'pending' && run.attempt > 0) return run.last_error ? `tries again · ${run.last_error}` : 'tries again';
  if (run.status === 'pending' && ms(run.run_at) > Date.now()) return ['due ', when(run.run_at)];
  return run.status === 'paused' || run.status === 'cancelled' ? '' : run.subject ?? '';
}

export function tookOf(run) {
  if (!run.started_at) return h('span', { class: 'muted' }, '–');
  if (run.finished_at) return duration(ms(run.finished_at) - ms(run.started_at));
  return run.status === 'leased' || run.status === 'waiting' ? age(run.started_at) : h('span', { class: 'muted' }, '–');
}

function cells(run, selected, onSelect, plain) {
  return [
    onSelect && h('td', { class: 'c-check' }, h('input', { type: 'checkbox', checked: selected, 'aria-label': `Select run ${shortId(run.id)}`, onclick: (event) => onSelect(run.id, event.target.checked, event.shiftKey) })),
    h('td', { class: 'c-status' }, badge(run.status)),
    h('td', { class: 'c-run' },
      h('div', { class: 'run-name' }, h('span', { class: 'run-title' }, plain ? h('a', { href: `/runs/${run.id}`, title: run.key }, run.key ?? shortId(run.id)) : [h('a', { href: `/runs/${run.id}` }, run.workflow), run.key && h('span', { class: 'run-key', title: run.key }, run.key)]),
        (run.tags ?? []).slice(0, 3).map((text) => h('span', { class: 'chip' }, text))),
      h('div', { class: `run-lately ${run.status === 'failed' ? 'bad' : 'muted'}` }, lately(run))),
    h('td', { class: 'c-id mono muted', title: run.id }, shortId(run.id)),
    h('td', { class: 'c-num' }, run.attempt > 1 || run.status === 'failed' ? `${run.attempt}/${run.max_attempts}` : h('span', { class: 'muted' }, run.attempt || '–')),
    h('td', { class: 'c-num' }, tookOf(run)),
    h('td', { class: 'c-num c-when' }, when(run.created_at)),
  ];
}

/* onSelection(ids): runs can be chosen; whenEmpty() gives what is shown then; plain: all are of one workflow, which is not repeated. */
export function runList({ filter, signal, onSelection, whenEmpty, label = 'Runs', plain = false }) {
  const body = h('tbody');
  const more = h('div', { class: 'list-more' });
  const fresh = h('div', { class: 'list-fresh' });
  const all = onSelection && h('input', { type: 'checkbox', 'aria-label': 'Select all that are shown', onclick: (event) => selectShown(event.target.checked) });
  const head = h('thead', null, h('tr', null, onSelection && h('td', { class: 'c-check' }, all),
    ['Status', 'Run', 'Id', 'Attempt', 'Took', 'Created'].map((name, i) => h('th', { scope: 'col', class: ['c-status', 'c-run', 'c-id', 'c-num', 'c-num', 'c-num c-when'][i] }, name))));
  const tableBox = h('div', { class: 'table-wrap run-list' }, h('table', { class: 'table', 'aria-label': label }, head, body));
  const box = h('div', { class: 'run-list-box' }, fresh, tableBox, more);
  const runs = new Map();
  const selected = new Set();
  let next = null, busy = false, lastClicked = null, created = 0;

  function select(id, on, range) {
    const ids = [...runs.keys()];
    const from = range && lastClicked ? ids.indexOf(lastClicked) : ids.indexOf(id);
    const to = ids.indexOf(id);
    for (const one of ids.slice(Math.min(from, to), Math.max(from, to) + 1)) {
      if (on) selected.add(one);
      else selected.delete(one);
    }
    lastClicked = id;
    show();
    onSelection([...selected]);
  }

  function selectShown(on) {
    selected.clear();
    if (on) for (const id of runs.keys()) selected.add(id);
    show();
    onSelection([...selected]);
  }

  function state(run) {
    return `${run.revision}/${run.status}/${run.updated_at}/${selected.has(run.id)}/${run.deleted_at}`;
  }

  function make(run) {
    const row = h('tr', { 'data-row': '', 'data-href': `/runs/${run.id}` });
    update(row, run);
    return row;
  }

  function update(row, run) {
    if (row.dataset.state === state(run)) return;
    if (row.dataset.state && row.dataset.revision !== String(run.revision)) {
      row.classList.remove('flash');
      void row.offsetWidth;
      row.classList.add('flash');
    }
    row.dataset.state = state(run);
    row.dataset.revision = run.revision;
    row.classList.toggle('selected', selected.has(run.id));
    fill(row, cells(run, selected.has(run.id), onSelection && select, plain));
  }

  function show() {
    reconcile(body, [...runs.values()], (run) => run.id, make, update);
    if (all) {
      all.checked = selected.size > 0 && selected.size === runs.size;
      all.indeterminate = selected.size > 0 && selected.size < runs.size;
    }
    fill(more, next && button('Load more', { onclick: loadMore }), busy && h('span', { class: 'muted' }, 'Loading…'));
  }

  async function loadMore() {
    if (busy || !next) return;
    busy = true;
    show();
    try {
      const page = await get(pageOf(filter, { cursor: next, limit: PAGE }), { signal, headers: BRIEF });
      for (const run of page.items) runs.set(run.id, run);
      next = page.next;
    } catch (error) {
      if (!isAbort(error)) fill(more, problemBox(error, loadMore));
      return;
    } finally {
      busy = false;
    }
    show();
  }

  async function load() {
    if (runs.size === 0) fill(body, h('tr', null, h('td', { colspan: '7' }, skeleton(8, 'row'))));
    box.setAttribute('aria-busy', 'true');
    try {
      const page = await get(pageOf(filter, { limit: PAGE }), { signal, headers: BRIEF });
      runs.clear();
      for (const run of page.items) runs.set(run.id, run);
      for (const id of selected) if (!runs.has(id)) selected.delete(id);
      next = page.next;
      created = 0;
      fill(fresh);
      tableBox.hidden = runs.size === 0;
      fill(body, ...[...body.children].filter((row) => row.dataset.key));
      show();
      if (runs.size === 0) fill(more, whenEmpty?.() ?? empty('runs', 'No runs', h('p', { class: 'muted' }, 'Nothing matches.')));
      onSelection?.([...selected]);
    } catch (error) {
      if (isAbort(error)) return;
      tableBox.hidden = true;
      fill(more, problemBox(error, () => { tableBox.hidden = false; fill(more); load(); }));
    } finally {
      box.removeAttribute('aria-busy');
    }
  }

  /* What happened to runs that are shown is read again, a little later and all at once. */
  const changed = new Set();
  let timer = null;
  async function readChanged() {
    timer = null;
    const ids = [...changed].slice(0, MOST_AT_ONCE);
    for (const id of ids) changed.delete(id);
    await Promise.all(ids.map(async (id) => {
      try { if (runs.has(id)) runs.set(id, await get(`/v1/runs/${id}`, { signal, headers: BRIEF })); } catch { /* the next look tells */ }
    }));
    if (signal.aborted) return;
    show();
    if (changed.size > 0) timer ??= setTimeout(readChanged, 400);
  }

  function offerNew() {
    fill(fresh, h('button', { type: 'button', class: 'button primary small', onclick: () => { load(); scrollTo(0, 0); } }, icon('refresh'), h('span', null, `Show ${plural(created, 'new run')}`)));
  }

  function matches(event) {
    return (!filter.workflow || event.workflow === filter.workflow) && (!filter.prefix || event.workflow?.startsWith(filter.prefix)) &&
      (!filter.key || event.key === filter.key) && !filter.deleted && !filter.created_before && (!filter.status || filter.status.includes('pending'));
  }

  function hear({ name, data }) {
    if (name !== 'event') return;
    const event = JSON.parse(data);
    if (runs.has(event.run)) {
      changed.add(event.run);
      timer ??= setTimeout(readChanged, 400);
    } else if (event.kind === 'lifecycle' && event.name === 'created' && matches(event)) {
      created++;
      if (runs.size === 0) load();
      else offerNew();
    }
  }

  const observer = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting) && runs.size < 2000) loadMore(); }, { rootMargin: '400px' });
  observer.observe(more);
  const stop = follow(`/v1/stream${query({ workflow: filter.workflow })}`, { onEvent: hear });
  signal.addEventListener('abort', () => { stop(); observer.disconnect(); clearTimeout(timer); });
  load();
  return { node: box, reload: load, clearSelection: () => selectShown(false) };
}

export function firstRun() {
  return empty('runs', 'No runs yet', h('p', { class: 'muted' }, 'Make a workflow, serve it with any executable, and trigger it:'),
    command('holdfast workflow create hello.greet.v1\nholdfast worker --exec \'hello.*=./greet.sh\' &\nholdfast trigger hello.greet.v1 \'"Kim"\''));
}
