/* Settings: theme, tenant, tokens, the server. */
import { h, fill } from './dom.js';
import { get, post, remove, session, setToken, setTenant } from './api.js';
import { pageHead, card, button, loading, table, tag, dialog, toast, idText } from './ui.js';
import { when } from './format.js';
import { showSecret } from './dialogs.js';
import { reload } from './router.js';

const roles = [
  { value: 'read', label: 'read', about: 'see everything' }, { value: 'trigger', label: 'trigger', about: 'start runs, send signals' }, { value: 'work', label: 'work', about: 'claim and commit runs' },
  { value: 'operate', label: 'operate', about: 'cancel, pause, retry, delete; workflows and schedules' }, { value: 'admin', label: 'admin', about: 'everything in the tenant' }, { value: 'root', label: 'root', about: 'tenants' },
];

export function setTheme(theme) {
  try {
    if (theme) localStorage.setItem('holdfast.theme', theme);
    else localStorage.removeItem('holdfast.theme');
  } catch { /* it lasts as long as the page */ }
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

export const theme = () => document.documentElement.dataset.theme ?? '';

function themeChoice() {
  const choice = (value, label) => h('button', { type: 'button', 'aria-pressed': String(theme() === value), onclick: (event) => {
    setTheme(value);
    for (const one of event.currentTarget.parentElement.children) one.setAttribute('aria-pressed', String(one === event.currentTarget));
  } }, label);
  return h('div', { class: 'setting' }, h('div', null, h('strong', null, 'Theme'), h('p', { class: 'muted' }, 'Light, dark, or as your system has it.')), h('div', { class: 'tabs', role: 'group', 'aria-label': 'Theme' }, choice('', 'System'), choice('light', 'Light'), choice('dark', 'Dark')));
}

function tenantChoice(signal) {
  const box = h('div', { class: 'setting' });
  if (session.token) {
    const who = h('p', { class: 'muted' }, 'This browser sends a token.');
    get('/v1/me', { signal }).then((me) => { who.textContent = `${me.actor}, in the tenant ${me.tenant}: ${me.roles.join(', ')}`; }).catch(() => {});
    fill(box, h('div', null, h('strong', null, 'Signed in'), who), button('Sign out', { onclick: () => { setToken(null); location.assign('/'); } }));
    return box;
  }
  const show = (names) => fill(box, h('div', null, h('label', { for: 'tenant' }, h('strong', null, 'Tenant')), h('p', { class: 'muted' }, 'Whose runs are shown.')),
    h('select', { id: 'tenant', value: session.tenant ?? 'default', onchange: (event) => { setTenant(event.target.value === 'default' ? null : event.target.value); reload(); toast(`Showing the tenant ${event.target.value}`); } }, names.map((name) => h('option', { value: name }, name))));
  show([session.tenant ?? 'default']);
  get('/v1/tenants', { signal }).then((list) => show(list.items.map((one) => one.name))).catch(() => {});
  return box;
}

/* From the first token on everybody needs one, so the browser that made it goes on with it. */
async function createToken() {
  const first = !session.token;
  const made = await dialog({
    title: first ? 'The first token' : 'New token', action: 'Create',
    body: first && h('p', { class: 'muted' }, 'From now on everybody needs a token. This browser goes on with this one, so let it be an admin’s.'),
    fields: [
      { name: 'name', label: 'Name', required: true, placeholder: 'billing-service', about: 'Who uses it: the actor in the journal.' },
      { name: 'roles', label: 'May', type: 'checks', choices: roles, value: first ? ['admin', 'root'] : ['read'] },
      { name: 'lifetime', label: 'Expires after', placeholder: 'never', about: 'As in 24h or 90d.' },
    ],
    act: (values) => {
      if (values.roles.length === 0) throw new Error('Choose at least one role');
      return post('/v1/tokens', { name: values.name, roles: values.roles, ...(values.lifetime ? { lifetime: values.lifetime } : {}) });
    },
  });
  if (!made) return;
  if (first) setToken(made.secret, false);
  await showSecret('The new token', made.secret, 'Send it as “Authorization: Bearer …”.');
  reload();
}

async function revoke(token) {
  const done = await dialog({ title: `Revoke ${token.name}?`, action: 'Revoke token', cancel: 'Back', danger: true, body: h('p', { class: 'muted' }, 'Whoever uses it is refused from now on. This cannot be undone.'),
    act: () => remove(`/v1/tokens/${token.id}`) });
  if (done) { toast('The token was revoked'); reload(); }
}

function tokenState(token) {
  if (token.revoked_at) return tag('cancelled', 'stop', 'Revoked', token.revoked_by ? `by ${token.revoked_by}` : null);
  if (token.expires_at && Date.parse(token.expires_at) < Date.now()) return tag('cancelled', 'schedules', 'Expired');
  return tag('succeeded', 'check', 'Good');
}

function tokens(signal) {
  const box = h('div');
  loading(box, async () => {
    let all;
    try { all = (await get('/v1/tokens', { signal })).items; } catch (error) {
      if (error.status === 403) return h('p', { class: 'muted pad' }, 'Your token does not allow you to see tokens: that takes the role admin.');
      throw error;
    }
    if (all.length === 0) return h('p', { class: 'muted pad' }, 'There are no tokens yet. As long as there are none, the server listens to this machine alone.');
    return table('Tokens', [
      { name: 'Name', class: 'c-name', cell: (token) => [h('strong', null, token.name), h('div', { class: 'muted small' }, idText(token.id))] },
      { name: 'State', cell: tokenState },
      { name: 'May', class: 'c-wide', cell: (token) => (token.roles ?? []).map((role) => h('span', { class: 'chip' }, role)) },
      { name: 'Made', class: 'c-num', cell: (token) => [when(token.created_at), token.created_by && h('div', { class: 'muted small' }, token.created_by)] },
      { name: 'Expires', class: 'c-num', cell: (token) => when(token.expires_at, 'never') },
      { name: '', class: 'c-menu', cell: (token) => !token.revoked_at && button('Revoke', { small: true, kind: 'danger-text', onclick: () => revoke(token) }) },
    ], all);
  }, { rows: 3, kind: 'row' });
  return box;
}

export function settingsPage({ main, signal, title }) {
  title('Settings');
  const server = h('div');
  fill(main, pageHead('Settings'), card('This browser', [themeChoice(), tenantChoice(signal)]), card('Tokens', tokens(signal), { actions: button('New token', { icon: 'plus', small: true, onclick: createToken }) }), card('Server', server));
  loading(server, async () => {
    const { info, paths } = await get('/v1/openapi.json', { signal });
    const count = Object.values(paths).reduce((sum, path) => sum + Object.keys(path).length, 0);
    let ready = 'ready';
    try { const answer = await fetch('/readyz'); if (!answer.ok) ready = 'its store does not answer'; } catch { ready = 'not reached'; }
    const fact = (name, value) => h('div', { class: 'fact' }, h('dt', null, name), h('dd', null, value));
    return h('dl', { class: 'facts' }, fact('Version', info.version), fact('Address', location.origin), fact('State', ready), fact('Routes', String(count)), fact('API', h('a', { href: '/v1/openapi.json' }, 'OpenAPI document')));
  }, { rows: 2 });
}
