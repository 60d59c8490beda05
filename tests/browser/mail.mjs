// What runs get and send: dead letters, the outbox; and ids to take along.
import { createServer } from 'node:http';
import { test, check, world, settle, rows } from './harness.mjs';
import { until } from './world.mjs';

// ---- Dead letters ----

const letterOf = (page, run) => page.locator('.lines > li', { has: page.locator(`a[href="/runs/${run}"]`) });

async function choose(page, row, item) {
  await row.getByRole('button', { name: 'Actions for this letter' }).click();
  await page.getByRole('menuitem', { name: item }).click();
}

const lettersOf = async (run) => (await world.ask('GET', `/v1/dead-letters?run=${run}`)).items;

// What the run would be given now.
async function mailOf(run, workflow) {
  const { items: [claimed] } = await world.ask('POST', '/v1/work/claim', { worker: 'browser', workflows: [workflow], limit: 1 });
  check(claimed?.run.id === run, `another run is due: ${JSON.stringify(claimed)}`);
  return claimed.mail ?? [];
}

async function journalHas(run, name) {
  return until(async () => (await world.ask('GET', `/v1/runs/${run}/events`)).items.some((event) => event.name === name), `the journal says ${name}`);
}

test('a dead letter says what it is, and is sent again after a question', async (open) => {
  const { run, letter } = await world.poison('letter.again.v1', { id: 'again-1', name: 'paid', payload: { amount: 12.5, note: 'second try' } });
  const page = await open('/dead-letters');
  await settle(page);
  const row = letterOf(page, run);
  const text = await row.innerText();
  check(/poison/.test(text) && /failed on this signal 5 times/.test(text) && /paid/.test(text) && /"second try"/.test(text), text);
  await choose(page, row, 'Send again');
  await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click();
  check((await lettersOf(run)).length === 1, 'it was sent without being asked to');
  await choose(page, row, 'Send again');
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
  await page.getByText('It was sent again').waitFor();
  await row.waitFor({ state: 'detached' });
  check((await lettersOf(run)).length === 0, 'the letter is still there');
  await journalHas(run, 'dead_letter_requeued');
  const mail = await mailOf(run, 'letter.again.v1');
  check(mail.length === 1 && mail[0].name === 'paid' && mail[0].id === `requeue:${letter.id}` && mail[0].payload.note === 'second try', JSON.stringify(mail));
});

test('a dead letter is discarded after a question, and the run is without it', async (open) => {
  const { run } = await world.poison('letter.discard.v1', { id: 'discard-1', name: 'refund', payload: 'plain words' });
  const page = await open('/dead-letters');
  await settle(page);
  const row = letterOf(page, run);
  check((await row.innerText()).includes('plain words'), await row.innerText());
  await choose(page, row, 'Discard');
  await page.keyboard.press('Escape');
  check((await lettersOf(run)).length === 1, 'it was discarded without being asked to');
  await choose(page, row, 'Discard');
  await page.getByRole('dialog').getByRole('button', { name: 'Discard letter' }).click();
  await page.getByText('It was discarded').waitFor();
  await row.waitFor({ state: 'detached' });
  check((await lettersOf(run)).length === 0, 'the letter is still there');
  await journalHas(run, 'dead_letter_discarded');
  check((await mailOf(run, 'letter.discard.v1')).length === 0, 'the run is given it');
});

test('a dead letter of a run that has ended is not sent, and the dialog says why', async (open) => {
  const { run } = await world.poison('letter.late.v1', { id: 'late-1', name: 'paid', payload: null });
  await world.ask('POST', `/v1/runs/${run}/cancel`, {});
  const page = await open('/dead-letters');
  await settle(page);
  await choose(page, letterOf(page, run), 'Send again');
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
  await page.getByRole('dialog').getByRole('alert').filter({ hasText: /cancelled|finished|ended/ }).waitFor();
  check((await lettersOf(run)).length === 1, 'the letter is gone');
});

// ---- The outbox ----

// One receiver that takes what comes to /takes, and nothing else.
async function receiver() {
  const server = createServer((request, answer) => { request.resume(); answer.writeHead(request.url === '/takes' ? 204 : 500).end(); });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return server;
}

async function emit(workflow, outbox) {
  await world.ask('PUT', `/v1/workflows/${workflow}`, {});
  const id = await world.trigger(workflow);
  const { items: [{ run }] } = await world.ask('POST', '/v1/work/claim', { worker: 'browser', workflows: [workflow], limit: 1 });
  await world.ask('POST', `/v1/work/runs/${id}/commit`, { worker: 'browser', version: run.version, turn: 'succeed', outbox });
  return id;
}

test('the outbox shows what was delivered and what was not, and who refuses it', async (open) => {
  const server = await receiver();
  try {
    for (const name of ['takes', 'refuses']) await world.ask('PUT', `/v1/subscriptions/${name}`, { url: `http://127.0.0.1:${server.address().port}/${name}`, events: [`mail.${name}`] });
    const run = await emit('outbox.sender.v1', [{ type: 'mail.takes', payload: { parcel: 7 } }, { type: 'mail.refuses', payload: { parcel: 8 } }]);
    await until(async () => {
      const { items } = await world.ask('GET', `/v1/outbox?run=${run}`);
      return items.some((one) => one.type === 'mail.takes' && one.published_at) && items.some((one) => one.type === 'mail.refuses' && one.attempts > 0);
    }, 'one is delivered, the other refused');
    const page = await open('/outbox');
    await settle(page);
    const row = (type) => page.locator('.lines > li', { hasText: type });
    check(/Delivered/.test(await row('mail.takes').innerText()) && /"parcel":\s*7/.test(await row('mail.takes').innerText()), await row('mail.takes').innerText());
    check(/Retrying/.test(await row('mail.refuses').innerText()) && /500/.test(await row('mail.refuses').innerText()), await row('mail.refuses').innerText());
    const subscription = page.locator('tr', { hasText: 'mail.refuses' });
    check(/Retrying/.test(await subscription.innerText()) && /500/.test(await subscription.innerText()), await subscription.innerText());
    await page.getByRole('button', { name: 'Not delivered' }).click();
    await page.waitForURL(/undelivered=true/);
    await settle(page);
    await row('mail.refuses').waitFor();
    check((await row('mail.takes').count()) === 0, 'what was delivered is listed as well');
    await row('mail.refuses').getByRole('button', { name: 'Look' }).click();
    check((await page.getByRole('dialog').locator('.json').innerText()).includes(run), 'it does not say of which run it is');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await row('mail.takes').waitFor();
  } finally {
    for (const name of ['takes', 'refuses']) await world.ask('DELETE', `/v1/subscriptions/${name}`);
    server.close();
  }
});

// ---- Ids ----

test('an id is copied whole: from the run, from a row, and by its key', async (open) => {
  const page = await open(`/runs/${world.failed}`, { permissions: ['clipboard-read', 'clipboard-write'] });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const forget = () => page.evaluate(() => navigator.clipboard.writeText('nothing'));
  await settle(page);
  await page.getByRole('button', { name: 'Copy id' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  check((await copied()) === world.failed, await copied());
  await page.getByRole('button', { name: 'Copy key' }).click();
  await until(async () => (await copied()) === 'card-4711', 'the key is copied');
  await page.keyboard.press('c');
  await until(async () => (await copied()) === world.failed, 'its key copies the id');
  await page.goto(`${world.url}/runs?tag=filtered`);
  await until(async () => (await rows(page).count()) === 2, 'the list is there');
  await forget();
  const row = page.locator(`.run-list tr[data-id="${world.hostile}"]`);
  await row.hover();
  await row.getByRole('button', { name: 'Copy id' }).click();
  await until(async () => (await copied()) === world.hostile, 'it is copied from the row');
  check(page.url().endsWith('/runs?tag=filtered'), 'the row was opened');
  await page.keyboard.press('j');
  const current = await page.locator('.run-list tr.current').getAttribute('data-id');
  await forget();
  await page.keyboard.press('c');
  await until(async () => (await copied()) === current, 'the key copies that of the row');
});
