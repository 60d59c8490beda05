// With the keyboard alone: everything is reached, it is seen where one is, and nothing takes one away from there.
import { test, check, world, settle, rows, places, goWithin, hasFocus } from './harness.mjs';
import { until } from './world.mjs';

const STOPS = 30; // of a page, that are walked along

// Runs in the page: what is wrong with the ring around what is focused. An ancestor that cuts off may hide a part of it.
function ringTrouble(at) {
  if (!at || at === document.body || at.id === 'main') return null;
  const ringed = at.closest('.run-list tr:has(.run-title a:focus-visible)') ?? at; // a run's row is ringed as a whole
  const style = getComputedStyle(ringed);
  const name = `${at.localName}.${at.className} “${(at.getAttribute('aria-label') ?? at.textContent).trim().slice(0, 30)}”`;
  const width = parseFloat(style.outlineWidth);
  if (style.outlineStyle === 'none' || width === 0) return `${name} has no ring`;
  const reach = Math.max(0, width + parseFloat(style.outlineOffset)) - 0.5;
  const ring = ringed.getBoundingClientRect();
  if (ring.width === 0 || ring.height === 0 || ring.bottom < 0 || ring.top > innerHeight) return `${name} is not in sight`;
  for (let box = ringed.parentElement; box && box !== document.body; box = box.parentElement) {
    const { overflowX, overflowY } = getComputedStyle(box);
    const edge = box.getBoundingClientRect();
    if (overflowY !== 'visible' && (ring.top - reach < edge.top || ring.bottom + reach > edge.bottom)) return `${name}: the ring is cut off by ${box.localName}.${box.className}`;
    if (overflowX !== 'visible' && (ring.left - reach < edge.left || ring.right + reach > edge.right)) return `${name}: the ring is cut off beside by ${box.localName}.${box.className}`;
  }
  return null;
}

// Runs in the page: what can be clicked, as its cursor says, but not be reached.
function unreachable() {
  const reachable = 'a[href], button, input, select, textarea, summary, label, option';
  const clickable = [...document.querySelectorAll('body *')].filter((one) => getComputedStyle(one).cursor === 'pointer' && one.getClientRects().length > 0);
  return clickable.filter((one) => {
    const row = one.closest('[data-href]');
    return !one.closest(reachable) && !(row && row.querySelector(`a[href="${CSS.escape(row.dataset.href)}"], a[href="${row.dataset.href}"]`));
  }).map((one) => `${one.localName}.${one.className}`);
}

test('everything that can be clicked is reached by the keyboard, and it is seen where one is', async (open) => {
  const page = await open('/');
  const found = new Set();
  await page.evaluate(`window.seen = { troubles: [], stops: 0 };
    ${ringTrouble}
    addEventListener('focusin', ({ target }) => { seen.stops++; const trouble = ringTrouble(target); if (trouble) seen.troubles.push(trouble); })`);
  for (const path of places()) {
    await goWithin(page, path);
    await settle(page);
    for (const one of await page.evaluate(unreachable)) found.add(`${path}: ${one} is not reached`);
    for (let i = 0; i < STOPS; i++) await page.keyboard.press('Tab');
    const { troubles, stops } = await page.evaluate(() => { const seen = window.seen; window.seen = { troubles: [], stops: 0 }; return seen; });
    check(stops >= STOPS / 2, `${path} has ${stops} stops`);
    for (const trouble of troubles) found.add(`${path}: ${trouble}`);
  }
  check(found.size === 0, [...found].join('\n'));
});

// Opens a dialog from what is focused, walks around in it, and leaves it by Escape.
async function visit(page, opener, what) {
  await page.locator('dialog[open]').waitFor();
  const all = await page.locator('dialog[open]').locator('button, input, select, textarea').count();
  for (let i = 0; i < all + 3; i++) {
    await page.keyboard.press('Tab');
    const inside = await page.evaluate(() => document.activeElement === document.body || Boolean(document.activeElement.closest('dialog[open]')));
    check(inside, `the focus leaves the dialog of ${what}`);
  }
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  check(await hasFocus(opener), `after the dialog of ${what} the focus is elsewhere`);
}

test('dialogs keep the focus, close with Escape, and give the focus back', async (open) => {
  const page = await open('/');
  for (const [path, name] of [[`/runs/${world.failed}`, 'Retry'], ['/runs', 'New run'], ['/workflows', 'New workflow'], ['/workflows/mail.send.v1', 'Settings'], ['/schedules', 'New schedule'], ['/outbox', 'New subscription'], ['/settings', 'New token']]) {
    await goWithin(page, path);
    await settle(page);
    const opener = page.locator('#main').getByRole('button', { name, exact: true });
    await opener.press('Enter');
    await visit(page, opener, name);
  }
  const search = page.getByRole('button', { name: /Search/ }).first();
  await search.press('Enter');
  await visit(page, search, 'the search');
});

test('a menu is gone through with the arrows, and left with Escape or Tab', async (open) => {
  const page = await open('/schedules');
  await settle(page);
  const opener = page.getByRole('button', { name: 'Actions for cleanup' });
  const at = () => page.evaluate(() => document.activeElement.textContent);
  await opener.focus();
  await page.keyboard.press('ArrowDown');
  check((await at()) === 'Change', await at());
  await page.keyboard.press('ArrowUp');
  check((await at()) === 'Delete', await at());
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  check((await at()) === 'Pause', await at());
  await page.keyboard.press('End');
  check((await at()) === 'Delete', await at());
  await page.keyboard.press('Escape');
  check(await hasFocus(opener), 'Escape leads elsewhere');
  await page.keyboard.press('Enter');
  await page.getByRole('menu').waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('menu').waitFor({ state: 'hidden' });
  await opener.press('Enter');
  await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
  await visit(page, opener, 'a menu');
});

// What is focused is looked up again, to tell it from what takes its place.
async function staysFocused(page, locator, what, before = async () => {}, after = async () => {}) {
  await locator.focus();
  const old = await locator.elementHandle();
  await before();
  await until(async () => !(await old.evaluate((one) => one.isConnected)), `${what} is shown anew`);
  await after();
  check(await hasFocus(locator), `${what} has lost the focus`);
}

test('who is at something stays there while the page is brought up to date', async (open) => {
  const page = await open('/');
  await settle(page);
  await staysFocused(page, page.locator('a.tile', { hasText: 'Failed' }), 'a tile');
  await goWithin(page, '/workers');
  await settle(page);
  await staysFocused(page, page.locator('.table-wrap'), 'the table of workers');
  await goWithin(page, '/workflows/net.call.v1');
  await settle(page);
  const settings = page.getByRole('button', { name: 'Settings' });
  await staysFocused(page, settings, 'a button');
  await staysFocused(page, settings, 'a button below its dialog', () => settings.press('Enter'), () => page.keyboard.press('Escape'));
  await goWithin(page, '/workflows');
  await settle(page);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const current = await page.locator('tr.current').getAttribute('data-href');
  await staysFocused(page, page.locator('tr.current a'), 'a row');
  check((await page.locator('tr.current').getAttribute('data-href')) === current, 'another row is the current one');
});

test('runs are chosen and changed with the keyboard alone', async (open) => {
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push(await world.trigger('mail.send.v1', { key: `keys-${i}`, tags: ['keys'] }));
  const page = await open('/runs?tag=keys');
  await until(async () => (await rows(page).count()) === 3, 'they are listed');
  const box = page.locator('.run-list tbody input').nth(1);
  await box.focus();
  await page.keyboard.press('Space');
  await page.locator('.bulk').getByText('1 run selected').waitFor();
  check(await box.evaluate((one) => one === document.activeElement && one.checked), 'choosing a run takes the focus away');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.locator('.bulk').getByText('2 runs selected').waitFor();
  await page.keyboard.press('a');
  const cancel = page.locator('.bulk').getByRole('button', { name: 'Cancel' });
  check(await hasFocus(cancel), 'a does not lead to the actions');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 2 runs' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('2 runs changed').waitFor();
  await until(async () => (await world.ask('GET', '/v1/runs?tag=keys&status=cancelled')).items.length === 2, 'two are cancelled');
  check((await world.ask('GET', `/v1/runs/${ids[0]}`)).status === 'pending', 'the other one is cancelled too');
});

test('several statuses are chosen with Shift and the keyboard', async (open) => {
  const page = await open('/runs');
  await settle(page);
  await page.getByRole('button', { name: 'Failed', exact: true }).press('Enter');
  await page.waitForURL(/status=failed/);
  await page.getByRole('button', { name: 'Waiting', exact: true }).press('Shift+Enter');
  await page.waitForURL(/status=failed%2Cwaiting/);
});

test('on a phone the menu keeps the keyboard, and Escape closes it', async (open) => {
  const page = await open('/', { viewport: { width: 375, height: 812 } });
  await settle(page);
  const menu = page.getByRole('button', { name: 'Menu' });
  await menu.press('Enter');
  for (let i = 0; i < 25; i++) {
    await page.keyboard.press('Tab');
    check(await page.evaluate(() => !document.activeElement.closest('main')), 'the focus is behind the menu');
  }
  await page.getByRole('link', { name: 'Tasks', exact: true }).press('Escape');
  await page.locator('#sidebar').waitFor({ state: 'hidden' });
  check(await hasFocus(menu), 'the focus is lost');
});
