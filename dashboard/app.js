/* The shell: navigation, search, sign-in, the banner, and which page is shown. */
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { bus, session, setToken, watchConnection } from './api.js';
import { refreshTimes } from './format.js';
import { dialog, pageHead, empty, problemBox, button } from './ui.js';
import { route, start, reload, navigate } from './router.js';
import { onKey, showKeys } from './keys.js';
import { openPalette } from './palette.js';
import { overview } from './page_overview.js';
import { runsPage } from './page_runs.js';
import { runPage } from './page_run.js';
import { workflowsPage, workflowPage } from './page_workflows.js';
import { schedulesPage } from './page_schedules.js';
import { workersPage } from './page_workers.js';
import { deadLettersPage } from './page_dead_letters.js';
import { outboxPage } from './page_outbox.js';
import { tasksPage } from './page_tasks.js';
import { settingsPage, setTheme, theme } from './page_settings.js';

const pages = [
  ['/', 'Overview', 'overview'], ['/runs', 'Runs', 'runs'], ['/workflows', 'Workflows', 'workflows'], ['/schedules', 'Schedules', 'schedules'], ['/workers', 'Workers', 'workers'],
  ['/tasks', 'Tasks', 'tasks'], ['/dead-letters', 'Dead letters', 'dead'], ['/outbox', 'Outbox', 'outbox'], ['/settings', 'Settings', 'settings'],
];

route('/', overview);
route('/runs', runsPage);
route('/runs/{id}', runPage);
route('/workflows', workflowsPage);
route('/workflows/{name}', workflowPage);
route('/schedules', schedulesPage);
route('/workers', workersPage);
route('/tasks', tasksPage);
route('/dead-letters', deadLettersPage);
route('/outbox', outboxPage);
route('/settings', settingsPage);

const byId = (id) => document.getElementById(id);
const main = byId('main');
const sidebar = byId('sidebar');
const toggle = byId('menu-toggle');

/* ---- Navigation ---- */

const links = pages.map(([path, label, look]) => h('a', { href: path, class: 'nav-link' }, icon(look), h('span', null, label)));
byId('nav').append(...links);
fill(toggle, icon('menu'));
fill(byId('search-toggle'), icon('search'));
byId('search-button').prepend(icon('search'));

function setMenu(open) {
  sidebar.classList.toggle('open', open);
  toggle.setAttribute('aria-expanded', String(open));
  document.querySelector('.content').inert = open;
  if (open) links[0].focus();
}
toggle.addEventListener('click', () => setMenu(!sidebar.classList.contains('open')));
sidebar.addEventListener('keydown', (event) => { if (event.key === 'Escape') { setMenu(false); toggle.focus(); } });
document.addEventListener('pointerdown', (event) => { if (sidebar.classList.contains('open') && !sidebar.contains(event.target) && !toggle.contains(event.target)) setMenu(false); });

function markCurrent() {
  const path = location.pathname;
  pages.forEach(([start], i) => {
    const here = start === '/' ? path === '/' : path === start || path.startsWith(`${start}/`);
    if (here) links[i].setAttribute('aria-current', 'page');
    else links[i].removeAttribute('aria-current');
  });
}

/* ---- Theme ---- */

const looks = { '': ['auto', 'Theme: as the system'], light: ['sun', 'Theme: light'], dark: ['moon', 'Theme: dark'] };
const following = { '': 'light', light: 'dark', dark: '' };
const themeButton = h('button', { type: 'button', class: 'icon-button', onclick: () => { setTheme(following[theme()]); showTheme(); } });
function showTheme() {
  const [look, label] = looks[theme()];
  fill(themeButton, icon(look));
  themeButton.setAttribute('aria-label', label);
  themeButton.title = label;
}
showTheme();
byId('foot').append(themeButton, h('button', { type: 'button', class: 'icon-button', 'aria-label': 'Keys', title: 'Keys (?)', onclick: showKeys }, h('kbd', null, '?')));

/* ---- Pages ---- */

function setTitle(text) {
  document.title = text ? `${text} – Holdfast` : 'Holdfast';
}

let first = true;
function show({ page, params, query, signal, restore, back }) {
  setMenu(false);
  toggle.blur();
  markCurrent();
  if (!page) {
    setTitle('Not found');
    fill(main, pageHead('Not found'), empty('search', 'There is no such page', h('a', { class: 'button', href: '/' }, 'To the overview')));
    return;
  }
  try {
    page({ main, params, query, signal, back, title: setTitle });
  } catch (error) {
    console.error(error);
    fill(main, problemBox(error, reload));
  }
  if (!first) {
    scrollTo(0, restore);
    if (!restore || document.activeElement === document.body) main.focus({ preventScroll: true });
  }
  first = false;
}

main.addEventListener('click', (event) => {
  const row = event.target.closest('[data-row][data-href]');
  if (!row || event.target.closest('a, button, input, label, summary, .menu') || String(getSelection())) return;
  if (event.ctrlKey || event.metaKey) open(row.dataset.href);
  else navigate(row.dataset.href);
});

/* ---- The server is away, or wants a token ---- */

let wasAway = false;
watchConnection((state) => {
  const texts = { gone: ['The server cannot be reached.', 'What you see may be old. Trying again…'], store: ['The store does not answer.', 'The server is there, but its database is not. Trying again…'] };
  fill(byId('banner'), texts[state] && h('div', { class: 'banner' }, icon('alert'), h('strong', null, texts[state][0]), h('span', null, texts[state][1])));
  if (state === 'connected' && wasAway) reload();
  wasAway = state !== 'connected';
});

let asking = false;
bus.addEventListener('login', async () => {
  if (asking || document.querySelector('dialog[open]')) return;
  asking = true;
  const given = await dialog({
    title: 'Sign in', action: 'Sign in',
    body: h('p', { class: 'muted' }, session.token ? 'This token is not good any more, or was never.' : 'This server wants a token. Make one with `holdfast token create`.'),
    fields: [{ name: 'token', label: 'Token', type: 'password', required: true, placeholder: 'hf_…' }, { name: 'remember', label: 'Remember', type: 'checks', choices: [{ value: 'yes', label: 'on this machine, after the browser is closed' }] }],
    act: async (values) => {
      const answer = await fetch('/v1/me', { headers: { Authorization: `Bearer ${values.token.trim()}` }, credentials: 'omit' });
      if (answer.status === 401) throw new Error('This token is not known here.');
      setToken(values.token.trim(), values.remember.length > 0);
      return true;
    },
  });
  asking = false;
  if (given) reload();
  else fill(main, empty('key', 'Not signed in', button('Sign in', { kind: 'primary', onclick: () => bus.dispatchEvent(new Event('login')) })));
});

/* ---- Keys and the clock ---- */

onKey('/', openPalette);
onKey('r', reload);
byId('search-button').addEventListener('click', openPalette);
byId('search-toggle').addEventListener('click', openPalette);
setInterval(() => { if (!document.hidden) refreshTimes(); }, 1000);
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
start(show);
