/* The names of the workflows, for those who type one. */
import { h, fill } from './dom.js';
import { get } from './api.js';

const FRESH = 15000; /* ms that they are kept */
let names = [], readAt = -Infinity;

export const knownNames = () => names;

export async function workflowNames() {
  if (performance.now() - readAt < FRESH) return names;
  try {
    names = (await get('/v1/queues')).items.map((item) => item.name);
    readAt = performance.now();
  } catch { /* nothing is suggested */ }
  return names;
}

let serial = 0;

/* Lets an input suggest them. The engine's own are not for people to start. */
export function suggestWorkflows(input) {
  const list = h('datalist', { id: `names${++serial}` });
  input.setAttribute('list', list.id);
  input.addEventListener('focus', async () => fill(list, (await workflowNames()).filter((name) => !name.startsWith('holdfast.')).map((name) => h('option', { value: name }))), { once: true });
  return list;
}
