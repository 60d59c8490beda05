/* Search: by id, by workflow/key, by workflow, key, subject or tag. */
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { get, query } from './api.js';
import { navigate } from './router.js';
import { knownNames, workflowNames } from './names.js';

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

async function openByKey(workflow, key) {
  try {
    const run = await get(`/v1/workflows/${encodeURIComponent(workflow)}/runs/${encodeURIComponent(key)}`);
    navigate(`/runs/${run.id}`);
  } catch {
    navigate(`/runs${query({ workflow, key })}`);
  }
}

function suggestions(text, workflows) {
  const found = [];
  const say = (iconName, label, value, go) => found.push({ iconName, label, value, go });
  if (uuid.test(text)) say('runs', 'Open run', text, () => navigate(`/runs/${text.toLowerCase()}`));
  const slash = text.indexOf('/');
  if (slash > 0) say('key', 'Open run by workflow and key', text, () => openByKey(text.slice(0, slash), text.slice(slash + 1)));
  for (const name of workflows.filter((one) => one.toLowerCase().includes(text.toLowerCase())).slice(0, 6)) {
    say('workflows', 'Workflow', name, () => navigate(`/workflows/${encodeURIComponent(name)}`));
  }
  if (text && !uuid.test(text)) {
    say('runs', 'Runs with the key', text, () => navigate(`/runs${query({ key: text })}`));
    say('runs', 'Runs about the subject', text, () => navigate(`/runs${query({ subject: text })}`));
    say('runs', 'Runs with the tag', text, () => navigate(`/runs${query({ tag: text })}`));
    say('runs', 'Runs of workflows that begin with', text, () => navigate(`/runs${query({ prefix: text })}`));
  }
  if (!text) {
    say('alert', 'Runs that', 'failed', () => navigate('/runs?status=failed'));
    say('runs', 'Runs that', 'are running', () => navigate('/runs?status=leased'));
    say('schedules', 'Runs that', 'are overdue', () => navigate('/runs?overdue=true'));
  }
  return found;
}

export function openPalette() {
  if (document.querySelector('dialog[open]')) return;
  let found = [], chosen = 0, workflows = knownNames();
  const input = h('input', { type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-label': 'Search runs and workflows', placeholder: 'Id, workflow/key, workflow, key, tag…', autocomplete: 'off', spellcheck: 'false' });
  const list = h('ul', { class: 'palette-list', id: 'palette-list', role: 'listbox', 'aria-label': 'Suggestions' });
  const box = h('dialog', { class: 'palette', 'aria-label': 'Search' }, h('div', { class: 'palette-input' }, icon('search'), input, h('kbd', null, 'Esc')), list);
  const close = () => { box.close(); box.remove(); };
  const choose = (index) => { const one = found[index]; close(); one?.go(); };
  function show() {
    found = suggestions(input.value.trim(), workflows);
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    fill(list, found.map((one, i) => h('li', { role: 'option', id: `p${i}`, 'aria-selected': i === chosen ? 'true' : 'false', onclick: () => choose(i) },
      icon(one.iconName), h('span', { class: 'muted' }, one.label), h('span', { class: 'palette-value' }, one.value))));
    if (found.length) input.setAttribute('aria-activedescendant', `p${chosen}`);
    else input.removeAttribute('aria-activedescendant');
  }
  input.addEventListener('input', () => { chosen = 0; show(); });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') chosen = (chosen + 1) % Math.max(1, found.length);
    else if (event.key === 'ArrowUp') chosen = (chosen + found.length - 1) % Math.max(1, found.length);
    else if (event.key === 'Enter') { event.preventDefault(); choose(chosen); return; }
    else return;
    event.preventDefault();
    show();
  });
  box.addEventListener('click', (event) => { if (event.target === box) close(); });
  box.addEventListener('cancel', (event) => { event.preventDefault(); close(); });
  document.body.append(box);
  box.showModal();
  input.focus();
  show();
  workflowNames().then((all) => { workflows = all; if (box.isConnected) show(); });
}
