/* Elements. What comes from the store becomes text nodes and attributes: nothing here reads markup. */

function add(parent, child) {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) for (const one of child) add(parent, one);
  else parent.append(child instanceof Node ? child : String(child));
}

function setProperty(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
  else if (name === 'class') element.setAttribute('class', value);
  else if (name === 'style') for (const key in value) element.style.setProperty(key, value[key]);
  else if (name === 'value') element.value = value;
  else element.setAttribute(name, value === true ? '' : value);
}

/* h('p', { class: 'x', onclick: f }, 'text', [more]) */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const name in properties) setProperty(element, name, properties[name]);
  add(element, children);
  if (tag === 'select' && properties?.value !== undefined) element.value = properties.value;
  return element;
}

export function svg(tag, properties, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const name in properties) setProperty(element, name, properties[name]);
  add(element, children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

const nameOf = (element) => element.getAttribute('href') ?? element.getAttribute('aria-label') ?? element.textContent;
/* What took the place of an element that was shown before. */
export const twinOf = (element, within = document) => [...within.querySelectorAll(element.localName)].find((one) => nameOf(one) === nameOf(element));

const rowOf = (row) => row.dataset.href ?? row.firstElementChild?.textContent;

/* The same for what is shown already and brought up to date: who is at one of its links or buttons, or at a row, stays there. */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const current = element.querySelector('[data-row].current');
  fill(element, ...children);
  if (current) [...element.querySelectorAll('[data-row]')].find((row) => rowOf(row) === rowOf(current))?.classList.add('current');
  if (focused && focused !== element) twinOf(focused, element)?.focus({ preventScroll: true });
}

/* Makes the children of `parent` those of `items`, by key; elements that stay are not made anew, so that what is selected,
 * focused or being animated goes on. `make(item)` gives an element; `update(element, item)` brings one up to date. */
export function reconcile(parent, items, keyOf, make, update) {
  const old = new Map();
  for (const child of parent.children) if (child.dataset.key !== undefined) old.set(child.dataset.key, child);
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let element = old.get(key);
    if (element) {
      old.delete(key);
      update?.(element, item);
    } else {
      element = make(item);
      element.dataset.key = key;
    }
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  for (const element of old.values()) element.remove();
}
