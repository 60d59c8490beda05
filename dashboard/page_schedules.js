/* Schedules: what starts by the clock. */
import { h, fill } from './dom.js';
import { ask as request, get, post, put, remove } from './api.js';
import { pageHead, button, loading, dialog, tag, workflowLink, runLink, empty, command, toast, menu } from './ui.js';
import { when, number, exactTime, ms, relative } from './format.js';
import { reload } from './router.js';
import { suggestWorkflows } from './names.js';
import { members as membersOf, rawItems } from './json.js';

const pathOf = (name) => `/v1/schedules/${encodeURIComponent(name)}`;

/* `text` is the schedule as the server wrote it. What the form does not show stays as it is. */
async function edit(one, text) {
  const raw = one ? membersOf(text) : new Map();
  const input = raw.get('input') ?? 'null';
  const saved = await dialog({
    title: one ? `Change ${one.name}` : 'New schedule', action: 'Save',
    fields: [
      !one && { name: 'name', label: 'Name', required: true, placeholder: 'nightly-report' },
      { name: 'workflow', label: 'Workflow', required: true, value: one?.workflow ?? '', suggest: suggestWorkflows },
      { name: 'cron', label: 'When', required: true, value: one?.cron ?? '', placeholder: '0 3 * * *', about: 'Five or six fields of cron, @daily, or “every 15m”.' },
      { name: 'timezone', label: 'Time zone', value: one?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone },
      { name: 'input', label: 'Input (JSON)', type: 'json', rows: 3, value: input === 'null' ? '' : input },
      { name: 'overlap', label: 'While the run before still goes on', value: one?.overlap ?? 'skip', options: [{ value: 'skip', label: 'skip this time' }, { value: 'allow', label: 'start another' }, { value: 'queue', label: 'start it afterwards' }, { value: 'cancel', label: 'cancel the one before' }] },
      { name: 'catch_up', label: 'Times that were missed', value: one?.catch_up ?? 'one', options: [{ value: 'one', label: 'the latest is made up for' }, { value: 'none', label: 'are left out' }, { value: 'all', label: 'are all made up for' }] },
    ].filter(Boolean),
    act: (values) => {
      const members = ['workflow', 'cron', 'timezone', 'overlap', 'catch_up'].filter((name) => values[name]).map((name) => `"${name}":${JSON.stringify(values[name])}`);
      if (values.input.trim()) members.push(`"input":${values.input}`);
      for (const name of ['priority', 'tags']) if ((raw.get(name) ?? 'null') !== 'null') members.push(`"${name}":${raw.get(name)}`);
      return put(pathOf(one?.name ?? values.name), `{${members.join(',')}}`);
    },
  });
  if (saved) { toast('The schedule was saved'); reload(); }
}

async function ask(one, word, danger, text, act) {
  if (await dialog({ title: `${word} ${one.name}?`, action: `${word} schedule`, cancel: 'Back', danger, body: h('p', { class: 'muted' }, text), act })) reload();
}

function actions(one, text) {
  return menu(`Actions for ${one.name}`, [
    { label: 'Change', icon: 'settings', onclick: () => edit(one, text) },
    one.paused
      ? { label: 'Resume', icon: 'play', onclick: () => ask(one, 'Resume', false, 'It fires again.', () => post(`${pathOf(one.name)}/resume`)) }
      : { label: 'Pause', icon: 'pause', onclick: () => ask(one, 'Pause', false, 'It does not fire until it is resumed. What it started goes on.', () => post(`${pathOf(one.name)}/pause`)) },
    { label: 'Delete', icon: 'trash', danger: true, onclick: () => ask(one, 'Delete', true, 'It never fires again. What it started goes on.', () => remove(pathOf(one.name))) },
  ]);
}

function firings(one, signal) {
  const box = h('div');
  loading(box, async () => {
    const times = (await get(`${pathOf(one.name)}/next?count=5`, { signal })).items;
    return times.length === 0 ? h('p', { class: 'muted' }, 'It does not fire again.') : h('ol', { class: 'firings' }, times.map((time) => h('li', null, h('span', null, exactTime(ms(time))), h('span', { class: 'muted' }, relative(ms(time))))));
  }, { rows: 2 });
  return box;
}

function row(one, text, signal) {
  const next = h('div', { class: 'schedule-next' }, h('span', { class: 'muted small' }, 'Next'), h('strong', null, one.paused ? '–' : when(one.next_at)));
  const details = h('details', { class: 'schedule-more' }, h('summary', null, 'Next firings'));
  details.addEventListener('toggle', () => { if (details.open && details.children.length === 1) details.append(firings(one, signal)); });
  return h('li', { class: 'schedule', 'data-row': '' },
    h('div', { class: 'grow' },
      h('div', { class: 'run-name' }, h('strong', null, one.name), h('code', null, one.cron), h('span', { class: 'muted small' }, one.timezone), one.paused ? tag('paused', 'paused', 'Paused') : tag('succeeded', 'check', 'Active')),
      h('div', { class: 'run-lately muted' }, 'starts ', workflowLink(one.workflow), ` · fired ${number(one.fired)}`, one.skipped ? `, skipped ${number(one.skipped)}` : '', one.last_at && [' · last ', one.last_run ? runLink(one.last_run, relative(ms(one.last_at))) : when(one.last_at)]),
      one.last_error && h('div', { class: 'run-lately bad' }, one.last_error), details),
    next, actions(one, text));
}

export function schedulesPage({ main, signal, title }) {
  title('Schedules');
  const box = h('div');
  fill(main, pageHead('Schedules', { actions: button('New schedule', { icon: 'plus', kind: 'primary', onclick: () => edit(null) }) }), box);
  loading(box, async () => {
    const { text, json } = await request('GET', '/v1/schedules', { signal });
    const all = json.items, raw = rawItems(text);
    if (all.length === 0) return empty('schedules', 'No schedules yet', h('p', { class: 'muted' }, 'Start runs by the clock:'), command("holdfast schedule create nightly --cron '0 3 * * *' --workflow hello.greet.v1"));
    return h('section', { class: 'card', 'aria-label': 'Schedules' }, h('ul', { class: 'lines' }, all.map((one, i) => row(one, raw[i], signal))));
  }, { rows: 4, kind: 'row' });
}
