// Who works, on what, and who is gone.
import { hostname } from 'node:os';
import { test, check, world, settle } from './harness.mjs';
import { until } from './world.mjs';

const workerRow = (page, pid) => page.locator('tbody tr', { hasText: new RegExp(`pid ${pid}\\b`) });

test('a worker is shown with its host, process and what it serves, and a run that it holds makes it busy', async (open) => {
  const page = await open('/workers');
  await settle(page);
  const row = workerRow(page, world.server.pid);
  const text = await row.innerText();
  check(text.includes(hostname()), text);
  for (const pattern of ['billing.charge.*', 'media.*', 'shop.*']) check(text.includes(pattern), `${pattern} is not among what it serves: ${text}`);
  await row.getByText('Working').waitFor(); // media.encode.v1 takes its time
  check(/[1-6]\/6/.test(await row.innerText()), await row.innerText());
  const packer = page.locator('tbody tr', { hasText: 'packer' });
  check(/order/.test(await packer.innerText()) && /parcel/.test(await packer.innerText()), await packer.innerText());
});

test('a worker that was killed is shown as dead, below those that live', async (open) => {
  const page = await open('/workers');
  const row = workerRow(page, world.lost.pid);
  await until(() => row.getByText('Dead').isVisible(), 'it is dead');
  check((await row.innerText()).includes('lost.*'), await row.innerText());
  const states = await page.locator('tbody tr').evaluateAll((all) => all.map((one) => one.innerText.includes('Dead')));
  check(states.indexOf(true) > states.lastIndexOf(false), `the dead are not below: ${states}`);
  await until(async () => { // others may come and go meanwhile
    const live = (await world.ask('GET', '/v1/workers')).items.filter((worker) => worker.live).length;
    return page.getByText(new RegExp(`^${live} live workers?,`)).isVisible();
  }, 'those that live are counted');
  await page.goto(world.url);
  await settle(page);
  check(!(await page.locator('#main').innerText()).includes(world.lost.name), 'the overview counts it among the workers');
});
