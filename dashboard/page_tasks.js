/* Tasks of people. */
import { h, fill } from './dom.js';
import { post } from './api.js';
import { pageHead, tag, runLink, dialog, attempt, empty, toast, menu } from './ui.js';
import { when, ms } from './format.js';
import { reload } from './router.js';
import { pager } from './pager.js';
import { showJson } from './dialogs.js';

async function completeTask(task) {
  const done = await dialog({
    title: `Complete “${task.name}”`, action: 'Complete',
    fields: [{ name: 'outcome', label: 'Outcome', value: '' }, { name: 'result', label: 'Result (JSON)', type: 'json', value: '{}' }],
    act: (values) => post(`/v1/tasks/${task.id}/complete`, `{${[values.outcome && `"outcome":${JSON.stringify(values.outcome)}`, values.result.trim() && `"result":${values.result}`].filter(Boolean).join(',')}}`),
  });
  if (done) { toast('The task is completed'); reload(); }
}

function taskRow(task) {
  const late = ms(task.due_at) < Date.now();
  const open = task.status === 'open' || task.status === 'claimed';
  return h('li', { 'data-row': '' }, task.status === 'completed' ? tag('succeeded', 'check', 'Completed') : task.status === 'claimed' ? tag('leased', 'leased', 'Claimed') : task.status === 'cancelled' ? tag('cancelled', 'cancelled', 'Cancelled') : tag('waiting', 'tasks', 'Open'),
    h('div', { class: 'grow' }, h('div', { class: 'run-name' }, h('strong', null, task.name), task.run && h('span', { class: 'muted' }, 'of ', runLink(task.run))),
      h('div', { class: 'run-lately muted' }, task.assignee ? `with ${task.assignee}` : (task.roles ?? []).length ? `for ${[].concat(task.roles).join(', ')}` : 'for anybody')),
    task.due_at && h('span', { class: late && open ? 'bad' : 'muted' }, 'due ', when(task.due_at)),
    menu(`Actions for ${task.name}`, [
      { label: 'Look at it', icon: 'note', onclick: () => showJson(task.name, task) },
      ...(task.status === 'open' ? [{ label: 'Claim', icon: 'play', onclick: () => attempt(() => post(`/v1/tasks/${task.id}/claim`), 'It is yours').then(reload) }] : []),
      ...(task.status === 'claimed' ? [{ label: 'Release', icon: 'restore', onclick: () => attempt(() => post(`/v1/tasks/${task.id}/release`), 'It was given back').then(reload) }] : []),
      ...(open ? [{ label: 'Complete', icon: 'check', onclick: () => completeTask(task) }] : []),
    ]));
}

export function tasksPage({ main, signal, title }) {
  title('Tasks');
  fill(main, pageHead('Tasks', { about: 'What runs wait for people to do.' }),
    pager('/v1/tasks', {}, signal, { row: taskRow, label: 'Tasks', whenEmpty: () => empty('tasks', 'No tasks', h('p', { class: 'muted' }, 'No run waits for a person.')) }));
}
