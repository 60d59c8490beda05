/* Workflows, and one of them: its queue, its settings, its runs. */
import { h, fill, refill } from './dom.js';
import { get, post, put } from './api.js';
import { pageHead, card, button, loading, table, tag, workflowLink, dialog, empty, command, notThere } from './ui.js';
import { number, shortNumber, when, plural, parseDuration, duration } from './format.js';
import { runList } from './runlist.js';
import { triggerRun } from './actions.js';
import { reload, navigate } from './router.js';

const pathOf = (name) => `/v1/workflows/${encodeURIComponent(name)}`;
const span = (text) => { const value = parseDuration(text); return Number.isNaN(value) ? text : duration(value); };

function limits(one) {
  const found = [];
  if (one.max_running) found.push(`${number(one.max_running)} at once`);
  if (one.rate_count) found.push(`${number(one.rate_count)} per ${span(one.rate_interval)}`);
  if (one.key_max_running) found.push(`${number(one.key_max_running)} at once per key`);
  if (one.key_rate_count) found.push(`${number(one.key_rate_count)} per ${span(one.key_rate_interval)} per key`);
  return found;
}

/* They are not for people to start, and come last. */
const isEngines = (one) => one.name.startsWith('holdfast.');

function state(one) {
  if (one.paused) return tag('paused', 'paused', 'Paused', 'No run is begun');
  if (isEngines(one)) return tag('pending', 'settings', 'Engine', 'The engine’s own; any worker does it');
  if (!one.workers) return tag(one.due ? 'failed' : 'pending', one.due ? 'alert' : 'pending', 'No worker', 'No live worker serves it');
  return tag('succeeded', 'check', 'Served', plural(one.workers, 'live worker'));
}

/* The server counts no more runs of a kind than this. */
const MOST = 10000;
const counted = (value) => shortNumber(value) + (value >= MOST ? '+' : '');
const amount = (value, tone) => h('span', { class: value ? tone : 'muted' }, counted(value));

export function workflowsPage({ main, signal, title, query }) {
  title('Workflows');
  const box = h('div');
  const search = h('input', { type: 'search', placeholder: 'Name begins with…', 'aria-label': 'Name begins with', value: query.get('prefix') ?? '', autocomplete: 'off', spellcheck: 'false' });
  const load = () => loading(box, async () => {
    const all = (await get(`/v1/workflows${search.value ? `?prefix=${encodeURIComponent(search.value)}` : ''}`, { signal })).items.sort((a, b) => Number(isEngines(a)) - Number(isEngines(b)));
    const none = all.every(isEngines);
    if (none && (all.length === 0 || !search.value)) return search.value
      ? empty('search', 'Nothing matches', h('p', { class: 'muted' }, 'No workflow begins so.'))
      : empty('workflows', 'No workflows yet', h('p', { class: 'muted' }, 'A workflow is a name with settings; workers say which names they serve:'), command('holdfast workflow create hello.greet.v1'));
    return h('div', { class: 'card' }, table('Workflows', [
      { name: 'Workflow', class: 'c-name', cell: (one) => workflowLink(one.name) },
      { name: 'State', cell: state },
      { name: 'Due', class: 'c-num', cell: (one) => amount(one.due, '') },
      { name: 'Waiting', class: 'c-num', cell: (one) => amount(one.delayed + one.parked, '') },
      { name: 'Running', class: 'c-num', cell: (one) => amount(one.leased, '') },
      { name: 'Failed', class: 'c-num', cell: (one) => amount(one.failed, 'bad') },
      { name: 'Workers', class: 'c-num', cell: (one) => (isEngines(one) ? h('span', { class: 'muted' }, '–') : amount(one.workers, '')) },
      { name: 'Limits', class: 'c-wide muted', cell: (one) => limits(one).join(', ') },
    ], all, { rowLink: (one) => `/workflows/${encodeURIComponent(one.name)}` }));
  }, { rows: 8, kind: 'row' });
  let timer = null;
  search.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(load, 200); });
  const again = setInterval(() => { if (!document.hidden) load(); }, 5000);
  signal.addEventListener('abort', () => { clearInterval(again); clearTimeout(timer); });
  fill(main, pageHead('Workflows', { actions: [h('span', { class: 'search-field' }, search), button('New workflow', { icon: 'plus', kind: 'primary', onclick: create })] }), box);
  load();
}

async function create() {
  const made = await dialog({
    title: 'New workflow', action: 'Create', fields: [{ name: 'name', label: 'Name', required: true, placeholder: 'billing.charge.v1', about: 'Workers serve it by its name or a prefix of it.' }],
    act: (values) => put(pathOf(values.name), {}),
  });
  if (made) navigate(`/workflows/${encodeURIComponent(made.name)}`);
}

/* A member that is empty is a limit that is lifted. */
async function settings(one) {
  const text = (name, label, about) => ({ name, label, about, value: one[name] && one[name] !== '0s' ? one[name] : '', placeholder: 'none' });
  const count = (name, label, about) => ({ name, label, about, type: 'number', min: 0, value: one[name] || '', placeholder: 'no limit' });
  const burst = (name, label) => ({ ...count(name, label, 'Nothing: as many as come in a second.'), placeholder: 'by the rate' });
  const changed = await dialog({
    title: `Settings of ${one.name}`, action: 'Save', wide: true,
    fields: [
      { name: 'max_attempts', label: 'Attempts', type: 'number', min: 1, value: one.max_attempts, required: true },
      { ...text('retry_base', 'First pause between attempts', 'Doubles with each attempt.') },
      { ...text('retry_cap', 'Longest pause') },
      { ...text('lease', 'Lease', 'A worker that says nothing for so long has lost the run.') },
      text('timeout', 'Deadline', 'From the trigger on.'),
      text('retention', 'Keep finished runs for'),
      text('fit_within', 'Wait for code that fits', 'Then a run whose history the code of no worker fits has failed. Nothing: at once.'),
      count('max_running', 'Running at once'), count('key_max_running', 'Running at once, per flow key'),
      count('rate_count', 'Starts'), text('rate_interval', 'within', 'As in 1s, 1m, 1h.'),
      count('key_rate_count', 'Starts, per flow key'), text('key_rate_interval', 'within'),
      burst('rate_burst', 'Starts at once'), burst('key_rate_burst', 'Starts at once, per flow key'),
    ],
    act: (values) => {
      const body = { max_attempts: values.max_attempts, max_running: values.max_running ?? 0, key_max_running: values.key_max_running ?? 0 };
      for (const name of ['retry_base', 'retry_cap', 'lease']) if (values[name]) body[name] = values[name];
      for (const name of ['timeout', 'retention', 'fit_within']) body[name] = values[name] || '0s';
      for (const kind of ['', 'key_']) {
        body[`${kind}rate_count`] = values[`${kind}rate_count`] ?? 0;
        if (!values[`${kind}rate_count`]) continue;
        body[`${kind}rate_interval`] = values[`${kind}rate_interval`] || '1s';
        body[`${kind}rate_burst`] = values[`${kind}rate_burst`] ?? 0;
      }
      return put(pathOf(one.name), body);
    },
  });
  if (changed) reload();
}

function pauseOrResume(one) {
  const word = one.paused ? 'Resume' : 'Pause';
  return button(word, { icon: one.paused ? 'play' : 'pause', kind: one.paused ? 'primary' : '', onclick: async () => {
    const done = await dialog({
      title: `${word} ${one.name}?`, action: `${word} workflow`, cancel: 'Back', body: h('p', { class: 'muted' }, one.paused ? 'Workers begin its runs again.' : 'Runs under way go on; no other is begun until it is resumed. Triggers are still accepted.'),
      act: () => post(`${pathOf(one.name)}/${word.toLowerCase()}`),
    });
    if (done) reload();
  } });
}

function tiles(one) {
  const tile = (label, value, href, tone) => h(href ? 'a' : 'div', { class: `tile ${tone ?? ''}`, href }, h('span', { class: 'tile-label' }, label), h('span', { class: 'tile-value' }, counted(value)));
  const runs = (filter) => `/runs?workflow=${encodeURIComponent(one.name)}&${filter}`;
  return [tile('Due', one.due, runs('overdue=true')), tile('Delayed or waiting', one.delayed + one.parked, runs('status=pending,waiting,paused')), tile('Running', one.leased, runs('status=leased')),
    tile('Failed', one.failed, runs('status=failed'), one.failed ? 'bad' : ''), tile('Workers', one.workers, '/workers', one.workers || !one.due ? '' : 'bad')];
}

function fact(name, value) {
  return h('div', { class: 'fact' }, h('dt', null, name), h('dd', null, value));
}

export function workflowPage({ main, signal, params, back, title }) {
  title(params.name);
  const top = h('div', { class: 'tiles' });
  const head = h('div', null, pageHead(params.name, { crumbs: [['Workflows', '/workflows']] }));
  const side = h('div');
  const definition = h('div');
  const list = runList({ filter: { workflow: params.name }, signal, back, label: 'Its runs', plain: true, whenEmpty: () => empty('runs', 'No runs yet', h('p', { class: 'muted' }, 'Trigger one:'), command(`holdfast trigger ${params.name} '{}'`)) });
  const load = () => loading(top, async () => {
    const one = await get(pathOf(params.name), { signal });
    refill(head, pageHead(one.name, { crumbs: [['Workflows', '/workflows']], extra: h('div', { class: 'run-sub' }, state(one)),
      actions: [pauseOrResume(one), button('Settings', { icon: 'settings', onclick: () => settings(one) }), button('New run', { icon: 'plus', kind: one.paused ? '' : 'primary', onclick: () => triggerRun(one.name) })] }));
    refill(side, card('Settings', h('dl', { class: 'facts' },
      fact('Attempts', one.max_attempts), fact('Pauses', `${span(one.retry_base)}, doubling to ${span(one.retry_cap)}`), fact('Lease', span(one.lease)), fact('Deadline', one.timeout && one.timeout !== '0s' ? span(one.timeout) : 'none'),
      fact('Finished runs are kept', one.retention && one.retention !== '0s' ? span(one.retention) : 'for ever'), fact('Limits', limits(one).map((text) => h('div', null, text)).concat(limits(one).length ? [] : ['none'])),
      fact('Code that does not fit is waited out', one.fit_within && one.fit_within !== '0s' ? span(one.fit_within) : 'not'), one.dead_letter && fact('When one has failed', workflowLink(one.dead_letter)), one.on_cancel && fact('When one is cancelled', workflowLink(one.on_cancel)), one.children !== 'leave' && fact('Children at work when their parent ends', { cancel: 'are cancelled', fail: 'fail it' }[one.children]), fact('Made', when(one.created_at)), fact('Changed', when(one.updated_at)))));
    fill(definition, one.definition && card('Definition', h('pre', { class: 'json', tabindex: '0', role: 'group', 'aria-label': 'Definition' }, one.definition)));
    return tiles(one);
  }, { rows: 5, kind: 'tile', missing: () => {
    title('No such workflow');
    clearInterval(again);
    fill(main, notThere('workflow', [['Workflows', '/workflows']], h('p', { class: 'mono break' }, params.name)));
  } });
  const again = setInterval(() => { if (!document.hidden) load(); }, 4000);
  signal.addEventListener('abort', () => clearInterval(again));
  fill(main, head, top, h('div', { class: 'run-page' }, h('div', { class: 'column' }, card('Runs', list.node), definition), h('aside', { class: 'side', 'aria-label': 'Settings' }, side)));
  load();
}
