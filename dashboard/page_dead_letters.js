/* Dead letters. */
import { h, fill } from './dom.js';
import { post, remove } from './api.js';
import { pageHead, tag, runLink, empty, menu } from './ui.js';
import { when } from './format.js';
import { pager } from './pager.js';
import { members } from './json.js';
import { showJson, sure } from './dialogs.js';

function letterRow(letter, text) {
  const envelope = letter.envelope ?? {};
  const raw = members(text).get('envelope');
  const [kind, ...why] = letter.reason.split(': ');
  return h('li', { 'data-row': '' }, tag('failed', 'dead', kind),
    h('div', { class: 'grow' }, h('div', { class: 'run-name' }, h('strong', null, envelope.name ?? envelope.type ?? 'mail'), letter.run && h('span', { class: 'muted' }, 'to ', runLink(letter.run))),
      why.length > 0 && h('div', { class: 'run-lately bad', title: letter.reason }, why.join(': ')),
      h('div', { class: 'run-lately muted mono' }, (typeof envelope.payload === 'string' ? envelope.payload : members(raw).get('payload') ?? raw).slice(0, 160))),
    when(letter.created_at),
    menu('Actions for this letter', [
      { label: 'Look at it', icon: 'note', onclick: () => showJson('Dead letter', text) },
      { label: 'Send again', icon: 'retry', onclick: () => sure('Send it again?', 'Send again', 'It goes back into the mailbox of its run as new mail.', false, () => post(`/v1/dead-letters/${letter.id}/requeue`), 'It was sent again') },
      { label: 'Discard', icon: 'trash', danger: true, onclick: () => sure('Discard it?', 'Discard letter', 'It is removed for good.', true, () => remove(`/v1/dead-letters/${letter.id}`), 'It was discarded') },
    ]));
}

export function deadLettersPage({ main, signal, title }) {
  title('Dead letters');
  fill(main, pageHead('Dead letters', { about: 'Mail on which its run failed again and again, taken out so that the run could go on.' }),
    pager('/v1/dead-letters', {}, signal, { row: letterRow, label: 'Dead letters', whenEmpty: () => empty('dead', 'No dead letters', h('p', { class: 'muted' }, 'All mail could be handled.')) }));
}
