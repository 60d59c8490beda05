/* Talking to the server: requests, problems, the token, and streams of events. */

class Problem extends Error {
  constructor(status, name, title, detail) {
    super(detail || title);
    this.status = status;   /* 0: the server was not reached */
    this.name = name;
    this.title = title;
    this.detail = detail;
  }
}

/* 'state' (connected, store, gone) and 'login' are told here. */
export const bus = new EventTarget();
const connection = { state: 'connected' };

const store = {
  get(key) {
    try { return sessionStorage.getItem(key) ?? localStorage.getItem(key); } catch { return null; }
  },
  set(key, value, keep) {
    try {
      sessionStorage.removeItem(key);
      localStorage.removeItem(key);
      if (value) (keep ? localStorage : sessionStorage).setItem(key, value);
    } catch { /* storage may be off: it then lasts as long as the page */ }
  },
};

export const session = { token: store.get('holdfast.token'), tenant: store.get('holdfast.tenant') };

export function setToken(token, remember) {
  session.token = token;
  store.set('holdfast.token', token, remember);
}

export function setTenant(tenant) {
  session.tenant = tenant || null;
  store.set('holdfast.tenant', tenant, true);
}

function headers(extra) {
  const all = { ...extra };
  if (session.token) all.Authorization = `Bearer ${session.token}`;
  else if (session.tenant) all['Holdfast-Tenant'] = session.tenant;
  return all;
}

function setState(state) {
  if (connection.state === state) return;
  connection.state = state;
  bus.dispatchEvent(new Event('state'));
}

export function query(members) {
  const search = new URLSearchParams();
  for (const name in members) if (members[name] !== null && members[name] !== undefined && members[name] !== '') search.set(name, members[name]);
  const text = search.toString();
  return text ? `?${text}` : '';
}

async function problemOf(response) {
  let body = {};
  try { body = await response.json(); } catch { /* not ours: a proxy's page */ }
  const name = String(body.type ?? '').replace('urn:holdfast:problem:', '');
  const problem = new Problem(response.status, name, body.title ?? response.statusText ?? `HTTP ${response.status}`, body.detail);
  if (response.status === 503 && name !== 'no_worker') setState('store');
  else setState('connected');
  if (response.status === 401) bus.dispatchEvent(new Event('login'));
  return problem;
}

async function send(method, path, options) {
  const init = { method, headers: headers(options.headers), signal: options.signal, cache: 'no-store', credentials: 'omit' };
  if (options.body !== undefined) {
    init.headers['Content-Type'] = 'application/json';
    init.body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body);
  }
  try {
    return await fetch(path, init);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    setState('gone');
    throw new Problem(0, 'unreachable', 'The server cannot be reached', 'It may be restarting, or the network is down. This page goes on by itself.');
  }
}

/* The answer as text and, when it is JSON, parsed. */
export async function ask(method, path, options = {}) {
  const response = await send(method, path, options);
  if (!response.ok) throw await problemOf(response);
  const text = response.status === 204 ? '' : await response.text();
  setState('connected');
  return { text, json: text && response.headers.get('Content-Type')?.includes('json') ? JSON.parse(text) : null };
}

export async function get(path, options) {
  return (await ask('GET', path, options)).json;
}

export async function post(path, body = {}, options = {}) {
  return (await ask('POST', path, { ...options, body })).json;
}

export async function put(path, body, options = {}) {
  return (await ask('PUT', path, { ...options, body })).json;
}

export async function remove(path, options) {
  return (await ask('DELETE', path, options)).json;
}

export const isAbort = (error) => error?.name === 'AbortError';

/* ---- Streams ---- */

const FIRST_WAIT = 500, LONGEST_WAIT = 10000;

async function* parse(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', event = { name: 'message', data: [], id: null };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data.length) yield { ...event, data: event.data.join('\n') };
        event = { name: 'message', data: [], id: null };
      } else if (line.startsWith('data: ')) event.data.push(line.slice(6));
      else if (line.startsWith('event: ')) event.name = line.slice(7);
      else if (line.startsWith('id: ')) event.id = line.slice(4);
    }
  }
}

/* Follows a stream until it is closed: comes back after a break, after the last event that was seen. A page that is not
 * looked at lets go of its connection, of which a browser has few. `path` may be a function.
 * Told: onEvent(event), onState('live' | 'waiting' | 'ended'). */
export function follow(path, { lastId = null, endsByItself = false, onEvent, onState = () => {} }) {
  let controller = null, timer = null, wait = FIRST_WAIT, closed = false;

  async function run() {
    controller = new AbortController();
    const mine = controller;
    let reached = false;
    try {
      const extra = { Accept: 'text/event-stream' };
      if (lastId !== null) extra['Last-Event-ID'] = String(lastId);
      const response = await fetch(typeof path === 'function' ? path() : path,
        { headers: headers(extra), signal: mine.signal, cache: 'no-store', credentials: 'omit' });
      reached = true;
      if (!response.ok) {
        const problem = await problemOf(response);
        if (problem.status >= 400 && problem.status < 500) { closed = true; onState('ended'); return; }
        throw problem;
      }
      setState('connected');
      onState('live');
      for await (const event of parse(response.body)) {
        wait = FIRST_WAIT;
        if (event.id !== null) lastId = event.id;
        onEvent(event);
      }
      if (endsByItself) { closed = true; onState('ended'); return; }
    } catch {
      if (mine.signal.aborted) return;
      if (!reached) setState('gone');
    }
    if (closed) return;
    onState('waiting');
    timer = setTimeout(run, wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }

  let hideTimer = null;
  function visibility() {
    clearTimeout(hideTimer);
    if (closed) return;
    if (document.hidden) hideTimer = setTimeout(() => { controller?.abort(); clearTimeout(timer); controller = null; }, 5000);
    else if (!controller) run();
  }
  document.addEventListener('visibilitychange', visibility);
  run();
  return () => {
    closed = true;
    clearTimeout(timer);
    clearTimeout(hideTimer);
    controller?.abort();
    document.removeEventListener('visibilitychange', visibility);
  };
}

/* While something is wrong the server is asked every two seconds, until it can serve again. */
export function watchConnection(onChange) {
  let timer = null;
  async function look() {
    let state = 'gone';
    try {
      const response = await fetch('/readyz', { cache: 'no-store', credentials: 'omit' });
      state = response.ok ? 'connected' : 'store';
    } catch { /* gone */ }
    setState(state);
    if (state !== 'connected') timer = setTimeout(look, 2000);
  }
  bus.addEventListener('state', () => {
    clearTimeout(timer);
    if (connection.state !== 'connected') timer = setTimeout(look, 2000);
    onChange(connection.state);
  });
}
