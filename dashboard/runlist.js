/* A list of runs by pages, which learns of what happens to the runs that it shows. */
import { h, fill, refill, reconcile } from './dom.js';
import { icon } from './icons.js';
import { get, query, follow, isAbort, session } from './api.js';
import { badge, skeleton, problemBox, button, empty, command, idText } from './ui.js';
import { when, age, duration, ms, shortId, number, plural } from './format.js';

const FIRST_PAGE = 50, NEXT_PAGES = 100;
const AUTOMATIC = 2000;  /* runs that scrolling brings; then somebody must ask for more */
const MOST_AT_ONCE = 12; /* runs that are read again after they changed */

export const pageOf = (filter, extra) => `/v1/runs${query({ ...filter, ...extra })}`;
export const BRIEF = { Prefer: 'return=minimal' };

export const waitsForWorker = (run) => run.status === 'waiting' && run.waiting_kind === 'worker';

export function waitsFor(run) {
  return { signal: 'a signal', sleep: 'its time', children: 'children', timer: 'its time', worker: 'a worker whose code fits' }[run.waiting_kind] ?? run.waiting_kind ?? 'something';
}

function waitText(run) {
  const more = waitsForWorker(run) ? run.last_error : run.current_step;
  return `waits for ${waitsFor(run)}${more ? ` · ${more}` : ''}`;
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
    h('td', { class: 'c-id muted' }, idText(run.id, true)),
    h('td', { class: 'c-num' }, run.attempt > 1 || run.status === 'failed' ? `${run.attempt}/${run.max_attempts}` : h('span', { class: 'muted' }, run.attempt || '–')),
    h('td', { class: 'c-num' }, tookOf(run)),
    h('td', { class: 'c-num c-when' }, when(run.created_at)),
  ];
}

/* The list that was left last, for those who go back to it. */
let kept = null;

/* onSelection(ids): runs can be chosen; whenEmpty() gives what is shown then; plain: all are of one workflow, which is not
 * repeated; back: somebody returns to it, and finds it as it was left.
 *
 * A page that is far from what is seen is an empty box of its height: however far one goes down, the document has some
 * hundred rows. What happens to the runs of such a page is read when it comes near again. */
export function runList({ filter, signal, onSelection, whenEmpty, label = 'Runs', plain = false, back = false }) {
  const moreButton = button('Load more', { onclick: () => { automatic = runs.size + AUTOMATIC; loadMore(); } });
  const moreNote = h('span', { class: 'muted', role: 'status' });
  const more = h('div', { class: 'list-more', hidden: true }, moreNote, moreButton);
  const fresh = h('div', { class: 'list-fresh' });
  const all = onSelection && h('input', { type: 'checkbox', 'aria-label': 'Select all that are listed', onclick: (event) => selectListed(event.target.checked) });
  const head = h('thead', null, h('tr', null, onSelection && h('td', { class: 'c-check' }, all),
    ['Status', 'Run', 'Id', 'Attempt', 'Took', 'Created'].map((name, i) => h('th', { scope: 'col', class: ['c-status', 'c-run', 'c-id', 'c-num', 'c-num', 'c-num c-when'][i] }, name))));
  const table = h('table', { class: 'table', 'aria-label': label }, head);
  const tableBox = h('div', { class: 'table-wrap run-list' }, table);
  const box = h('div', { class: 'run-list-box' }, fresh, tableBox, more);
  const runs = new Map();
  const pages = []; /* { cursor, ids, body, far, height (0: its rows are there), stale, first (row) } */
  const pageById = new Map();
  const selected = new Set();
  const key = JSON.stringify([filter, session.token, session.tenant]);
  let next = null, busy = false, lastClicked = null, created = 0, automatic = AUTOMATIC;

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

  function selectListed(on) {
    selected.clear();
    if (on) for (const id of runs.keys()) selected.add(id);
    show();
    onSelection([...selected]);
  }

  function state(run) {
    return `${run.revision}/${run.status}/${run.updated_at}/${selected.has(run.id)}/${run.deleted_at}`;
  }

  function make(run) {
    const row = h('tr', { 'data-row': '', 'data-href': `/runs/${run.id}`, 'data-id': run.id });
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
    refill(row, cells(run, selected.has(run.id), onSelection && select, plain));
  }

  /* ---- Pages ---- */

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) for (const page of pages) if (page.body === entry.target) page.far = !entry.isIntersecting;
    for (const page of pages) {
      if (page.height && !page.far) unfold(page);
      else if (!page.height && page.far && !page.body.querySelector('.current, :focus')) fold(page);
    }
  }, { rootMargin: '1200px' });

  function addPage(cursor, ids, height = 0) {
    const page = { cursor, ids, body: h('tbody'), far: height > 0, height, stale: height > 0, first: 2 };
    const before = pages.at(-1);
    if (before) page.first = before.first + before.ids.length;
    for (const id of ids) pageById.set(id, page);
    pages.push(page);
    if (height) showFolded(page);
    table.append(page.body);
    near.observe(page.body);
  }

  function dropPages(from) {
    for (const page of pages.splice(from)) {
      near.unobserve(page.body);
      page.body.remove();
      for (const id of page.ids) pageById.delete(id);
    }
  }

  function showFolded(page) {
    fill(page.body, h('tr', { class: 'fold', 'aria-hidden': 'true' }, h('td', { colspan: '7', style: { height: `${page.height}px` } })));
  }

  function fold(page) {
    page.height = page.body.offsetHeight;
    if (page.height) showFolded(page);
  }

  function unfold(page) {
    page.height = 0;
    fill(page.body);
    showPage(page);
    if (page.stale) readAgain(page);
  }

  function showPage(page) {
    reconcile(page.body, page.ids.map((id) => runs.get(id)), (run) => run.id, make, update);
    [...page.body.rows].forEach((row, i) => { row.ariaRowIndex ??= page.first + i; });
  }

  function show() {
    for (const page of pages) if (!page.height) showPage(page);
    table.setAttribute('aria-rowcount', next ? -1 : runs.size + 1);
    if (all) {
      all.checked = selected.size > 0 && selected.size === runs.size;
      all.indeterminate = selected.size > 0 && selected.size < runs.size;
    }
    showMore();
  }

  function showMore() {
    if (moreButton.parentNode !== more) fill(more, moreNote, moreButton);
    more.hidden = !next;
    moreButton.hidden = busy;
    moreNote.textContent = busy ? 'Loading…' : next && runs.size >= automatic ? `The newest ${number(runs.size)} are listed` : '';
  }

  function showInstead(...nodes) {
    fill(more, nodes);
    more.hidden = false;
  }

  function take(cursor, page) {
    for (const run of page.items) runs.set(run.id, run);
    next = page.next;
    addPage(cursor, page.items.map((run) => run.id));
  }

  async function loadMore() {
    if (busy || !next) return;
    busy = true;
    showMore();
    try {
      take(next, await get(pageOf(filter, { cursor: next, limit: NEXT_PAGES }), { signal, headers: BRIEF }));
    } catch (error) {
      if (!isAbort(error)) showInstead(problemBox(error, loadMore));
      return;
    } finally {
      busy = false;
    }
    show();
    observer.unobserve(more); /* which tells anew whether it is in sight: who holds the End key down never leaves it */
    observer.observe(more);
  }

  async function load() {
    const waits = h('tbody', null, h('tr', null, h('td', { colspan: '7' }, skeleton(8, 'row'))));
    if (runs.size === 0) table.append(waits);
    box.setAttribute('aria-busy', 'true');
    try {
      const page = await get(pageOf(filter, { limit: FIRST_PAGE }), { signal, headers: BRIEF });
      runs.clear();
      dropPages(0);
      take(null, page);
      for (const id of selected) if (!runs.has(id)) selected.delete(id);
      created = 0;
      automatic = AUTOMATIC;
      fill(fresh);
      tableBox.hidden = runs.size === 0;
      show();
      if (runs.size === 0) showInstead(whenEmpty?.() ?? empty('runs', 'No runs', h('p', { class: 'muted' }, 'Nothing matches.')));
      onSelection?.([...selected]);
    } catch (error) {
      if (isAbort(error)) return;
      tableBox.hidden = true;
      showInstead(problemBox(error, () => { tableBox.hidden = false; showMore(); load(); }));
    } finally {
      waits.remove();
      box.removeAttribute('aria-busy');
    }
  }

  /* ---- What happens ---- */

  /* A page in one request. What left it stays until the list is loaded anew; what is new in the first is offered. */
  async function readAgain(page) {
    page.stale = false;
    try {
      const { items } = await get(pageOf(filter, { cursor: page.cursor, limit: page.ids.length }), { signal, headers: BRIEF });
      for (const run of items) if (runs.has(run.id)) runs.set(run.id, run);
      created += page === pages[0] ? items.filter((run) => !runs.has(run.id)).length : 0;
      if (created) offerNew();
      show();
    } catch { page.stale = true; }
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

  function hearOf(id) {
    const page = pageById.get(id);
    if (page.height) page.stale = true;
    else {
      changed.add(id);
      timer ??= setTimeout(readChanged, 400);
    }
  }

  function offerNew() {
    fill(fresh, h('button', { type: 'button', class: 'button primary small', onclick: () => { load(); scrollTo(0, 0); } }, icon('refresh'), h('span', null, `Show ${plural(created, 'new run')}`)));
  }

  function matches(event) {
    return (!filter.workflow || event.workflow === filter.workflow) && (!filter.prefix || event.workflow?.startsWith(filter.prefix)) &&
      (!filter.key || event.key === filter.key) && !filter.deleted && !filter.created_before && (!filter.status || filter.status.includes('pending'));
  }

  function hear({ name, data }) {
    if (name !== 'message') return;
    const event = JSON.parse(data);
    if (runs.has(event.run)) hearOf(event.run);
    else if (event.kind === 'lifecycle' && event.name === 'created' && matches(event)) {
      created++;
      if (runs.size === 0) load();
      else offerNew();
    }
  }

  function restore() {
    for (const run of kept.runs) runs.set(run.id, run);
    for (const { cursor, ids, height } of kept.pages) addPage(cursor, ids, height);
    ({ next, automatic } = kept);
    show();
  }

  const observer = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting) && runs.size < automatic) loadMore(); }, { rootMargin: '400px' });
  observer.observe(more);
  const stop = follow(`/v1/stream${query({ workflow: filter.workflow })}`, { onEvent: hear });
  signal.addEventListener('abort', () => {
    if (runs.size > 0 && pages[0].body.isConnected) kept = { key, next, automatic, runs: [...runs.values()], pages: pages.map(({ cursor, ids, height, body }) => ({ cursor, ids, height: height || body.offsetHeight })) };
    stop();
    observer.disconnect();
    near.disconnect();
    clearTimeout(timer);
  });
  if (back && kept?.key === key) restore();
  else load();
  return { node: box, reload: load, clearSelection: () => selectListed(false) };
}

export function firstRun() {
  return empty('runs', 'No runs yet', h('p', { class: 'muted' }, 'Make a workflow, serve it with any executable, and trigger it:'),
    command('holdfast workflow create hello.greet.v1\nholdfast worker --exec \'hello.*=./greet.sh\' &\nholdfast trigger hello.greet.v1 \'"Kim"\''));
}
