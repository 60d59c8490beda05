import { h, fill } from './dom.js';
import { get, query } from './api.js';
import { button, loading, attempt } from './ui.js';

/* Pages of a list by its cursor, below one another. `row(item)` gives an element. */
export function pager(path, filter, signal, { row, whenEmpty, label }) {
  const list = h('ul', { class: 'lines' });
  const more = h('div', { class: 'list-more' });
  const box = h('div');
  async function add(cursor) {
    const page = await get(`${path}${query({ ...filter, cursor, limit: 50 })}`, { signal });
    list.append(...page.items.map(row));
    fill(more, page.next && button('Load more', { onclick: () => attempt(() => add(page.next)) }));
    return page.items.length;
  }
  loading(box, async () => ((await add()) === 0 ? whenEmpty() : h('section', { class: 'card', 'aria-label': label }, list, more)), { rows: 5, kind: 'row' });
  return box;
}
