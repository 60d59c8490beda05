/* The pieces that pages are made of. */
import { h, fill, refill, twinOf } from './dom.js';
import { icon } from './icons.js';
import { isAbort, session } from './api.js';
import { shortId } from './format.js';
import { copyButton } from './json.js';

/* ---- Statuses ---- */

export const statuses = {
  pending: { label: 'Pending', about: 'due or delayed, no worker has it' },
  leased: { label: 'Running', about: 'leased: a worker works on it' },
  waiting: { label: 'Waiting', about: 'for a signal, a time or children' },
  paused: { label: 'Paused', about: 'until somebody resumes it' },
  succeeded: { label: 'Succeeded', about: 'finished' },
  failed: { label: 'Failed', about: 'for good: it is not tried again by itself' },
  cancelled: { label: 'Cancelled', about: 'by an operator or by its parent' },
};

export const isFinished = (status) => status === 'succeeded' || status === 'failed' || status === 'cancelled';

export function badge(status, label) {
  const known = statuses[status];
  return h('span', { class: `badge s-${status}`, title: known?.about }, icon(known ? status : 'note'), label ?? known?.label ?? status);
}

/* A badge of something that is no run's status; `tone` is one of the statuses' colours. */
export function tag(tone, iconName, text, title) {
  return h('span', { class: `badge s-${tone}`, title }, icon(iconName), text);
}

/* ---- Small things ---- */

export function button(label, { icon: name, kind = '', onclick, title, type = 'button', disabled, small, key } = {}) {
  return h('button', { type, class: `button ${kind}${small ? ' small' : ''}`, onclick, title, disabled, 'data-key': key }, name && icon(name), h('span', null, label));
}

export function runLink(id, text) {
  return h('a', { href: `/runs/${id}`, class: text ? null : 'mono' , title: id }, text ?? shortId(id));
}

/* In a row it is copied with the pointer or by its key, and is no stop of the way through the page. */
export function idText(id, inRow = false) {
  const copy = copyButton(id, 'Copy id');
  if (inRow) copy.tabIndex = -1;
  return h('span', { class: 'id' }, h('span', { class: 'mono', title: id }, shortId(id)), copy);
}

export function workflowLink(name) {
  return name ? h('a', { href: `/workflows/${encodeURIComponent(name)}` }, name) : h('span', { class: 'muted' }, '–');
}

export function pageHead(title, { crumbs = [], actions = [], about, extra } = {}) {
  return h('div', { class: 'page-head' },
    h('div', { class: 'page-title' },
      crumbs.length > 0 && h('div', { class: 'crumbs' }, crumbs.map(([label, path], i) => [i > 0 && h('span', { 'aria-hidden': 'true' }, '/'), path ? h('a', { href: path }, label) : h('span', { class: 'mono' }, label)])),
      h('h1', { tabindex: '-1' }, title),
      extra,
      about && h('p', { class: 'muted about' }, about)),
    h('div', { class: 'actions' }, actions));
}

export function card(title, body, { actions, id, about } = {}) {
  return h('section', { class: 'card', id, 'aria-label': title },
    h('div', { class: 'card-head' }, h('h2', null, title), about && h('span', { class: 'muted' }, about), actions && h('div', { class: 'card-actions' }, actions)),
    body);
}

export function meter(share, label) {
  const bar = h('span', { class: 'meter-bar' });
  bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h('span', { class: 'meter', role: 'img', 'aria-label': label, title: label }, bar);
}

/* ---- What there is instead of data ---- */

export function empty(iconName, title, ...text) {
  return h('div', { class: 'empty' }, h('span', { class: 'empty-icon' }, icon(iconName)), h('h2', null, title), text);
}

/* A page about something that is not there. */
export function notThere(what, crumbs, ...text) {
  return [pageHead(`No such ${what}`, { crumbs }), empty('search', `This ${what} is not here`, text,
    h('p', { class: 'muted' }, `It may be mistyped, removed, or of another tenant than ${session.token ? 'yours' : `“${session.tenant ?? 'default'}”`}.`), h('a', { class: 'button', href: crumbs[0][1] }, `All ${what}s`))];
}

export function command(text) {
  return h('div', { class: 'command' }, h('pre', { tabindex: '0', 'aria-label': 'Command' }, text), copyButton(text, 'Copy command'));
}

export function skeleton(rows = 6, kind = 'line') {
  return h('div', { class: 'skeletons', 'aria-hidden': 'true' }, Array.from({ length: rows }, (_, i) => h('div', { class: `skeleton ${kind} w${i % 3}` })));
}

/* While the server is away the banner says so, and what is shown stays. */
const isAway = (error) => error.status === 0 || error.status === 503;

export function problemBox(error, retry) {
  if (isAway(error)) return h('div', { class: 'problem away', role: 'status' }, icon('waiting'),
    h('div', null, h('strong', null, `Waiting for the ${error.status ? 'store' : 'server'}`), h('p', { class: 'muted' }, 'This is filled as soon as it answers.')), retry && button('Try again', { icon: 'refresh', onclick: retry }));
  return h('div', { class: 'problem', role: 'alert' }, icon('alert'),
    h('div', null, h('strong', null, error.title ?? 'Something went wrong'), error.detail && h('p', null, error.detail),
      !error.title && h('p', null, String(error.message ?? error)), error.status > 0 && h('p', { class: 'muted small' }, `HTTP ${error.status}${error.name ? ` · ${error.name}` : ''}`)),
    retry && button('Try again', { icon: 'refresh', onclick: retry }));
}

const showsSomething = (box) => box.firstChild && !box.querySelector(':scope > .skeletons, :scope > .problem');

/* Shows a skeleton, then what `load` gives, or the problem with a way to try again; `missing` gives what is shown when
 * there is no such thing. */
export async function loading(box, load, { rows = 6, kind, missing } = {}) {
  if (!box.firstChild) fill(box, skeleton(rows, kind));
  box.setAttribute('aria-busy', 'true');
  try {
    const made = await load();
    if (made !== undefined) refill(box, made);
  } catch (error) {
    if (isAbort(error) || (isAway(error) && showsSomething(box))) return;
    fill(box, missing && error.status === 404 ? missing(error) : problemBox(error, () => { fill(box); loading(box, load, { rows, kind, missing }); }));
    if (!error.title) console.error(error);
  } finally {
    box.removeAttribute('aria-busy');
  }
}

export function toast(text, kind = 'good') {
  const note = h('div', { class: `toast ${kind}` }, icon(kind === 'bad' ? 'alert' : 'check'), h('span', null, text),
    h('button', { type: 'button', class: 'icon-button small', 'aria-label': 'Dismiss', onclick: () => note.remove() }, icon('close')));
  document.getElementById('toasts').append(note);
  setTimeout(() => note.remove(), kind === 'bad' ? 10000 : 6000);
}

/* Does something for the user and says how it went. True: it worked. */
export async function attempt(work, done) {
  try {
    const value = await work();
    if (done) toast(typeof done === 'function' ? done(value) : done);
    return true;
  } catch (error) {
    if (!isAbort(error)) toast(error.detail || error.title || String(error.message ?? error), 'bad');
    return false;
  }
}

/* ---- Tables ---- */

/* columns: [{ name, class, cell(item) }] */
export function table(label, columns, items, { rowLink, rowClass } = {}) {
  return h('div', { class: 'table-wrap', tabindex: '0', role: 'group', 'aria-label': label },
    h('table', { class: 'table fields-table' },
      h('thead', null, h('tr', null, columns.map((column) => h('th', { scope: 'col', class: column.class }, column.name || h('span', { class: 'offscreen' }, 'Actions'))))),
      h('tbody', null, items.map((item) => {
        const row = h('tr', { class: rowClass?.(item), 'data-row': '' }, columns.map((column) => h('td', { class: column.class, 'data-label': column.name }, column.cell(item))));
        if (rowLink) row.dataset.href = rowLink(item);
        return row;
      }))));
}

/* ---- Dialogs ---- */

let serial = 0;

function control(field) {
  const id = `f${++serial}`;
  const shared = { id, name: field.name, required: field.required, placeholder: field.placeholder, 'aria-describedby': field.about ? `${id}-about` : null };
  let input;
  if (field.options) input = h('select', shared, field.options.map((option) => h('option', { value: option.value ?? option, selected: (option.value ?? option) === field.value }, option.label ?? option)));
  else if (field.type === 'json' || field.type === 'text') input = h('textarea', { ...shared, rows: field.rows ?? 5, class: field.type === 'json' ? 'mono' : null, spellcheck: 'false' });
  else if (field.type === 'checks') return h('fieldset', { class: 'field checks' }, h('legend', null, field.label), field.choices.map((choice) =>
    h('label', null, h('input', { type: 'checkbox', name: field.name, value: choice.value, checked: field.value?.includes(choice.value) }), h('span', null, choice.label, choice.about && h('small', { class: 'muted' }, choice.about)))));
  else input = h('input', { ...shared, type: field.type ?? 'text', min: field.min, max: field.max, autocomplete: 'off', spellcheck: 'false' });
  if (field.value !== undefined && field.value !== null && !field.options) input.value = field.value;
  return h('div', { class: 'field' }, h('label', { for: id }, field.label), input, field.suggest?.(input), field.about && h('small', { class: 'muted', id: `${id}-about` }, field.about));
}

function readFields(form, fields) {
  const values = {};
  for (const field of fields) {
    if (field.type === 'checks') {
      values[field.name] = [...form.querySelectorAll(`input[name="${field.name}"]:checked`)].map((box) => box.value);
      continue;
    }
    const text = form.elements[field.name].value;
    if (field.type === 'json' && text.trim()) {
      try { JSON.parse(text); } catch (error) { throw new Error(`${field.label}: ${error.message}`); }
    }
    values[field.name] = field.type === 'number' ? (text === '' ? null : Number(text)) : text;
  }
  return values;
}

/* Asks; `act(values)` does it while the dialog shows that it is under way, and what goes wrong stays in the dialog.
 * Gives what `act` gave, or null. */
export function dialog({ title, body, fields = [], action = 'OK', danger = false, act = (values) => values, cancel = 'Cancel', wide = false }) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const failure = h('p', { class: 'form-error', role: 'alert' });
    const submit = action && button(action, { kind: danger ? 'danger' : 'primary', type: 'submit' });
    const form = h('form', { method: 'dialog', novalidate: false }, h('h2', { id: `d${++serial}` }, title), body && h('div', { class: 'dialog-body' }, body), fields.map(control), failure,
      h('div', { class: 'dialog-actions' }, button(cancel, { onclick: () => close(null) }), submit));
    const box = h('dialog', { class: wide ? 'wide' : null, 'aria-labelledby': `d${serial}` }, form);
    box.setAttribute('aria-labelledby', form.querySelector('h2').id);
    function close(value) {
      box.close();
      box.remove();
      ((before?.isConnected ? before : before && twinOf(before)) ?? document.getElementById('main')).focus({ preventScroll: true });
      resolve(value);
    }
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      if (!submit || submit.disabled) return;
      failure.textContent = '';
      submit.disabled = true;
      submit.classList.add('busy');
      try {
        close((await act(readFields(form, fields), failure)) ?? true);
      } catch (error) {
        failure.textContent = error.detail || error.title || error.message;
        submit.disabled = false;
        submit.classList.remove('busy');
      }
    });
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && submit) { event.preventDefault(); form.requestSubmit(submit); }
    });
    box.addEventListener('cancel', (event) => { event.preventDefault(); close(null); });
    document.body.append(box);
    box.showModal();
    (form.querySelector('.field input, .field textarea, .field select') ?? submit ?? form.querySelector('button')).focus();
  });
}

/* ---- Menus ---- */

/* items: [{ label, icon, danger, onclick }] */
export function menu(label, items) {
  const list = h('div', { class: 'menu', role: 'menu', hidden: true }, items.map((item) =>
    h('button', { type: 'button', role: 'menuitem', tabindex: '-1', class: item.danger ? 'danger' : null, onclick: () => { close(); item.onclick(); } }, icon(item.icon), item.label)));
  const opener = h('button', { type: 'button', class: 'button', 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': label, title: label, onclick: () => (list.hidden ? open() : close()) }, icon('more'));
  const box = h('div', { class: 'menu-box' }, opener, list);
  const outside = (event) => { if (!box.contains(event.target)) close(false); };
  const away = () => close(false);
  /* Fixed, so that a table that scrolls does not cut it off. */
  function place() {
    const at = opener.getBoundingClientRect();
    const below = innerHeight - at.bottom > list.offsetHeight + 8;
    list.style.top = `${below ? at.bottom + 4 : at.top - list.offsetHeight - 4}px`;
    list.style.right = `${document.documentElement.clientWidth - at.right}px`;
  }
  function open() {
    list.hidden = false;
    place();
    opener.setAttribute('aria-expanded', 'true');
    list.firstElementChild?.focus({ preventScroll: true });
    document.addEventListener('pointerdown', outside);
    addEventListener('scroll', away, { capture: true, once: true });
  }
  function close(back = true) {
    list.hidden = true;
    opener.setAttribute('aria-expanded', 'false');
    document.removeEventListener('pointerdown', outside);
    removeEventListener('scroll', away, { capture: true });
    if (back) opener.focus();
  }
  opener.addEventListener('keydown', (event) => { if (event.key === 'ArrowDown' && list.hidden) { event.preventDefault(); open(); } });
  list.addEventListener('keydown', (event) => {
    const buttons = [...list.children];
    const at = buttons.indexOf(document.activeElement);
    if (event.key === 'ArrowDown') buttons[(at + 1) % buttons.length].focus();
    else if (event.key === 'ArrowUp') buttons[(at + buttons.length - 1) % buttons.length].focus();
    else if (event.key === 'Home') buttons[0].focus();
    else if (event.key === 'End') buttons.at(-1).focus();
    else if (event.key === 'Escape') close();
    else {
      if (event.key === 'Tab') close(); /* and on, from the button that opened it */
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
  return box;
}
