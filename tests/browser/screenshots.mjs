// Pictures of every page, in every state and look, for people. They check nothing but that the pages open.
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { World, until } from './world.mjs';
import { test, world, settle, places, crowd } from './harness.mjs';

const looks = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true },
};
const emptyPlaces = ['/', '/runs', '/workflows', '/schedules', '/workers', '/tasks', '/dead-letters', '/outbox', '/settings'];
const nameOf = (path) => (path === '/' ? 'overview' : path.slice(1).replace(world.order, 'order').replace(world.failed, 'failed').replace(world.hostile, 'hostile').replaceAll(/[^\w.-]+/g, '-'));

// What the pages need besides what the tests give them.
async function fill() {
  await world.poison('letter.shown.v1', { id: 'shown-1', name: 'payment.received', payload: { amount: 12.5, currency: 'EUR', reference: 'A rather long reference that says what was paid for, when, by whom and to which account' } });
  await world.poison('letter.also.v1', { id: 'shown-2', name: 'refund', payload: 'plain words' });
  const receiver = createServer((request, answer) => { request.resume(); answer.writeHead(request.url === '/takes' ? 204 : 500).end(); });
  await new Promise((resolve) => { receiver.listen(0, '127.0.0.1', resolve); });
  receiver.unref();
  for (const name of ['takes', 'refuses']) await world.ask('PUT', `/v1/subscriptions/${name}`, { url: `http://127.0.0.1:${receiver.address().port}/${name}`, events: [`shown.${name}`] });
  await world.ask('PUT', '/v1/workflows/outbox.shown.v1', {});
  const id = await world.trigger('outbox.shown.v1');
  const { items: [{ run }] } = await world.ask('POST', '/v1/work/claim', { worker: 'browser', workflows: ['outbox.shown.v1'], limit: 1 });
  await world.ask('POST', `/v1/work/runs/${id}/commit`, { worker: 'browser', version: run.version, turn: 'succeed', outbox: ['takes', 'refuses', 'nobody'].map((name) => ({ type: `shown.${name}`, payload: { parcel: 7, to: 'Kim' } })) });
  await until(async () => (await world.ask('GET', `/v1/outbox?run=${id}`)).items.some((one) => one.attempts > 0), 'one was refused');
  await world.ask('PUT', `/v1/workflows/long.${'name-'.repeat(20)}v1`, { max_running: 3, paused: true });
  await world.trigger(`long.${'name-'.repeat(20)}v1`, { key: 'k'.repeat(200), tags: ['first-tag', 'second-tag', 'third-tag', 'fourth'], input: { text: 'x'.repeat(9000), list: Array.from({ length: 60 }, (_, i) => i) } });
  for (const look of [['approve-1', 'Approve the budget of the next quarter for the whole of the sales department'], ['approve-2', 'Look at the photos']]) {
    await world.trigger('shop.discount.v1', { key: look[0] });
  }
}

function shooter(directory, page, look) {
  mkdirSync(directory, { recursive: true });
  return (name, fullPage = true) => page.screenshot({ path: join(directory, `${name}-${look}.png`), fullPage });
}

async function everyPage(open, directory, look) {
  const page = await open('/', looks[look]);
  const shoot = shooter(directory, page, look);
  for (const path of [...places(), `/runs/${world.hostile}`, '/runs?workflow=list.pages.v1', '/runs?key=none', '/nowhere', '/runs/abc', '/outbox?undelivered=true', '/tasks?status=ended']) {
    await page.goto(world.url + path);
    await settle(page);
    await page.waitForTimeout(1200); // what is drawn a moment later
    await shoot(nameOf(path), !path.startsWith('/runs?workflow'));
  }
  await overlays(page, shoot);
}

// What comes over a page, or is opened in it.
async function overlays(page, shoot) {
  await page.goto(`${world.url}/runs`);
  await settle(page);
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await shoot('runs-filter', false);
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  for (const i of [0, 1, 2]) await page.locator('.run-list tbody input').nth(i).check();
  await shoot('runs-selected', false);
  await page.locator('.bulk').getByRole('button', { name: 'Cancel' }).click();
  await shoot('runs-bulk-dialog', false);
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await shoot('keys', false);
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('billing');
  await page.waitForTimeout(300);
  await shoot('search', false);
  await page.keyboard.press('Escape');
  for (const [path, button] of [['/runs', 'New run'], ['/workflows/mail.send.v1', 'Settings'], ['/schedules', 'New schedule'], ['/outbox', 'New subscription'], ['/settings', 'New token'], [`/runs/${world.failed}`, 'Retry'], ['/tasks', 'Answer']]) {
    await page.goto(world.url + path);
    await settle(page);
    await page.locator('#main').getByRole('button', { name: button, exact: true }).first().click();
    await shoot(`dialog-${button.toLowerCase().replace(' ', '-')}`, false);
  }
  await page.goto(`${world.url}/dead-letters`);
  await settle(page);
  await page.getByRole('button', { name: 'Actions for this letter' }).first().click();
  await shoot('dead-letters-menu', false);
  await page.getByRole('menuitem', { name: 'Look at it' }).click();
  await shoot('dead-letters-look', false);
}

async function emptyPages(open, directory, look) {
  const fresh = await World.open({ worker: false });
  try {
    const page = await open('/', { base: fresh.url, ...looks[look] });
    const shoot = shooter(directory, page, look);
    for (const path of emptyPlaces) {
      await page.goto(fresh.url + path);
      await settle(page);
      await page.waitForTimeout(1200);
      await shoot(nameOf(path));
    }
    await page.close();
  } finally {
    await fresh.close();
  }
}

// The server's answers are held back, or are errors, or there are none: it is gone.
async function troubles(open, directory, look) {
  const kinds = {
    loading: (route) => new Promise((resolve) => { route.request().frame().page().once('close', resolve); }),
    error: (route) => route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"type":"urn:holdfast:problem:internal","title":"something went wrong in the server","status":500,"detail":null}' }),
    gone: (route) => route.abort('connectionrefused'),
  };
  for (const kind in kinds) {
    const page = await open(null, { expected: /./, ...looks[look] });
    await page.route('**/v1/**', kinds[kind]);
    const shoot = shooter(join(directory, kind), page, look);
    for (const path of [...emptyPlaces, `/runs/${world.order}`, '/workflows/mail.send.v1']) {
      await page.goto(world.url + path);
      await page.waitForTimeout(700);
      await shoot(nameOf(path), false);
    }
    await page.close();
  }
}

async function largePages(open, directory, look) {
  const full = await crowd();
  const page = await open('/', { base: full.url, ...looks[look] });
  const shoot = shooter(directory, page, look);
  for (const path of ['/', '/runs', '/workflows', '/workflows/crowd.v1']) {
    await page.goto(full.url + path);
    await settle(page);
    await page.waitForTimeout(1500);
    await shoot(nameOf(path), false);
  }
  await page.goto(`${full.url}/runs?workflow=crowd.v1`);
  await settle(page);
  for (let i = 0; i < 30; i++) { await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight)); await page.waitForTimeout(80); }
  await page.getByLabel(/^Select run/).last().check();
  await page.getByRole('button', { name: 'Select all that match' }).click();
  await page.getByText(/All [\d,]+ runs/).waitFor();
  await shoot('runs-far-down', false);
}

export function register(directory) {
  let filled = null;
  for (const look in looks) {
    test(`pictures of every page, ${look}`, async (open) => { await (filled ??= fill()); await everyPage(open, join(directory, 'pages'), look); });
    test(`pictures of an empty store, ${look}`, (open) => emptyPages(open, join(directory, 'empty'), look));
    test(`pictures of troubles, ${look}`, (open) => troubles(open, directory, look));
    test(`pictures of very many runs, ${look}`, (open) => largePages(open, join(directory, 'large'), look));
  }
}
