/* Dialogs that several pages open. */
import { h } from './dom.js';
import { dialog, toast } from './ui.js';
import { jsonView, copyButton } from './json.js';
import { reload } from './router.js';

export function showJson(title, text) {
  dialog({ title, action: null, cancel: 'Close', wide: true, body: [h('div', { class: 'right' }, copyButton(text)), jsonView(text, title)] });
}

/* Asks before it acts. */
export async function sure(title, action, text, danger, act, done) {
  if (await dialog({ title, action, cancel: 'Back', danger, body: h('p', { class: 'muted' }, text), act })) { toast(done); reload(); }
}

export function showSecret(title, secret, about) {
  return dialog({ title, action: null, cancel: 'I have copied it', body: [h('p', { class: 'muted' }, `${about} It is shown this once.`), h('div', { class: 'command secret' }, h('pre', { tabindex: '0', 'aria-label': 'Secret' }, secret), copyButton(secret, 'Copy secret'))] });
}
