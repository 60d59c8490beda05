import { h, fill } from './dom.js';
import { ask, query } from './api.js';
import { button, loading, attempt } from './ui.js';
import { rawItems } from './json.js';

/* It works once at a time: a page that was asked for twice would be shown twice. */
export function moreButton(load, options) {
  const node = button('Load more', { ...options, onclick: async () => { node.disabled = true; await attempt(load); node.disabled = false; } });
  return node;
}

/* Pages of a list by its cursor, below one another. `row(item, text)` gives an element; the text is the item as the server wrote it. */
export function pager(path, filter, signal, { row, whenEmpty, label }) {
  const list = h('ul', { class: 'lines' });
  const more = h('div', { class: 'list-more' });
  const box = h('div');
  async function add(cursor) {
    const { text, json: page } = await ask('GET', `${path}${query({ ...filter, cursor, limit: 50 })}`, { signal });
    const raw = rawItems(text);
    list.append(...page.items.map((item, i) => row(item, raw[i])));
    fill(more, page.next && moreButton(() => add(page.next)));
    return page.items.length;
  }
  loading(box, async () => ((await add()) === 0 ? whenEmpty() : h('section', { class: 'card', 'aria-label': label }, list, more)), { rows: 5, kind: 'row' });
  return box;
}
