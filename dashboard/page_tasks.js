/* Tasks: questions of runs to people, and the form to answer them. */
import { h, fill } from './dom.js';
import { post } from './api.js';
import { pageHead, button, tag, runLink, workflowLink, dialog, attempt, empty, command, toast, menu } from './ui.js';
import { when, ms } from './format.js';
import { jsonView, members } from './json.js';
import { reload, navigate } from './router.js';
import { pager } from './pager.js';

const tones = { open: ['waiting', 'tasks', 'Open'], claimed: ['leased', 'leased', 'Claimed'], completed: ['succeeded', 'check', 'Completed'], cancelled: ['cancelled', 'cancelled', 'Cancelled'] };
const pending = (task) => task.status === 'open' || task.status === 'claimed';
const taskPath = (task, action) => `/v1/tasks/${task.id}/${action}`;

/* The parts of a task that are JSON of its workflow: what it is about, how to ask, what was answered. */
function parts(task, text) {
  const raw = members(text);
  return [['About', 'payload'], ['Form', 'form'], ['Answer', 'result']].map(([label, name]) => [label, raw.get(name) ?? 'null']).filter(([, value]) => value !== 'null')
    .map(([label, value]) => h('div', { class: 'task-part' }, h('h3', null, label), jsonView(value, `${label} of ${task.name}`)));
}

async function answer(task, text) {
  const about = parts(task, text);
  const done = await dialog({
    title: `Answer “${task.name}”`, action: 'Send answer', body: about, wide: about.length > 0,
    fields: [
      { name: 'outcome', label: 'Outcome', required: true, placeholder: 'approved', about: 'The answer in a word, as the workflow expects it.' },
      { name: 'result', label: 'Result', type: 'json', rows: 4, value: '', placeholder: '{"note": "fine"}', about: 'What else there is to say, as JSON; it may stay empty. Ctrl+Enter sends the answer.' },
    ],
    act: (values) => post(taskPath(task, 'complete'), `{"outcome":${JSON.stringify(values.outcome)}${values.result.trim() && `,"result":${values.result}`}}`),
  });
  if (done) { toast('The run has its answer'); reload(); }
}

async function reassign(task) {
  const done = await dialog({
    title: `Give “${task.name}” to somebody`, action: 'Give',
    fields: [{ name: 'assignee', label: 'Who has it from now on', value: task.assignee ?? '', about: 'Nobody: everybody may take it.' }],
    act: (values) => post(taskPath(task, 'reassign'), values.assignee.trim() ? { assignee: values.assignee.trim() } : {}),
  });
  if (done) { toast('It was given away'); reload(); }
}

function whose(task) {
  const roles = [].concat(task.roles ?? []);
  if (task.assignee) return task.status === 'completed' ? ['answered by ', h('strong', null, task.assignee)] : [task.status === 'claimed' ? 'claimed by ' : 'for ', h('strong', null, task.assignee)];
  return roles.length ? ['for ', roles.map((role) => h('span', { class: 'chip' }, role))] : 'for anybody';
}

function due(task) {
  if (!task.due_at) return null;
  const late = pending(task) && ms(task.due_at) < Date.now();
  return h('span', { class: late ? 'bad' : 'muted' }, late ? 'was due ' : 'due ', when(task.due_at));
}

function actions(task) {
  const move = (label, icon, action, done) => ({ label, icon, onclick: () => attempt(() => post(taskPath(task, action)), done).then(reload) });
  return menu(`More for ${task.name}`, [
    task.status === 'open' ? move('Claim', 'play', 'claim', 'It is yours') : move('Release', 'restore', 'release', 'It was given back'),
    { label: 'Give to somebody', icon: 'workers', onclick: () => reassign(task) },
  ]);
}

function taskRow(task, text) {
  const more = parts(task, text);
  return h('li', { 'data-row': '', class: 'task' },
    h('div', { class: 'task-state' }, tag(...(tones[task.status] ?? ['pending', 'note', task.status]))),
    h('div', { class: 'grow' },
      h('div', { class: 'run-name' }, h('strong', null, task.name), h('span', { class: 'muted' }, 'of ', runLink(task.run), ' · ', workflowLink(task.workflow))),
      h('div', { class: 'task-facts muted small' }, h('span', null, whose(task)), due(task), h('span', null, 'asked ', when(task.created_at)), task.outcome && h('span', null, 'outcome ', h('strong', null, task.outcome))),
      more.length > 0 && h('details', { class: 'task-more' }, h('summary', null, 'What it is about'), more)),
    pending(task) && h('div', { class: 'task-actions' }, button('Answer', { icon: 'check', kind: 'primary', small: true, onclick: () => answer(task, text) }), actions(task)));
}

export function tasksPage({ main, signal, title, query: params }) {
  title('Tasks');
  const ended = params.get('status') === 'ended';
  const tab = (label, on, path) => h('button', { type: 'button', 'aria-pressed': String(on), onclick: () => navigate(path) }, label);
  const none = ended ? () => empty('tasks', 'None has ended yet', h('p', { class: 'muted' }, 'Tasks that were answered or withdrawn stay here until their run is removed.'))
    : () => empty('tasks', 'No tasks', h('p', { class: 'muted' }, 'No run waits for a person. A program that a worker runs asks one so:'), command('holdfast ask approval \'{"amount": 700}\' --title "Approve the discount" --role boss'));
  fill(main, pageHead('Tasks', { about: 'What runs wait for people to do.', actions: h('div', { class: 'tabs', role: 'group', 'aria-label': 'Which tasks' }, tab('To do', !ended, '/tasks'), tab('Ended', ended, '/tasks?status=ended')) }),
    pager('/v1/tasks', ended ? { status: 'completed,cancelled' } : { by_due: 'true' }, signal, { row: taskRow, label: 'Tasks', whenEmpty: none }));
}
