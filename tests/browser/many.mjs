// A hundred thousand runs: the list stays small and quick, and says how many it means.
import { test, check, settle, rows, crowd, CROWD } from './harness.mjs';
import { until } from './world.mjs';

const MOST_ROWS = 500; // in the document, of those that are listed
const toTheEnd = (page) => page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
const inDocument = (page) => page.evaluate(() => document.querySelectorAll('.run-list tr').length);

// Scrolls until the list waits to be asked for more.
async function goDown(page, seen) {
  const note = page.getByText(/The newest [\d,]+ are listed/);
  await until(async () => {
    await toTheEnd(page);
    seen.most = Math.max(seen.most, await inDocument(page));
    return note.isVisible();
  }, () => `the list has gone down: ${seen.most}`);
  return Number((await note.innerText()).replace(/\D/g, ''));
}

test('a list of a hundred thousand runs goes on for ever, and the document stays small', async (open) => {
  const full = await crowd();
  const page = await open('/runs', { base: full.url });
  await settle(page);
  const seen = { most: 0 };
  const listed = await goDown(page, seen);
  check(listed >= 2000, `${listed} are listed`);
  check(seen.most <= MOST_ROWS, `${seen.most} rows in the document, of ${listed}`);
  const height = () => page.locator('.run-list').evaluate((box) => box.offsetHeight);
  check((await height()) > listed * 40, `${await height()} px are no room for ${listed} rows`);
  await page.getByLabel('Select all that are listed').check();
  await page.locator('.bulk').getByText(`${listed.toLocaleString('en-US')} runs selected`).waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await page.locator('.run-list tr.selected', { hasText: `load-${CROWD - 1}` }).waitFor();
  check((await inDocument(page)) <= MOST_ROWS, 'going up leaves rows behind');
  await toTheEnd(page);
  await page.getByRole('button', { name: 'Load more' }).click();
  await until(async () => (await height()) > (listed + 90) * 40, 'it goes on when it is asked to');
});

test('who opens a run far down in the list and goes back is there again', async (open) => {
  const full = await crowd();
  const page = await open('/runs', { base: full.url });
  await settle(page);
  await until(async () => { await toTheEnd(page); return page.locator('.run-list', { hasText: `load-${CROWD - 300}` }).isVisible(); }, 'it goes down');
  const row = page.locator('.run-list tr', { hasText: `load-${CROWD - 300}` });
  await row.scrollIntoViewIfNeeded();
  await row.locator('a').click();
  await page.getByRole('heading', { level: 1, name: 'crowd.v1' }).waitFor();
  await full.ask('POST', `/v1${new URL(page.url()).pathname}/cancel`, {});
  await page.goBack();
  await row.locator('.badge', { hasText: 'Cancelled' }).waitFor(); // and what happened meanwhile is read
  const box = await row.boundingBox();
  check(box.y > -box.height && box.y < 900, `the row is at ${box.y}`);
});

test('filters find a few of very many, and a selection of all that match says how many they are', async (open) => {
  const full = await crowd();
  const page = await open('/runs?tag=rare', { base: full.url });
  await until(async () => (await rows(page).count()) === 3, 'three have the tag');
  await page.goto(`${full.url}/runs?key=load-77777`);
  await until(async () => (await rows(page).count()) === 1, 'one has the key');
  await page.goto(`${full.url}/runs?workflow=crowd.v1`);
  await until(async () => (await rows(page).count()) >= 50, 'they are listed');
  await page.getByLabel('Select all that are listed').check();
  await page.getByRole('button', { name: 'Select all that match' }).click();
  const many = CROWD.toLocaleString('en-US');
  await page.locator('.bulk').getByText(`All ${many} runs that match are selected`).waitFor();
  await page.locator('.bulk').getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('dialog').getByRole('button', { name: `Pause ${many} runs` }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Only those chosen' }).click();
  await page.locator('.bulk').getByText(/^\d+ runs selected/).waitFor();
  check((await full.ask('GET', '/v1/runs?status=paused')).items.length === 0, 'some are paused');
});
