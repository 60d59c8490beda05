// The dashboard in a real browser, on a real server. Speaks TAP. F12.
//
//   dashboard.sh [PATTERN]          the tests whose name has PATTERN
//   HOLDFAST_SCREENSHOTS=DIRECTORY  also writes a PNG of every page in every state and look
//   HOLDFAST_TIMES=1                tells how long each test took
import { createServer } from 'node:http';
import { World, hostile, until } from './world.mjs';
import { tests, test, check, begin, end, opener, world, rows, places, settle, axe, goWithin, hasFocus } from './harness.mjs';
import './many.mjs';
import './mail.mjs';
import './keyboard.mjs';

// Every page: it has one heading and a title, fits the screen, and axe finds nothing.
for (const [shape, options] of [['on a wide screen, in light', { colorScheme: 'light' }], ['on a phone, in dark', { colorScheme: 'dark', viewport: { width: 375, height: 812 }, hasTouch: true }]]) {
  test(`every page opens ${shape}, and axe finds nothing`, async (open) => {
    const page = await open('/', options);
    const found = [];
    for (const path of places()) {
      await page.evaluate(() => { document.title = ''; });
      await goWithin(page, path);
      await settle(page);
      if ((await page.locator('#main h1').count()) !== 1) found.push(`${path} has not one heading`);
      if (!/ – Holdfast$/.test(await page.title())) found.push(`${path} is called ${await page.title()}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.push(`${path} is ${wide} px too wide`);
      found.push(...(await axe(page)).map((violation) => `${path}: ${violation}`));
    }
    check(found.length === 0, found.join('\n'));
  });
}

test('filters are part of the address and narrow the list', async (open) => {
  const page = await open('/runs?tag=filtered');
  await settle(page);
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  await page.waitForURL(/tag=filtered&status=failed/);
  await until(async () => (await rows(page).count()) === 2, 'two runs have failed');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByLabel('Key', { exact: true }).fill('card-4711');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.waitForURL(/key=card-4711/);
  await until(async () => (await rows(page).count()) === 1, 'one has this key');
  await page.goBack();
  await until(async () => (await rows(page).count()) === 2, 'going back shows two again');
  await page.goto(`${world.url}/runs?key=nothing-has-it`);
  await page.getByText('Nothing matches').waitFor();
});

test('a deep link is still there after a reload, and the list pages by its cursor', async (open) => {
  const page = await open('/runs?workflow=list.pages.v1');
  await until(async () => (await rows(page).count()) >= 50, 'a first page is shown');
  await page.mouse.wheel(0, 5000);
  await page.locator('.run-list', { hasText: 'load-0' }).waitFor();
  await page.reload();
  await until(async () => (await rows(page).count()) >= 50, 'the list is there again');
  check(page.url().endsWith('/runs?workflow=list.pages.v1'), page.url());
  await page.goto(`${world.url}/runs/${world.failed}`);
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'billing.refuse.v1' }).waitFor();
});

test('a click on a row opens the run once, so that going back leads to the list', async (open) => {
  const page = await open('/runs?workflow=list.pages.v1');
  await until(async () => (await rows(page).count()) >= 50, 'the list is there');
  const before = await page.evaluate(() => history.length);
  await rows(page).nth(1).locator('.c-id').click();
  await page.getByRole('heading', { level: 1, name: 'list.pages.v1' }).waitFor();
  check((await page.evaluate(() => history.length)) === before + 1, 'it was opened more than once');
});

test('hostile payloads, keys and errors stay text', async (open) => {
  const page = await open(`/runs/${world.hostile}`);
  await settle(page);
  check((await page.locator('#main').innerText()).includes('<img src=x onerror'), 'the payload is not shown as it is');
  await page.goto(`${world.url}/runs?tag=filtered`);
  await until(async () => (await rows(page).count()) === 2, 'the list is there');
  check((await page.locator('.run-list').innerText()).includes(hostile.slice(0, 20)), 'the key is not shown as it is');
  await page.goto(`${world.url}/`);
  await settle(page);
  check((await page.evaluate(() => window.hacked)) === undefined, 'a payload was run');
  check((await page.locator('main img').count()) === 0, 'a payload became an element');
});

test('long names and texts stay in their place', async (open) => {
  const name = `long.${'name-'.repeat(20)}v1`;
  await world.ask('PUT', `/v1/workflows/${name}`, {});
  await world.trigger(name, { key: 'k'.repeat(200), tags: ['first-tag', 'second-tag', 'third-tag'], in: '1h' });
  for (const width of [1280, 390]) {
    const page = await open(null, { viewport: { width, height: 800 } });
    await page.route('**/v1/dead-letters?**', (route) => route.fulfill({ json: { items: [{ id: 'a', run: null, reason: `poison: ${'reason '.repeat(60)}`, envelope: { name: 'paid' }, created_at: '2026-01-01T00:00:00Z' }], next: null } }));
    await page.route('**/v1/subscriptions', (route) => route.fulfill({ json: { items: [{ name: 'billing', url: `https://example.com/${'segment'.repeat(30)}`, state: 'parked', events: ['order.*', 'invoice.*', 'holdfast.*'], pending: 7, last_error: 'error'.repeat(40) }] } }));
    for (const path of ['/', '/workflows', `/workflows/${name}`, `/runs?workflow=${name}`, '/dead-letters', '/outbox']) {
      await page.goto(world.url + path);
      await settle(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(wide <= 0, `${path} is ${wide} px too wide at ${width}`);
      const over = await page.evaluate(() => [...document.querySelectorAll('.table-wrap:not(.journal)')].some((box) => box.scrollWidth > box.clientWidth));
      check(!over, `a table on ${path} is cut off at ${width}`);
      const covered = await page.evaluate(() => [...document.querySelectorAll('.run-list .c-run')].some((cell) => [...cell.querySelectorAll('.run-title')].some((one) => one.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1)));
      check(!covered, `a name on ${path} covers what is beside it`);
    }
  }
});

test('an error with lines is shown in lines, and marks that turn text around are shown as they are', async (open) => {
  const id = await world.trigger('mail.send.v1', { key: 'marks', input: { stack: 'first\n  at second\\n', mark: 'abc\u202edef' } });
  const page = await open(`/runs/${id}`);
  await settle(page);
  const text = await page.getByRole('group', { name: 'Input' }).innerText();
  check(text.includes('"first\\n\n  at second\\\\n"'), text);
  check(text.includes('abc\\u202edef'), text);
});

test('numbers keep every digit', async (open) => {
  const id = await world.trigger('billing.charge.v1', { key: 'digits' });
  await world.status(id, 'succeeded');
  const page = await open(`/runs/${id}`);
  await page.getByText('12345678901234567890.10').first().waitFor();
});

// A list that no request can make, as the server would write it: the second page comes when it is let go.
async function letters(page) {
  const letter = (id) => `{"id":"00000000-0000-7000-8000-00000000000${id}","run":null,"reason":"poison","envelope":{"name":"paid-${id}","payload":[12345678901234567890,"]"]},"created_at":"2026-01-01T00:00:00Z"}`;
  let letGo, asked = 0;
  const held = new Promise((resolve) => { letGo = resolve; });
  await page.route('**/v1/dead-letters?**', async (route) => {
    const second = route.request().url().includes('cursor=');
    if (second) { asked++; await held; }
    await route.fulfill({ contentType: 'application/json', body: second ? `{"items":[${letter(3)}],"next":null}` : `{"items":[${letter(1)}, ${letter(2)}],"next":"c"}` });
  });
  return { letGo, asked: () => asked };
}

test('what is shown of a list keeps every digit, and its next page is added once', async (open) => {
  const page = await open(null);
  const held = await letters(page);
  await page.goto(`${world.url}/dead-letters`);
  await settle(page);
  const lines = page.locator('.lines > li');
  check((await lines.first().innerText()).includes('[12345678901234567890,"]"]'), 'a line has lost digits');
  await page.getByRole('button', { name: 'Load more' }).evaluate((button) => { button.click(); button.click(); });
  held.letGo();
  await lines.nth(2).waitFor();
  await page.getByRole('button', { name: 'Load more' }).waitFor({ state: 'detached' });
  check(held.asked() === 1 && (await lines.count()) === 3, `asked ${held.asked()} times, ${await lines.count()} lines`);
  await lines.nth(1).getByRole('button', { name: 'Actions for this letter' }).click();
  await page.getByRole('menuitem', { name: 'Look at it' }).click();
  const shown = await page.getByRole('dialog').locator('.json').innerText();
  check(shown.includes('12345678901234567890') && shown.includes('paid-2') && !shown.includes('paid-3'), shown);
});

test('a total is no guess while every workflow was counted to its end', async (open) => {
  const page = await open(null);
  const counts = { due: 2, leased: 0, waiting: 0, delayed: 0, failed: 0 };
  let failed = 1;
  await page.route('**/v1/stats', async (route) => {
    const stats = await (await route.fetch()).json();
    const workflows = ['a', 'b'].map((name) => ({ ...stats.workflows[0], ...counts, failed, name }));
    await route.fulfill({ json: { ...stats, most: 3, total: { ...stats.total, ...counts, due: 4, failed: 2 * failed }, workflows } });
  });
  await page.goto(world.url);
  const value = (label) => page.locator('.tile', { hasText: label }).locator('.tile-value');
  await value('Due').filter({ hasText: /^4$/ }).waitFor();
  failed = 3;
  await value('Failed').filter({ hasText: /^6\+$/ }).waitFor();
});

test('a failed run is retried after a question, and what the server says is shown', async (open) => {
  const page = await open(`/runs/${world.retried}`);
  await settle(page);
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click();
  check((await world.ask('GET', `/v1/runs/${world.retried}`)).status === 'failed', 'it was retried without being asked to');
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByLabel('Reason').fill('the card was replaced');
  await page.getByRole('dialog').getByRole('button', { name: 'Retry run' }).click();
  await page.getByText('will be tried again').first().waitFor();
  await until(async () => (await world.ask('GET', `/v1/runs/${world.retried}/events`)).items.some((event) => event.name === 'retried' && event.data?.reason === 'the card was replaced'), 'the journal says why');
  await world.status(world.retried, 'failed');
});

test('a run is live: a signal from elsewhere moves the open page on', async (open) => {
  const page = await open(`/runs/${world.order}`);
  await settle(page);
  await page.locator('.run-sub .badge', { hasText: 'Waiting' }).waitFor();
  check((await page.locator('.timeline').innerText()).includes('approval'), 'the timeline does not show what it waits for');
  await page.getByText('40 %').waitFor();
  await world.ask('POST', `/v1/runs/${world.order}/signals`, { name: 'approval', payload: { by: 'ann' } });
  await page.locator('.run-sub .badge', { hasText: 'Succeeded' }).waitFor();
  await page.locator('.journal tbody tr', { hasText: 'succeeded' }).last().waitFor();
  await page.getByText('"ann"').first().waitFor();
});

test('the page of a run with a very long journal is live too', async (open) => {
  await world.ask('PUT', '/v1/workflows/long.journal.v1', { lease: '30m' });
  const id = await world.trigger('long.journal.v1');
  const { items: [{ run }] } = await world.ask('POST', '/v1/work/claim', { worker: 'browser', workflows: ['long.journal.v1'], limit: 1 });
  const commit = (body) => world.ask('POST', `/v1/work/runs/${id}/commit`, { worker: 'browser', version: run.version, ...body });
  const tell = (percent) => commit({ turn: 'go_on', events: [{ kind: 'domain', name: 'progress', data: { percent } }] });
  await tell(5);
  for (let i = 0; i < 30; i++) await commit({ turn: 'go_on', events: Array.from({ length: 100 }, () => ({ kind: 'domain', name: 'tick' })) });
  await tell(40);
  const page = await open(`/runs/${id}`);
  await settle(page);
  await page.getByText('Made from the first 2,000 lines').waitFor();
  await page.getByText('40 %').waitFor();
  await tell(70);
  await page.getByText('70 %').waitFor();
  await commit({ turn: 'go_on', state: { phase: 'packing' }, events: [{ kind: 'domain', name: 'published' }] });
  await page.getByText('"packing"').waitFor();
  await page.getByRole('button', { name: 'Newest' }).click();
  await page.locator('.journal tbody tr', { hasText: 'published' }).waitFor();
  await commit({ turn: 'succeed', result: { parcel: 17 } });
  await page.locator('.run-sub .badge', { hasText: 'Succeeded' }).waitFor();
  await page.getByRole('group', { name: 'Result' }).getByText('17').waitFor();
  await page.locator('.journal tbody tr', { hasText: 'succeeded' }).waitFor();
});

test('the timeline shows every attempt of a step, the end of a sleep, and the way to the journal', async (open) => {
  const id = await world.trigger('net.call.v1', { key: 'third-time' });
  await world.status(id, 'succeeded');
  const page = await open(`/runs/${id}`);
  await settle(page);
  const row = (name) => page.locator('.tl-row', { hasText: name });
  const kinds = await row('connect').locator('.bar').evaluateAll((bars) => bars.map((bar) => bar.className));
  check(kinds.join() === 'bar bad,bar wait,bar bad,bar wait,bar good', kinds.join());
  check((await row('connect').innerText()).includes('×3'), 'it does not tell how often it was tried');
  const ends = await page.evaluate(() => [...document.querySelectorAll('.tl-row')].filter((one) => /nap|connect/.test(one.textContent)).map((one) => [...one.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect())));
  check(ends[0][0].right <= ends[1][0].left + 1, 'the sleep goes on after its end');
  await row('connect').getByRole('button').click();
  const line = page.locator('.journal tr.current');
  await line.filter({ hasText: 'connect' }).filter({ hasText: 'succeeded' }).waitFor();
  check(await line.locator('details').getAttribute('open') !== null, 'what the step gave is not shown');
});

test('what is focused in the timeline of a live run stays focused', async (open) => {
  const page = await open(`/runs/${world.discount}`);
  await settle(page);
  const label = page.locator('button.tl-label').first();
  await label.focus();
  const before = await page.locator('.tl-row').nth(1).locator('.bar').last().elementHandle();
  await until(async () => !(await before.evaluate((bar) => bar.isConnected)), 'it is drawn again');
  check(await hasFocus(label), 'the focus was lost');
});

test('a signal is sent from the page', async (open) => {
  const id = await world.trigger('order', { key: 'order-7002' });
  await world.status(id, 'waiting');
  const page = await open(`/runs/${id}`);
  await settle(page);
  await page.getByRole('button', { name: 'Send a signal' }).click();
  check((await page.getByLabel('Name').inputValue()) === 'approval', 'it does not know what the run waits for');
  await page.getByLabel('Payload').fill('{broken');
  await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click();
  await page.getByRole('dialog').getByRole('alert').filter({ hasText: 'Payload' }).waitFor();
  await page.getByLabel('Payload').fill('{"by":"browser"}');
  await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click();
  await page.locator('.run-sub .badge', { hasText: 'Succeeded' }).waitFor();
});

test('a run says that it waits for a worker whose code fits, and why', async (open) => {
  const workflow = 'deploy.ship.v1', why = '"road" (step) was called where "by rail" (version) is remembered';
  await world.ask('PUT', `/v1/workflows/${workflow}`, { fit_within: '6h' });
  const id = await world.trigger(workflow, { key: 'ship-1' });
  const { items: [claimed] } = await world.ask('POST', '/v1/work/claim', { worker: 'old', workflows: [workflow], wait: '60s' });
  await world.ask('POST', `/v1/work/runs/${id}/unfit`, { worker: 'old', version: claimed.run.version, message: why });
  const page = await open(`/runs/${id}`);
  await settle(page);
  await page.getByRole('note').filter({ hasText: 'waits for a worker whose code fits what it remembers' }).filter({ hasText: why }).waitFor();
  await page.locator('.fact', { hasText: 'Waits for' }).filter({ hasText: 'a worker whose code fits, until' }).waitFor();
  if (process.env.HOLDFAST_SHOTS) await page.screenshot({ path: `${process.env.HOLDFAST_SHOTS}/unfit-run.png` });
  const list = await open(`/runs?workflow=${workflow}`);
  await settle(list);
  await list.locator('.run-lately', { hasText: `waits for a worker whose code fits · ${why}` }).waitFor();
  if (process.env.HOLDFAST_SHOTS) await list.screenshot({ path: `${process.env.HOLDFAST_SHOTS}/unfit-list.png` });
  const one = await open(`/workflows/${workflow}`);
  await settle(one);
  await one.locator('.fact', { hasText: 'Code that does not fit' }).filter({ hasText: '6 h' }).waitFor();
});

test('children are shown as a tree, with a way up', async (open) => {
  const page = await open(`/runs/${world.order}`);
  await settle(page);
  await page.locator('.child').nth(2).waitFor();
  await page.locator('.child a').first().click();
  await page.getByRole('heading', { level: 1, name: 'parcel' }).waitFor();
  await page.getByRole('link', { name: 'Parent', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'order' }).waitFor();
});

test('chosen runs are changed together, after a question', async (open) => {
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push(await world.trigger('mail.send.v1', { key: `bulk-${i}`, tags: ['bulk'] }));
  const page = await open('/runs?tag=bulk');
  await until(async () => (await rows(page).count()) === 3, 'they are listed');
  await page.getByLabel('Select all that are listed').check();
  await page.locator('.bulk').getByText('3 runs selected').waitFor();
  await page.locator('.bulk').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 3 runs' }).click();
  await page.getByText('3 runs changed').waitFor();
  for (const id of ids) await world.status(id, 'cancelled');
  await page.locator('.run-list .badge', { hasText: 'Cancelled' }).nth(2).waitFor();
});

test('all that match are changed by the filter', async (open) => {
  const page = await open('/runs?workflow=bulk.load.v1');
  await until(async () => (await rows(page).count()) >= 50, 'they are listed');
  await page.getByLabel('Select all that are listed').check();
  await page.getByRole('button', { name: 'Select all that match' }).click();
  await page.locator('.bulk').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete 120 runs' }).click();
  await page.getByText('120 runs changed').waitFor();
  check((await world.ask('GET', '/v1/runs?workflow=bulk.load.v1')).items.length === 0, 'some are left');
});

test('a change of all that match goes on where the server stopped, until it is complete', async (open) => {
  const page = await open(null);
  const parts = [{ changed: 0, refused: 100, next: 'c-1' }, { changed: 15, refused: 0, next: 'c-2' }, { changed: 5, refused: 0, next: null }];
  const cursors = [];
  await page.route('**/v1/runs/bulk', (route) => {
    const { filter, dry_run: counts } = route.request().postDataJSON();
    if (counts) return route.fulfill({ json: { matched: 120, changed: 0, refused: 0, complete: true, next: null } });
    cursors.push(filter.cursor ?? null);
    const part = parts[cursors.length - 1];
    return route.fulfill({ json: { matched: 0, ...part, complete: part.next === null } });
  });
  await page.goto(`${world.url}/runs?workflow=list.pages.v1`);
  await until(async () => (await rows(page).count()) >= 50, 'they are listed');
  await page.getByLabel('Select all that are listed').check();
  await page.getByRole('button', { name: 'Select all that match' }).click();
  await page.locator('.bulk').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 120 runs' }).click();
  await page.getByText('20 runs changed, 100 refused').waitFor();
  check(JSON.stringify(cursors) === '[null,"c-1","c-2"]', JSON.stringify(cursors));
});

test('what happens arrives on the overview, and new runs are offered in the list', async (open) => {
  const feed = await open('/');
  const list = await open('/runs');
  await settle(list);
  await feed.locator('.live.on').waitFor();
  let looks = 0;
  await until(async () => { // what other tests do may push a line out of the feed before it is seen
    if (looks++ % 50 === 0) await world.trigger('billing.charge.v1', { key: `seen-live-${looks}` });
    return (await feed.locator('.feed-line', { hasText: 'seen-live' }).count()) > 0;
  }, 'it is told on the overview');
  await list.getByRole('button', { name: /Show \d+ new run/ }).click();
  await list.locator('.run-list', { hasText: 'seen-live' }).waitFor();
});

test('a run in the list changes its status while it is looked at', async (open) => {
  const id = await world.trigger('mail.send.v1', { key: 'watched' });
  const page = await open('/runs?key=watched');
  await page.locator('.run-list .badge', { hasText: 'Pending' }).waitFor();
  await world.ask('POST', `/v1/runs/${id}/cancel`, {});
  await page.locator('.run-list .badge', { hasText: 'Cancelled' }).waitFor();
});

test('a workflow is resumed, paused and limited', async (open) => {
  const page = await open('/workflows/mail.send.v1');
  await settle(page);
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume workflow' }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  check((await world.ask('GET', '/v1/workflows/mail.send.v1')).paused === false, 'it is still paused');
  await page.getByRole('dialog').getByRole('button', { name: 'Pause workflow' }).click();
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Running at once', { exact: true }).fill('7');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('7 at once').waitFor();
  const workflow = await world.ask('GET', '/v1/workflows/mail.send.v1');
  check(workflow.max_running === 7 && workflow.rate_count === 100 && workflow.paused, JSON.stringify(workflow));
});

test('a workflow whose settings are saved keeps the bursts of its rates', async (open) => {
  const rates = { rate_count: 100, rate_interval: '1m', rate_burst: 40, key_rate_count: 10, key_rate_interval: '1m', key_rate_burst: 5 };
  await world.ask('PUT', '/v1/workflows/burst.v1', rates);
  const page = await open('/workflows/burst.v1');
  await settle(page);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Attempts', { exact: true }).fill('9');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const saved = await world.ask('GET', '/v1/workflows/burst.v1');
  check(saved.max_attempts === 9, JSON.stringify(saved));
  for (const name in rates) check(saved[name] === rates[name], `${name} is ${saved[name]}`);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Starts at once', { exact: true }).fill('7');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  check((await world.ask('GET', '/v1/workflows/burst.v1')).rate_burst === 7, 'it cannot be changed');
});

test('a schedule is made, shows when it fires, and is deleted', async (open) => {
  const page = await open('/schedules');
  await settle(page);
  await page.getByRole('button', { name: 'New schedule' }).click();
  await page.getByLabel('Name').fill('from-browser');
  await page.getByLabel('Workflow').fill('billing.charge.v1');
  await page.getByLabel('When').fill('not a cron');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.form-error').filter({ hasText: /./ }).waitFor();
  await page.getByLabel('When').fill('0 4 * * *');
  await page.getByRole('button', { name: 'Save' }).click();
  const row = page.locator('.schedule', { hasText: 'from-browser' });
  await row.getByText('Next firings').click();
  await row.locator('.firings li').nth(4).waitFor();
  await row.getByRole('button', { name: 'Actions for from-browser' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete schedule' }).click();
  await row.waitFor({ state: 'detached' });
});

test('a schedule that is changed keeps what the form does not show, and every digit', async (open) => {
  const body = '{"workflow":"mail.send.v1","cron":"0 5 * * *","input":{"account":12345678901234567890},"priority":3,"tags":["eu"]}';
  await fetch(`${world.url}/v1/schedules/kept`, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body });
  const page = await open('/schedules');
  await settle(page);
  await page.getByRole('button', { name: 'Actions for kept' }).click();
  await page.getByRole('menuitem', { name: 'Change' }).click();
  await page.getByLabel('When').fill('0 6 * * *');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.schedule', { hasText: '0 6 * * *' }).waitFor();
  const text = await (await fetch(`${world.url}/v1/schedules/kept`)).text();
  check(text.includes('12345678901234567890') && /"priority":3,/.test(text) && text.includes('"tags":["eu"]'), text);
  await world.ask('DELETE', '/v1/schedules/kept');
});

test('a run is started and forked from the page', async (open) => {
  const page = await open('/workflows/billing.charge.v1');
  await settle(page);
  await page.getByRole('button', { name: 'New run' }).click();
  await page.getByLabel('Input').fill('{"invoice": 9}');
  await page.getByLabel('Key', { exact: true }).fill('from-browser');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/);
  await page.locator('.run-sub .badge', { hasText: 'Succeeded' }).waitFor();
  const before = page.url();
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Fork from a step' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).click();
  await page.waitForURL((url) => url.href !== before);
  await page.locator('.journal', { hasText: 'forked_from' }).waitFor();
});

test('the keyboard goes everywhere', async (open) => {
  const page = await open('/');
  await settle(page);
  for (let i = 0; i < 20 && !page.url().endsWith('/runs'); i++) { // the second key must come soon after the first
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForURL(/\/runs$/, { timeout: 3000 }).catch(() => {});
  }
  await page.waitForURL(/\/runs$/);
  await settle(page);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  check((await page.locator('.run-list tr.current').count()) === 1, 'j chooses no row');
  const chosen = await page.locator('.run-list tr.current').getAttribute('data-href');
  await page.keyboard.press('x');
  await page.locator('.bulk').getByText('1 run selected').waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === chosen);
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  check((await page.locator('dialog[open]').count()) === 0, 'Esc does not close');
  await page.keyboard.press('/');
  await page.keyboard.type('billing.charge.v1/later');
  await page.getByRole('option', { name: /Open run by workflow and key/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'billing.charge.v1' }).waitFor();
  await page.keyboard.press('Tab');
  await page.evaluate(() => scrollTo(0, 0));
});

test('the skip link comes first and leads to the content', async (open) => {
  const page = await open('/runs');
  await settle(page);
  await page.keyboard.press('Tab');
  check((await page.evaluate(() => document.activeElement.className)) === 'skip', 'the first stop is another');
  await page.keyboard.press('Enter');
  check((await page.evaluate(() => document.activeElement.id)) === 'main', 'it leads elsewhere');
});

test('on a phone the menu opens and closes', async (open) => {
  const page = await open('/', { viewport: { width: 375, height: 812 }, hasTouch: true });
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'Workers', exact: true }).click();
  await page.waitForURL(/\/workers$/);
  await page.locator('#sidebar').waitFor({ state: 'hidden' });
});

test('the theme is kept over a reload', async (open) => {
  const page = await open('/settings');
  await settle(page);
  await page.getByRole('button', { name: 'Dark', exact: true }).click();
  await page.reload();
  check((await page.evaluate(() => document.documentElement.dataset.theme)) === 'dark', 'it is forgotten');
});

test('another tenant is chosen in the settings and shown everywhere', async (open) => {
  await world.ask('PUT', '/v1/tenants/acme');
  const page = await open('/settings');
  await settle(page);
  await page.locator('#tenant option', { hasText: 'acme' }).waitFor({ state: 'attached' });
  await page.getByLabel('Tenant').selectOption('acme');
  await page.getByText('Showing the tenant acme').waitFor();
  await page.goto(`${world.url}/runs`);
  await page.getByText('No runs yet').waitFor();
  await page.goto(`${world.url}/`);
  await page.locator('.tile', { hasText: 'Failed' }).getByText('none').waitFor();
});

test('a megabyte of input is folded, and a long journal is read by pages', async (open) => {
  const id = await world.trigger('mail.send.v1', { key: 'large', input: { text: 'x'.repeat(900000), more: Array.from({ length: 100 }, (_, i) => i) } });
  const page = await open(`/runs/${id}`);
  await settle(page);
  const shown = await page.locator('.json').first().evaluate((element) => element.textContent.length);
  check(shown < 10000, `${shown} characters are shown`);
  await page.getByRole('button', { name: /Show all/ }).click();
  await until(async () => (await page.locator('.json').first().evaluate((element) => element.textContent.length)) > 900000, 'all of it is shown');
  await page.goto('about:blank'); // it would show each of them
  for (let i = 0; i < 260; i++) await world.ask('POST', `/v1/runs/${id}/signals`, { name: `s${i}` });
  await page.goto(`${world.url}/runs/${id}`);
  await settle(page);
  await until(async () => (await page.locator('.journal tbody tr').count()) === 200, 'one page of the journal is shown');
  await page.getByRole('button', { name: 'Newest' }).click();
  await page.locator('.journal', { hasText: 's259' }).waitFor();
});

test('a store without runs says what to type', async (open) => {
  const fresh = await World.open({ worker: false });
  try {
    const page = await open('/', { base: fresh.url });
    await page.getByText('holdfast trigger').first().waitFor();
    await page.goto(`${fresh.url}/runs`);
    await page.getByText('No runs yet').waitFor();
    for (const [path, step] of [['/workflows', 'holdfast workflow create'], ['/schedules', 'holdfast schedule create'], ['/workers', 'holdfast worker'], ['/tasks', 'holdfast ask'], ['/outbox', 'holdfast subscription create']]) {
      await goWithin(page, path);
      await settle(page);
      await page.locator('.command', { hasText: step }).waitFor();
      const violations = await axe(page);
      check(violations.length === 0, `${path}: ${violations.join('\n')}`);
    }
  } finally {
    await fresh.close();
  }
});

test('what a server that errs says is shown below the heading, and it is asked again', async (open) => {
  const page = await open(null, { expected: /status of 500/ });
  let errs = true;
  await page.route('**/v1/**', (route) => (errs ? route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"type":"urn:holdfast:problem:internal","title":"the disk is full","status":500,"detail":null}' }) : route.continue()));
  for (const [path, heading] of [['/', 'Overview'], ['/runs', 'Runs'], [`/runs/${world.failed}`, 'Run'], ['/dead-letters', 'Dead letters']]) {
    errs = true;
    await page.goto(world.url + path);
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    await page.getByRole('alert').getByText('the disk is full').first().waitFor();
    const violations = await axe(page);
    check(violations.length === 0, `${path}: ${violations.join('\n')}`);
    errs = false;
    if (path !== '/') await page.getByRole('button', { name: 'Try again' }).click(); // the overview asks by itself
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
    await settle(page);
  }
});

test('when the server goes away the page says so, and goes on when it is back', async (open) => {
  const fresh = await World.open();
  try {
    await fresh.ask('PUT', '/v1/workflows/billing.charge.v1', {});
    const page = await open('/', { base: fresh.url });
    await settle(page);
    await fresh.stop(fresh.server);
    await page.getByText('The server cannot be reached.').waitFor();
    await fresh.serve(fresh.port);
    await page.getByText('The server cannot be reached.').waitFor({ state: 'detached' });
    await page.locator('.live.on').waitFor();
    await fresh.trigger('billing.charge.v1', { key: 'after' });
    await page.locator('.feed-line', { hasText: 'after' }).first().waitFor();
  } finally {
    await fresh.close();
  }
});

test('lists and runs say too that the server is away, and keep what they show', async (open) => {
  const fresh = await World.open({ worker: false });
  try {
    await fresh.ask('PUT', '/v1/workflows/billing.charge.v1', {});
    const id = await fresh.trigger('billing.charge.v1', { key: 'kept' });
    const pages = [];
    for (const path of ['/runs', `/runs/${id}`, '/workflows']) {
      const page = await open(path, { base: fresh.url });
      await settle(page);
      pages.push(page);
    }
    await fresh.stop(fresh.server);
    for (const page of pages) {
      await page.getByText('The server cannot be reached.').waitFor();
      check((await page.locator('#main').innerText()).includes('billing.charge.v1'), 'what was shown is gone');
      check((await page.locator('.problem').count()) === 0, 'a problem is shown instead');
    }
  } finally {
    await fresh.close();
  }
});

test('what is not there is said to be missing, on a page of its own', async (open) => {
  for (const [path, heading] of [['/nowhere', 'Not found'], ['/runs/00000000-0000-7000-8000-000000000000', 'No such run'], ['/runs/abc', 'No such run'], ['/workflows/none.v1', 'No such workflow']]) {
    const page = await open(path);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    check((await page.title()).startsWith(heading), await page.title());
  }
  const program = await fetch(`${world.url}/nowhere`);
  check(program.status === 404 && program.headers.get('content-type') === 'application/problem+json', 'a program gets a page');
});

test('a stream that ends while its run ends is opened again: the last line is not lost', async (open) => {
  const id = await world.trigger('mail.send.v1', { key: 'cut-off-late' });
  const page = await open(null);
  let streams = 0, cut;
  const ended = new Promise((resolve) => { cut = resolve; });
  await page.route(`**/v1/runs/${id}/events?after=*`, async (route) => {
    if (route.request().headers().accept !== 'text/event-stream' || ++streams > 1) return route.continue();
    await ended;
    return route.fulfill({ contentType: 'text/event-stream', body: '' });
  });
  await page.goto(`${world.url}/runs/${id}`);
  await until(() => streams > 0, 'it listens');
  await world.ask('POST', `/v1/runs/${id}/cancel`, {});
  cut();
  await page.locator('.run-sub .badge', { hasText: 'Cancelled' }).waitFor();
  await page.locator('.journal tbody tr', { hasText: 'cancelled' }).last().waitFor();
});

test('a stream that ends before its run does is opened again', async (open) => {
  const id = await world.trigger('mail.send.v1', { key: 'cut-off' });
  const page = await open(null);
  let streams = 0;
  await page.route(`**/v1/runs/${id}/events?after=*`, async (route) => {
    if (route.request().headers().accept !== 'text/event-stream' || ++streams > 1) await route.continue();
    else await route.fulfill({ contentType: 'text/event-stream', body: '' });
  });
  await page.goto(`${world.url}/runs/${id}`);
  await until(() => streams > 0, 'it listens');
  await settle(page);
  await world.ask('POST', `/v1/runs/${id}/cancel`, {});
  await page.locator('.run-sub .badge', { hasText: 'Cancelled' }).waitFor();
  await page.locator('.journal tbody tr', { hasText: 'cancelled' }).last().waitFor();
});

test('a task shows its run, workflow and roles, and is answered by the keyboard alone', async (open) => {
  const page = await open('/tasks');
  await settle(page);
  const row = page.locator('li.task', { hasText: 'Approve the discount' });
  check(await row.getByRole('link', { name: 'shop.discount.v1' }).count() === 1, 'the workflow is no link');
  check(/boss.*sales/.test(await row.innerText()), 'it does not say for whom');
  check(/due in [12] h/.test(await row.innerText()), `it does not say when it is due: ${await row.innerText()}`);
  check(!(await row.getByText('15 %').isVisible()), 'the payload is shown unasked');
  await row.locator('summary').press('Enter');
  await row.getByText('15 %').waitFor();
  check((await row.innerText()).includes('12345678901234567890'), 'a number has lost digits');
  await row.getByRole('button', { name: 'More for Approve the discount' }).press('Enter');
  await page.keyboard.press('Enter');
  await page.getByText(/claimed by/).waitFor();
  await row.getByRole('button', { name: 'Answer' }).press('Enter');
  await page.keyboard.type('approved');
  await page.keyboard.press('Tab');
  await page.keyboard.type('{"note": "once"}');
  await page.keyboard.press('Control+Enter');
  await page.getByText('The run has its answer').waitFor();
  const run = await world.status(world.discount, 'succeeded');
  check(run.result.outcome === 'approved' && run.result.result.note === 'once', JSON.stringify(run.result));
  await page.getByRole('button', { name: 'Ended' }).click();
  await page.getByText(/answered by/).waitFor();
});

test('a server that wants a token is given one, and no more is asked', async (open) => {
  const page = await open(null);
  let asked = 0;
  await page.route('**/v1/**', async (route) => {
    const header = route.request().headers().authorization;
    if (header === 'Bearer hf_secret') { const { authorization, ...headers } = route.request().headers(); await route.continue({ headers }); return; }
    asked++;
    await route.fulfill({ status: 401, contentType: 'application/problem+json', body: '{"type":"urn:holdfast:problem:no_token","title":"send a token","status":401,"detail":null}' });
  });
  await page.goto(`${world.url}/runs`);
  await page.getByLabel('Token').fill('hf_wrong');
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('This token is not known here.').waitFor();
  await page.getByLabel('Token').fill('hf_secret');
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await until(async () => (await rows(page).count()) > 0, 'the runs are shown');
  const before = asked;
  await page.reload();
  await until(async () => (await rows(page).count()) > 0, 'the runs are shown again');
  check(asked === before, 'it forgot the token');
  check((await page.evaluate(() => localStorage.getItem('holdfast.token'))) === null, 'it remembers a token that it was not told to');
});

test('the first token signs this browser in, and every other must sign in; a revoked one is worth nothing', async (open) => {
  const fresh = await World.open({ worker: false });
  try {
    const page = await open('/settings', { base: fresh.url });
    await settle(page);
    await page.getByRole('button', { name: 'New token' }).click();
    await page.getByLabel('Name').fill('ada');
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    const secret = (await page.getByLabel('Secret', { exact: true }).innerText()).trim();
    check(/^hf_/.test(secret), secret);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('ada, in the tenant default').waitFor();
    check(!(await page.locator('main').innerText()).includes(secret), 'the secret is shown again');
    const other = await open('/runs', { base: fresh.url });
    await other.getByLabel('Token').fill(secret);
    await other.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
    await other.getByText('No runs yet').waitFor();
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    await Promise.all([page.close(), other.close()]); // before their server is gone
  } finally {
    await fresh.close();
  }
});

test('a subscription is made, shows its secret once, is parked and deleted', async (open) => {
  const page = await open('/outbox');
  await settle(page);
  await page.getByRole('button', { name: 'New subscription' }).click();
  await page.getByLabel('Name').fill('billing');
  await page.getByLabel('URL').fill('http://127.0.0.1:9/hook');
  await page.getByRole('dialog').getByLabel('Events', { exact: true }).fill('order.*, holdfast.*');
  await page.getByRole('button', { name: 'Save' }).click();
  check(/^whsec_/.test((await page.getByLabel('Secret', { exact: true }).innerText()).trim()), 'no secret is shown');
  await page.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.locator('tr', { hasText: 'billing' });
  await row.getByText('order.*').waitFor();
  const violations = await axe(page);
  check(violations.length === 0, violations.join('\n'));
  await row.getByRole('button', { name: 'Actions for billing' }).click();
  await page.getByRole('menuitem', { name: 'Park' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Park' }).click();
  await row.getByText('Parked').waitFor();
  await row.getByRole('button', { name: 'Actions for billing' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete subscription' }).click();
  await row.waitFor({ state: 'detached' });
});

test('a subscription that is changed keeps what the form does not show', async (open) => {
  await world.ask('PUT', '/v1/subscriptions/kept', { url: 'http://127.0.0.1:9/old', mode: 'binary', max_failures: 3 });
  const page = await open('/outbox');
  await settle(page);
  await page.getByRole('button', { name: 'Actions for kept' }).click();
  await page.getByRole('menuitem', { name: 'Change' }).click();
  await page.getByLabel('URL').fill('http://127.0.0.1:9/new');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('http://127.0.0.1:9/new').waitFor();
  const { url, mode, max_failures: failures } = await world.ask('GET', '/v1/subscriptions/kept');
  check(url.endsWith('/new') && mode === 'binary' && failures === 3, `${url} ${mode} ${failures}`);
  await world.ask('DELETE', '/v1/subscriptions/kept');
});

test('a test event says whether the receiver took it', async (open) => {
  const receiver = createServer((request, answer) => { request.resume(); answer.writeHead(request.url === '/good' ? 204 : 500).end(); });
  await new Promise((resolve) => { receiver.listen(0, '127.0.0.1', resolve); });
  try {
    for (const name of ['good', 'bad']) await world.ask('PUT', `/v1/subscriptions/tested-${name}`, { url: `http://127.0.0.1:${receiver.address().port}/${name}`, events: ['nothing.emits.it'] });
    const page = await open('/outbox');
    await settle(page);
    for (const [name, told] of [['bad', 'tested-bad: the event was not taken: it answered 500'], ['good', 'The receiver took it']]) {
      await page.getByRole('button', { name: `Actions for tested-${name}` }).click();
      await page.getByRole('menuitem', { name: 'Send a test' }).click();
      await page.locator(`.toast.${name}`).getByText(told).waitFor();
    }
  } finally {
    for (const name of ['good', 'bad']) await world.ask('DELETE', `/v1/subscriptions/tested-${name}`);
    receiver.close();
  }
});

test('the policy of the page allows nothing inline, and the assets are small', async () => {
  const answer = await fetch(world.url);
  const policy = answer.headers.get('content-security-policy');
  check(policy.includes("default-src 'none'") && policy.includes("script-src 'self'") && !policy.includes('unsafe'), policy);
  check(answer.headers.get('x-frame-options') === 'DENY', 'it may be framed');
  const text = await answer.text();
  check(!/style=|onclick=|<script>/.test(text), 'something is inline');
  const again = await fetch(world.url, { headers: { 'If-None-Match': answer.headers.get('etag') } });
  check(again.status === 304, `an unchanged page is answered with ${again.status}`);
  const script = /src="(\/assets\/[^"]*app.js)"/.exec(text)[1];
  const plain = await fetch(world.url + script, { headers: { 'Accept-Encoding': 'identity' } });
  check(plain.headers.get('content-encoding') === null && (await plain.text()).includes('import'), 'it is not served plain');
  check(plain.headers.get('cache-control').includes('immutable'), 'it is not kept');
  check((await fetch(`${world.url}/assets/0/app.js`)).status === 404, 'another version is served');
});

// ---- Running them, a few at a time ----

const AT_ONCE = 4;

async function run({ name, body }, number) {
  const complaints = [], contexts = [];
  const begun = Date.now();
  let failure = null;
  try {
    await body(opener(complaints, contexts));
    check(complaints.length === 0, `the browser complains: ${complaints.join('\n')}`);
  } catch (error) {
    failure = error;
  }
  for (const context of contexts) await context.close();
  console.log(`${failure ? 'not ok' : 'ok'} ${number} - ${name}`);
  if (failure) console.log(String(failure.stack ?? failure).replace(/^/gm, '# '));
  if (process.env.HOLDFAST_TIMES) console.log(`# ${Date.now() - begun} ms`);
  return !failure;
}

async function main() {
  await import('./workers.mjs'); // the last ones: a worker that was killed at the start is dead by then
  if (process.env.HOLDFAST_SCREENSHOTS) (await import('./screenshots.mjs')).register(process.env.HOLDFAST_SCREENSHOTS);
  const pattern = new RegExp(process.argv[2] ?? '.');
  const chosen = tests.filter(({ name }) => pattern.test(name));
  console.log(`1..${chosen.length}`);
  await begin();
  let next = 0, failed = 0;
  const work = async () => { while (next < chosen.length) { const number = ++next; if (!(await run(chosen[number - 1], number))) failed++; } };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await end();
  process.exitCode = failed ? 1 : 0;
}

main().catch((error) => { console.log(`Bail out! ${error.stack}`); process.exit(1); });
