/* Keys: one letter, or two in a row as in "g r". Nothing is heard while somebody types or a dialog is open. */
import { h } from './dom.js';
import { dialog } from './ui.js';
import { navigate } from './router.js';

const places = { o: '/', r: '/runs', w: '/workflows', s: '/schedules', k: '/workers', t: '/tasks', d: '/dead-letters', x: '/outbox', ',': '/settings' };
const placeNames = { o: 'Overview', r: 'Runs', w: 'Workflows', s: 'Schedules', k: 'Workers', t: 'Tasks', d: 'Dead letters', x: 'Outbox', ',': 'Settings' };
const actions = new Map();
let going = -Infinity;

export function onKey(key, action) {
  actions.set(key, action);
}

function rows() {
  return [...document.querySelectorAll('#main [data-row]')].filter((row) => row.offsetParent !== null);
}

function step(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((row) => row.classList.contains('current'));
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  all[at]?.classList.remove('current');
  next.classList.add('current');
  (next.querySelector('a[href]') ?? next).focus({ preventScroll: true });
  next.scrollIntoView({ block: 'nearest' });
}

function openCurrent() {
  const row = document.querySelector('#main [data-row].current');
  if (row?.dataset.href) navigate(row.dataset.href);
}

function selectCurrent() {
  document.querySelector('#main [data-row].current input[type=checkbox]')?.click();
}

/* Of the row, or of the run that the page is about. */
function copyId() {
  (document.querySelector('#main [data-row].current .id button') ?? document.querySelector('#main .facts .id button'))?.click();
}

function toActions() {
  document.querySelector('#main .bulk:not([hidden]) .bulk-actions button')?.focus();
}

export function showKeys() {
  const line = (keys, what) => h('div', { class: 'key-line' }, h('span', null, keys.map((key) => h('kbd', null, key))), h('span', null, what));
  dialog({
    title: 'Keys', action: null, cancel: 'Close',
    body: [
      line(['/'], 'search'), line(['j'], 'next in the list'), line(['k'], 'the one before'), line(['Enter'], 'open'), line(['x'], 'select'), line(['a'], 'to what can be done with those selected'), line(['c'], 'copy the id'),
      line(['r'], 'refresh'), line(['Esc'], 'close'), line(['?'], 'this'),
      Object.keys(places).map((key) => line(['g', key], placeNames[key])),
    ],
  });
}

const typing = (target) => target.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]');

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector('dialog[open]')) return;
  const key = event.key;
  if (performance.now() - going < 1200 && places[key]) {
    going = -Infinity;
    navigate(places[key]);
  } else if (key === 'g') {
    going = performance.now();
    return;
  } else if (key === 'j') step(1);
  else if (key === 'k') step(-1);
  else if (key === 'Enter' && !event.target.closest('a, button, summary')) openCurrent();
  else if (key === 'x') selectCurrent();
  else if (key === 'a') toActions();
  else if (key === 'c') copyId();
  else if (key === '?') showKeys();
  else if (actions.has(key)) actions.get(key)();
  else return;
  event.preventDefault();
});
