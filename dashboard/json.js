/* JSON as it was written: numbers keep every digit, so the text is cut and laid out, never parsed and printed again. */
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { bytes } from './format.js';

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/* The members of an object, name to raw text. */
export function members(text) {
  const found = new Map();
  const matcher = new RegExp(token.source, 'g');
  let depth = 0, name = null, start = -1, end = -1, match;
  while ((match = matcher.exec(text))) {
    const part = match[0];
    if (depth === 1 && name !== null && (part === ',' || part === '}')) {
      if (start >= 0) found.set(name, text.slice(start, end));
      name = null;
      start = -1;
    } else if (depth === 1 && name === null && part[0] === '"') {
      name = JSON.parse(part);
      continue;
    } else if (depth === 1 && part === ':' && start < 0) {
      continue;
    } else if (name !== null && start < 0) {
      start = match.index;
    }
    if (part === '{' || part === '[') depth++;
    else if (part === '}' || part === ']') depth--;
    end = match.index + part.length;
  }
  return found;
}

/* The elements of an array, as raw text. */
function elements(text) {
  const found = [];
  const matcher = new RegExp(token.source, 'g');
  let depth = 0, start = -1, end = -1, match;
  while ((match = matcher.exec(text))) {
    const part = match[0];
    if (depth === 1 && (part === ',' || part === ']')) {
      if (start >= 0) found.push(text.slice(start, end));
      start = -1;
    } else if (depth === 1 && start < 0) {
      start = match.index;
    }
    if (part === '{' || part === '[') depth++;
    else if (part === '}' || part === ']') depth--;
    end = match.index + part.length;
  }
  return found;
}

/* The raw text of each item of a list that the server answered with. */
export const rawItems = (text) => elements(members(text).get('items'));

/* Marks that turn the text around or cannot be seen, as JSON escapes them: nothing hides behind them. */
const shown = (text) => text.replace(/[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);

/* Calls emit(text, class) for each piece of the laid out JSON. */
function layOut(text, emit) {
  const matcher = new RegExp(token.source, 'g');
  let depth = 0, match, before = '';
  const line = () => `\n${'  '.repeat(depth)}`;
  while ((match = matcher.exec(text))) {
    const part = match[0];
    if (part === '}' || part === ']') {
      depth--;
      emit((before === '{' || before === '[' ? '' : line()) + part, 'p');
    } else {
      if (before === '{' || before === '[' || before === ',') emit(line(), '');
      if (part === '{' || part === '[') {
        depth++;
        emit(part, 'p');
      } else if (part === ',') emit(',', 'p');
      else if (part === ':') emit(': ', 'p');
      else if (part[0] === '"') emit(shown(part), isName(text, match.index + part.length) ? 'k' : 's');
      else emit(part, /^-?\d/.test(part) ? 'n' : 'b');
    }
    before = part;
  }
}

function isName(text, at) {
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\t' || text[at] === '\r') at++;
  return text[at] === ':';
}

export function pretty(text) {
  const parts = [];
  layOut(text, (part) => parts.push(part));
  return parts.join('');
}

const MOST_COLOURED = 60000;
const MOST_LINES = 24;
const MOST_SHOWN = 4000;

/* Lines within a string begin a line, for those who read the stack in an error. */
const broken = (part) => part.replace(/(?<!\\)((?:\\\\)*\\n)(?!")/g, '$1\n');

function coloured(text) {
  const pre = h('pre', { class: 'json', tabindex: '0' });
  if (text.length > MOST_COLOURED) {
    pre.textContent = broken(pretty(text));
    return pre;
  }
  let run = '', kind = '';
  const flush = () => {
    if (run) pre.append(kind ? h('span', { class: `j-${kind}` }, run) : run);
    run = '';
  };
  layOut(text, (part, next) => {
    if (next !== kind) {
      flush();
      kind = next;
    }
    run += next === 's' ? broken(part) : part;
  });
  flush();
  return pre;
}

function shortened(text) {
  const laid = broken(pretty(text.length > MOST_SHOWN * 4 ? text.slice(0, MOST_SHOWN * 4) : text));
  return laid.split('\n').slice(0, MOST_LINES).join('\n').slice(0, MOST_SHOWN);
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'offscreen', value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

export function copyButton(text, label = 'Copy') {
  const button = h('button', { type: 'button', class: 'icon-button small', 'aria-label': label, title: label }, icon('copy'));
  button.addEventListener('click', async (event) => {
    event.preventDefault();
    event.stopPropagation();
    if (!(await copyText(typeof text === 'function' ? text() : text))) return;
    const show = (look, text) => { fill(button, icon(look)); button.ariaLabel = button.title = text; button.classList.toggle('done', look === 'check'); };
    show('check', 'Copied');
    setTimeout(show, 1200, 'copy', label);
  });
  return button;
}

/* A view of raw JSON; a large one shows its beginning and opens when asked. */
export function jsonView(text, label) {
  const box = h('div', { class: 'json-view' });
  const large = text.length > MOST_SHOWN || broken(pretty(text.slice(0, MOST_SHOWN))).split('\n').length > MOST_LINES + 4;
  const show = (all) => {
    const view = all || !large ? coloured(text) : h('pre', { class: 'json cut', tabindex: '0' }, shortened(text));
    view.setAttribute('aria-label', label);
    view.setAttribute('role', 'group');
    fill(box, view, large && h('button', { type: 'button', class: 'button ghost small', onclick: () => show(!all) },
      all ? 'Show less' : `Show all (${bytes(text.length)})`));
  };
  show(false);
  return box;
}
