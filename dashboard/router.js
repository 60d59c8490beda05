/* Real paths, so that every view can be linked to, reloaded and gone back to. */

const routes = [];
let current = null;
let show = () => {};

export function route(pattern, page) {
  const names = [];
  const source = pattern.replace(/\{(\w+)\}/g, (_, name) => { names.push(name); return '([^/]+)'; });
  routes.push({ expression: new RegExp(`^${source}$`), names, page });
}

function match(path) {
  for (const { expression, names, page } of routes) {
    const found = expression.exec(path);
    if (!found) continue;
    const params = {};
    names.forEach((name, i) => { try { params[name] = decodeURIComponent(found[i + 1]); } catch { params[name] = found[i + 1]; } });
    return { page, params };
  }
  return { page: null, params: {} };
}

function open(restore, back = false) {
  const { page, params } = match(location.pathname.replace(/(.)\/$/, '$1'));
  current?.controller.abort();
  const controller = new AbortController();
  current = { controller, page };
  show({ page, params, query: new URLSearchParams(location.search), signal: controller.signal, restore, back });
}

export function navigate(path, { replace = false } = {}) {
  if (replace) history.replaceState({ scroll: 0 }, '', path);
  else {
    history.replaceState({ scroll: scrollY }, '');
    history.pushState({ scroll: 0 }, '', path);
  }
  open(0);
}

export function reload() {
  open(scrollY);
}

export function start(showPage) {
  show = showPage;
  addEventListener('popstate', (event) => open(event.state?.scroll ?? 0, true));
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]');
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.origin !== location.origin || link.hasAttribute('download')) return;
    if (link.pathname.startsWith('/v1/') || (link.hash && link.pathname === location.pathname)) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
  open(0);
}
