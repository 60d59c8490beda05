// What the tests share: the browser, the store that most of them look at, and how a page is opened, waited for and judged.
import { readFileSync } from 'node:fs';
import { World, openBrowser, axeSource, PATIENCE } from './world.mjs';

export const tests = [];
export const test = (name, body) => tests.push({ name, body });
export const check = (ok, what) => { if (!ok) throw new Error(what); };

export let browser, world;

const axeText = readFileSync(axeSource(), 'utf8');

export async function begin() {
  browser = await openBrowser();
  world = await World.open({ order: true });
  await world.loseWorker();
  await world.fill();
  await world.fillOrder();
  for (const name of ['bulk.load.v1', 'list.pages.v1']) {
    await world.ask('PUT', `/v1/workflows/${name}`, { paused: true });
    await world.load(name, 120);
  }
}

// A store with very many runs, for those who look at one.
export const CROWD = 100000;
let crowding = null;

export function crowd() {
  return crowding ??= (async () => {
    const full = await World.open({ worker: false });
    await full.ask('PUT', '/v1/workflows/crowd.v1', { paused: true });
    await full.ask('PUT', '/v1/workflows/few.v1', { paused: true });
    await full.load('few.v1', 3, { tags: ['rare'] });
    await full.load('crowd.v1', CROWD);
    return full;
  })();
}

export async function end() {
  await browser.close();
  await (await crowding)?.close();
  await world.close();
}

// A page whose errors are complaints; what the server refuses on purpose is none, as by 503 while it stops.
const refused = /status of (400|401|404|409|503) |ERR_CONNECTION|ERR_EMPTY|ERR_INCOMPLETE/;

export function opener(complaints, contexts) {
  return async (path, { base, expected = refused, ...options } = {}) => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce', ...options });
    contexts.push(context);
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(`${path}: ${error.message}`));
    page.on('console', (message) => { if (message.type() === 'error' && !expected.test(message.text())) complaints.push(`${path}: ${message.text()}`); });
    if (path) await page.goto((base ?? world.url) + path);
    return page;
  };
}

export const rows = (page) => page.locator('.run-list tbody tr[data-row]');
export const places = () => ['/', '/runs', `/runs/${world.order}`, `/runs/${world.failed}`, '/workflows', '/workflows/mail.send.v1', '/schedules', '/workers', '/tasks', '/dead-letters', '/outbox', '/settings'];

export async function settle(page) {
  await page.waitForFunction(() => document.querySelector('#main h1, #main h2') && !document.querySelector('#main [aria-busy], #main .skeleton'), null, { timeout: PATIENCE, polling: 50 });
}

// A page that is brought up to date makes its buttons anew, also between finding one and looking at it.
export async function hasFocus(opener) {
  for (let i = 0; i < 3; i++) if (await opener.evaluate((one) => one === document.activeElement)) return true;
  return false;
}

export async function axe(page) {
  if (!(await page.evaluate(() => Boolean(window.axe)))) await page.evaluate(axeText);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return result.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)} ${nodes[0].failureSummary?.slice(0, 200)}`);
}

// As a link does it, without loading the page anew.
export async function goWithin(page, path) {
  await page.evaluate((to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }, path);
}
