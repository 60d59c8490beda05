/* The outbox and its subscriptions. */
import { h, fill } from './dom.js';
import { get, post, put, remove } from './api.js';
import { pageHead, button, loading, table, tag, runLink, dialog, attempt, empty, command, menu } from './ui.js';
import { when, number, plural } from './format.js';
import { reload, navigate } from './router.js';
import { pager } from './pager.js';
import { members } from './json.js';
import { showJson, showSecret, sure } from './dialogs.js';

const subscriptionPath = (one) => `/v1/subscriptions/${encodeURIComponent(one.name)}`;
const tones = { active: ['succeeded', 'check', 'Active'], retrying: ['waiting', 'retry', 'Retrying'], parked: ['failed', 'paused', 'Parked'], ended: ['cancelled', 'stop', 'Ended'] };

async function editSubscription(one) {
  const saved = await dialog({
    title: one ? `Change ${one.name}` : 'New subscription', action: 'Save',
    fields: [
      !one && { name: 'name', label: 'Name', required: true, placeholder: 'billing' },
      { name: 'url', label: 'URL', required: true, type: 'url', value: one?.url ?? '', placeholder: 'https://example.com/hooks/holdfast' },
      { name: 'events', label: 'Events', value: (one?.events ?? []).join(', '), placeholder: 'order.*, holdfast.*', about: 'Types, or prefixes with a star. Nothing: all that runs emit.' },
    ].filter(Boolean),
    act: (values) => put(subscriptionPath(one ?? values), { url: values.url, ...(one ? { mode: one.mode, max_failures: one.max_failures } : {}), ...(values.events.trim() ? { events: values.events.split(',').map((text) => text.trim()).filter(Boolean) } : {}) }),
  });
  if (!saved) return;
  if (saved.secret) await showSecret('The secret of this subscription', saved.secret, 'Receivers check the signature with it.');
  reload();
}

/* What the receiver says is the answer, also when it is no. */
function sendTest(one) {
  return attempt(async () => {
    const { delivered, message } = await post(`${subscriptionPath(one)}/test`);
    if (!delivered) throw new Error(`${one.name}: ${message}`);
  }, 'The receiver took it');
}

function subscriptions(signal) {
  const box = h('div');
  loading(box, async () => {
    const all = (await get('/v1/subscriptions', { signal })).items;
    if (all.length === 0) return empty('outbox', 'No subscriptions', h('p', { class: 'muted' }, 'A subscription delivers the events that runs emit to a URL, signed, in order per run:'), command("holdfast subscription create billing --url https://example.com/hook --event 'order.*'"));
    return h('section', { class: 'card', 'aria-label': 'Subscriptions' }, table('Subscriptions', [
      { name: 'Name', class: 'c-name', cell: (one) => [h('strong', null, one.name), h('div', { class: 'muted small break' }, one.url)] },
      { name: 'State', cell: (one) => tag(...(tones[one.state] ?? ['pending', 'note', one.state ?? '–'])) },
      { name: 'Events', class: 'c-wide', cell: (one) => (one.events?.length ? one.events.map((text) => h('span', { class: 'chip mono' }, text)) : h('span', { class: 'muted' }, 'all')) },
      { name: 'Pending', class: 'c-num', cell: (one) => number(one.pending) },
      { name: 'Oldest', class: 'c-num', cell: (one) => when(one.oldest_at) },
      { name: 'Last error', class: 'c-wide muted', cell: (one) => one.last_error },
      { name: '', class: 'c-menu', cell: (one) => menu(`Actions for ${one.name}`, [
        { label: 'Change', icon: 'settings', onclick: () => editSubscription(one) },
        { label: 'Send a test', icon: 'outbox', onclick: () => sendTest(one) },
        one.state === 'parked' ? { label: 'Resume', icon: 'play', onclick: () => sure(`Resume ${one.name}?`, 'Resume', 'What waited is delivered.', false, () => post(`${subscriptionPath(one)}/resume`), 'It is resumed') }
          : { label: 'Park', icon: 'pause', onclick: () => sure(`Park ${one.name}?`, 'Park', 'Its events are kept until it is resumed.', false, () => post(`${subscriptionPath(one)}/park`), 'It is parked') },
        { label: 'Delete', icon: 'trash', danger: true, onclick: () => sure(`Delete ${one.name}?`, 'Delete subscription', 'What was not delivered to it never will be.', true, () => remove(subscriptionPath(one)), 'It was deleted') },
      ]) },
    ], all));
  }, { rows: 3, kind: 'row' });
  return box;
}

function outboxRow(entry, text) {
  return h('li', { 'data-row': '' }, entry.published_at ? tag('succeeded', 'check', 'Delivered') : entry.last_error ? tag('failed', 'retry', 'Retrying') : tag('pending', 'pending', 'Pending'),
    h('div', { class: 'grow' }, h('div', { class: 'run-name' }, h('strong', null, entry.type), entry.run && h('span', { class: 'muted' }, 'of ', runLink(entry.run))),
      h('div', { class: `run-lately ${entry.last_error ? 'bad' : 'muted mono'}` }, entry.last_error ?? members(text).get('payload').slice(0, 160))),
    entry.attempts > 0 && h('span', { class: 'muted' }, plural(entry.attempts, 'try', 'tries')), when(entry.created_at),
    h('button', { type: 'button', class: 'button ghost small', onclick: () => showJson(entry.type, text) }, 'Look'));
}

export function outboxPage({ main, signal, title, query: params }) {
  title('Outbox');
  const waiting = params.get('undelivered') === 'true';
  const tab = (label, on, path) => h('button', { type: 'button', 'aria-pressed': String(on), onclick: () => navigate(path) }, label);
  fill(main, pageHead('Outbox', { about: 'Events that runs emit, and who gets them.', actions: button('New subscription', { icon: 'plus', kind: 'primary', onclick: () => editSubscription(null) }) }),
    h('h2', { class: 'section' }, 'Subscriptions'), subscriptions(signal),
    h('div', { class: 'section-head' }, h('h2', { class: 'section' }, 'Events'), h('div', { class: 'tabs', role: 'group', 'aria-label': 'Which events' }, tab('All', !waiting, '/outbox'), tab('Not delivered', waiting, '/outbox?undelivered=true'))),
    pager('/v1/outbox', waiting ? { undelivered: 'true' } : {}, signal, { row: outboxRow, label: 'Events', whenEmpty: () => empty('outbox', waiting ? 'Nothing waits to be delivered' : 'Nothing in the outbox', waiting ? h('p', { class: 'muted' }, 'All was delivered.') : [h('p', { class: 'muted' }, 'Runs put events here, with hf_emit or so:'), command('holdfast emit order.packed \'{"parcel": 7}\'')]) }));
}
