/* All runs, by filters that are part of the address. */
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { pageHead, button, statuses, empty, attempt } from './ui.js';
import { runList, firstRun } from './runlist.js';
import { changes, changeChosen, changeMatching, countMatching, triggerRun } from './actions.js';
import { navigate } from './router.js';
import { plural } from './format.js';
import { suggestWorkflows } from './names.js';

const texts = [['workflow', 'Workflow'], ['prefix', 'Workflow begins with'], ['key', 'Key'], ['subject', 'Subject'], ['reference', 'Reference'], ['tag', 'Tag'], ['step', 'Current step'], ['parent', 'Parent']];
const spans = { '1h': 'Last hour', '24h': 'Last day', '7d': 'Last 7 days', '30d': 'Last 30 days' };
const spanMs = { '1h': 3600e3, '24h': 86400e3, '7d': 7 * 86400e3, '30d': 30 * 86400e3 };

/* What the address says, for the API. */
function filterOf(params) {
  const filter = {};
  for (const [name] of texts) if (params.get(name)) filter[name] = params.get(name);
  if (params.get('status')) filter.status = params.get('status');
  if (spanMs[params.get('within')]) filter.created_after = new Date(Date.now() - spanMs[params.get('within')]).toISOString();
  for (const name of ['created_after', 'created_before']) if (params.get(name)) filter[name] = new Date(params.get(name)).toISOString();
  if (params.get('overdue')) filter.overdue = 'true';
  if (params.get('deleted')) filter.deleted = 'true';
  return filter;
}

/* A filter as the bulk route takes it: real arrays and booleans. */
function bulkFilter(filter) {
  const bulk = { ...filter };
  if (filter.status) bulk.status = filter.status.split(',');
  if (filter.overdue) bulk.overdue = true;
  if (filter.deleted) bulk.deleted = true;
  return bulk;
}

function set(params, name, value) {
  const next = new URLSearchParams(params);
  if (value) next.set(name, value);
  else next.delete(name);
  navigate(`/runs${next.size ? `?${next}` : ''}`);
}

function statusTabs(params) {
  const chosen = new Set((params.get('status') ?? '').split(',').filter(Boolean));
  const toggle = (name) => (event) => {
    const next = new Set(event.shiftKey || event.ctrlKey || event.metaKey ? chosen : []);
    if (chosen.has(name)) next.delete(name);
    else next.add(name);
    set(params, 'status', [...next].join(','));
  };
  return h('div', { class: 'tabs', role: 'group', 'aria-label': 'Status' },
    h('button', { type: 'button', 'aria-pressed': String(chosen.size === 0), onclick: () => set(params, 'status', '') }, 'All'),
    Object.keys(statuses).map((name) => h('button', { type: 'button', 'aria-pressed': String(chosen.has(name)), class: `s-${name}`, title: `${statuses[name].about}. Shift-click for several.`, onclick: toggle(name) }, icon(name), statuses[name].label)));
}

function filterForm(params) {
  const input = (name, label) => {
    const field = h('input', { name, value: params.get(name) ?? '', autocomplete: 'off', spellcheck: 'false' });
    return h('label', { class: 'filter' }, h('span', null, label), field, name === 'workflow' && suggestWorkflows(field));
  };
  const check = (name, label) => h('label', { class: 'filter check' }, h('input', { type: 'checkbox', name, checked: params.get(name) === 'true' }), h('span', null, label));
  const form = h('form', { class: 'filters', 'aria-label': 'Filters' },
    texts.map(([name, label]) => input(name, label)),
    h('label', { class: 'filter' }, h('span', null, 'Created'), h('select', { name: 'within', value: params.get('within') ?? '' }, h('option', { value: '' }, 'At any time'), Object.keys(spans).map((key) => h('option', { value: key }, spans[key])))),
    h('label', { class: 'filter' }, h('span', null, 'Created after'), h('input', { type: 'datetime-local', name: 'created_after', value: params.get('created_after') ?? '' })),
    h('label', { class: 'filter' }, h('span', null, 'Created before'), h('input', { type: 'datetime-local', name: 'created_before', value: params.get('created_before') ?? '' })),
    h('div', { class: 'filter-checks' }, check('overdue', 'Overdue'), check('deleted', 'Deleted')),
    h('div', { class: 'filter-actions' }, button('Clear', { onclick: () => navigate('/runs') }), button('Apply', { kind: 'primary', type: 'submit' })));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const next = new URLSearchParams();
    if (params.get('status')) next.set('status', params.get('status'));
    for (const element of form.elements) {
      if (!element.name) continue;
      if (element.type === 'checkbox' ? element.checked : element.value.trim()) next.set(element.name, element.type === 'checkbox' ? 'true' : element.value.trim());
    }
    navigate(`/runs${next.size ? `?${next}` : ''}`);
  });
  return form;
}

function chips(params) {
  const labels = { ...Object.fromEntries(texts), within: 'Created', created_after: 'After', created_before: 'Before', overdue: 'Overdue', deleted: 'Deleted' };
  return [...params].filter(([name]) => labels[name]).map(([name, value]) =>
    h('button', { type: 'button', class: 'chip removable', title: 'Remove this filter', onclick: () => set(params, name, '') },
      h('span', { class: 'muted' }, labels[name]), value === 'true' ? '' : spans[value] ?? value, icon('close')));
}

export function runsPage({ main, signal, query: params, back, title }) {
  title('Runs');
  const filter = filterOf(params);
  const filtered = Object.keys(filter).length > 0;
  const narrowed = [...params].some(([name]) => name !== 'status');
  const form = h('div', { id: 'filters', hidden: true }, filterForm(params));
  const opener = h('button', { type: 'button', class: 'button', 'aria-expanded': 'false', 'aria-controls': 'filters', onclick: () => {
    form.hidden = !form.hidden;
    opener.setAttribute('aria-expanded', String(!form.hidden));
    if (!form.hidden) form.querySelector('input').focus();
  } }, icon('filter'), h('span', null, 'Filter'));
  const bulk = h('div', { class: 'bulk', role: 'region', 'aria-label': 'Selected runs', hidden: true });

  function offer(ids) {
    bulk.hidden = ids.length === 0;
    if (ids.length === 0) return;
    const names = filter.deleted ? ['restore'] : ['cancel', 'pause', 'resume', 'retry', 'delete'];
    let matching = false;
    const chosen = `${plural(ids.length, 'run')} selected`;
    const act = async (name) => {
      const changed = matching ? await changeMatching(bulkFilter(filter), name) : await changeChosen(ids, name);
      if (changed) { list.clearSelection(); list.reload(); }
    };
    const count = h('strong', null, chosen);
    const choose = (all) => {
      matching = all;
      count.textContent = all ? 'All that match are selected' : chosen;
      everything.textContent = all ? 'Only those chosen' : 'Select all that match';
    };
    const everything = filtered && h('button', { type: 'button', class: 'link', onclick: async () => {
      choose(!matching);
      if (!matching) return;
      const counted = await attempt(async () => { matched = await countMatching(bulkFilter(filter)); });
      if (matching && counted) count.textContent = `All ${plural(matched, 'run')} that match are selected`;
      else choose(false);
    } }, 'Select all that match');
    let matched = 0;
    fill(bulk, count, everything, h('div', { class: 'bulk-actions' }, names.map((name) => button(changes[name].label, { icon: changes[name].icon, kind: changes[name].danger ? 'danger-text' : '', small: true, onclick: () => act(name) })),
      h('button', { type: 'button', class: 'icon-button', 'aria-label': 'Clear the selection', onclick: () => list.clearSelection() }, icon('close'))));
  }

  const nothing = () => (filtered
    ? empty('search', 'Nothing matches', h('p', { class: 'muted' }, 'No run fits these filters.'), button('Clear filters', { onclick: () => navigate('/runs') }))
    : firstRun());
  const list = runList({ filter, signal, back, onSelection: offer, whenEmpty: nothing });
  fill(main, pageHead('Runs', { actions: [opener, button('New run', { icon: 'plus', kind: 'primary', onclick: () => triggerRun(filter.workflow) })] }),
    h('div', { class: 'toolbar' }, statusTabs(params)), narrowed && h('div', { class: 'chips' }, chips(params)), form, h('div', { class: 'listing' }, bulk, list.node));
}

