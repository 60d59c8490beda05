// A store of its own with a real server on it, filled with what the pages are to show, and a browser to look at it.
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const program = process.env.HOLDFAST;
export const PATIENCE = 180000; // ms: a busy machine is no failure
export const hostile = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>';

const handlers = {
  'charge.sh': 'cat >/dev/null; echo \'{"receipt": 12345678901234567890.10}\'',
  'refuse.sh': 'cat >/dev/null; echo "the card was refused: <b>4711</b> <img src=x onerror=window.hacked=1>" >&2; exit 78',
  'again.sh': 'cat >/dev/null; "$HOLDFAST" sleep nap 100ms; exec "$HOLDFAST" step connect --retry 3 --retry-base 100ms -- sh -c \'[ "$HOLDFAST_STEP_ATTEMPT" -gt 2 ]\'',
  'slow.sh': 'cat >/dev/null; sleep 600',
  'ask.sh': `cat >/dev/null; exec "$HOLDFAST" ask approve '{"order":7001,"discount":"15 %","account":12345678901234567890}' --title "Approve the discount" --role boss --role sales --form '{"fields":["note"]}' --due-in 2h`,
};

const started = new Set();
process.on('exit', () => { for (const child of started) child.kill('SIGKILL'); });

export class World {
  static async open({ order = false, options = [], worker = true } = {}) {
    const world = new World();
    world.directory = mkdtempSync(join(tmpdir(), 'holdfast-browser-'));
    world.children = [];
    world.store = `sqlite:${world.directory}/store.db`;
    for (const name in handlers) writeFileSync(join(world.directory, name), `#!/bin/sh\n${handlers[name]}\n`, { mode: 0o755 });
    const serves = worker ? ['--exec', 'billing.charge.*=./charge.sh', '--exec', 'billing.refuse.*=./refuse.sh', '--exec', 'net.*=./again.sh', '--exec', 'media.*=./slow.sh', '--exec', 'shop.*=./ask.sh', '--env', 'HOLDFAST', '--threads', '6'] : [];
    world.options = [...serves, ...options];
    await world.serve();
    if (order) world.start(process.env.HOLDFAST_ORDER_WORKER, [world.store]);
    return world;
  }

  start(command, args) {
    const child = spawn(command, args, { cwd: this.directory, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOLDFAST_STORE: this.store } });
    child.said = '';
    child.stdout.on('data', (data) => { child.said += data; });
    child.stderr.on('data', (data) => { child.said += data; });
    this.children.push(child);
    started.add(child);
    child.once('exit', () => started.delete(child));
    return child;
  }

  async serve(port = 0) {
    this.server = this.start(program, ['--json', 'serve', '--listen', `127.0.0.1:${port}`, ...this.options]);
    this.url = await until(() => /"url":"([^"]*)"/.exec(this.server.said)?.[1], () => `the server listens: ${this.server.said}`);
    this.port = Number(new URL(this.url).port);
  }

  async stop(child) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => { child.once('exit', resolve); });
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 15000);
    await ended;
    clearTimeout(timer);
  }

  async close() {
    await Promise.all(this.children.map((child) => this.stop(child)));
    rmSync(this.directory, { recursive: true, force: true });
  }

  holdfast(...args) {
    return execFileSync(program, args, { cwd: this.directory, env: { ...process.env, HOLDFAST_STORE: this.store }, encoding: 'utf8' });
  }

  async ask(method, path, body) {
    const answer = await fetch(this.url + path, { method, headers: { 'Content-Type': 'application/json', 'Holdfast-Actor': 'ada' }, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async trigger(workflow, members = {}) {
    return (await this.ask('POST', '/v1/runs', { workflow, ...members })).id;
  }

  // Many runs at once, in pieces that the server takes.
  async load(workflow, count, members = {}) {
    for (let at = 0; at < count; at += 10000) {
      await this.ask('POST', '/v1/runs/batch', { runs: Array.from({ length: Math.min(10000, count - at) }, (_, i) => ({ workflow, key: `load-${at + i}`, ...members })) });
    }
  }

  // A worker that is killed while it holds nothing; its heartbeat is overdue some time later.
  async loseWorker() {
    const child = this.start(program, ['worker', '--exec', 'lost.*=./charge.sh']);
    const mine = (worker) => worker.pid === child.pid;
    this.lost = await until(async () => (await this.ask('GET', '/v1/workers')).items.find(mine), () => `the worker is listed: ${child.said}`);
    child.kill('SIGKILL');
  }

  // A run that failed on a signal until that was taken from it. Only it is due of its workflow, which nobody else serves.
  async poison(workflow, signal) {
    await this.ask('PUT', `/v1/workflows/${workflow}`, {});
    const id = await this.trigger(workflow, { key: signal.id, max_attempts: 100 });
    await this.ask('POST', `/v1/runs/${id}/signals`, signal);
    execFileSync(process.env.HOLDFAST_POISON, [this.store, workflow, signal.id]);
    const { items: [letter] } = await this.ask('GET', `/v1/dead-letters?run=${id}`);
    return { run: id, letter };
  }

  async status(id, wanted) {
    return until(async () => {
      const run = await this.ask('GET', `/v1/runs/${id}`);
      return run.status === wanted ? run : null;
    }, () => `run ${id} is ${wanted}`);
  }

  // What every page has something to show of.
  async fill() {
    for (const name of ['billing.charge.v1', 'billing.refuse.v1', 'net.call.v1', 'media.encode.v1', 'mail.send.v1', 'shop.discount.v1', 'order', 'parcel']) await this.ask('PUT', `/v1/workflows/${name}`, {});
    await this.ask('PUT', '/v1/workflows/mail.send.v1', { max_running: 10, rate_count: 100, rate_interval: '1m' });
    await this.ask('POST', '/v1/workflows/mail.send.v1/pause');
    await this.ask('PUT', '/v1/schedules/nightly-report', { workflow: 'billing.charge.v1', cron: '0 3 * * *', timezone: 'Europe/Berlin' });
    await this.ask('PUT', '/v1/schedules/cleanup', { workflow: 'mail.send.v1', cron: 'every 15m' });
    const runs = [];
    for (let i = 0; i < 24; i++) runs.push({ workflow: 'billing.charge.v1', key: `invoice-${1000 + i}`, input: { invoice: 1000 + i, customer: 'acme', lines: [{ sku: 'A-7', amount: 12.5 }] }, tags: ['eu'] });
    for (let i = 0; i < 6; i++) runs.push({ workflow: 'mail.send.v1', key: `mail-${i}`, input: { to: 'kim@example.com' }, subject: 'customer 17' });
    await this.ask('POST', '/v1/runs/batch', { runs });
    this.failed = await this.trigger('billing.refuse.v1', { key: 'card-4711', input: { card: 4711 }, subject: 'customer 4711', tags: ['filtered'] });
    this.hostile = await this.trigger('billing.refuse.v1', { key: hostile, input: { html: hostile, [hostile]: [hostile] }, subject: hostile, tags: ['filtered'] });
    this.retried = await this.trigger('billing.refuse.v1', { key: 'card-4712' });
    this.slow = await this.trigger('media.encode.v1', { key: 'holiday.mov', input: { file: 'holiday.mov' } });
    this.later = await this.trigger('billing.charge.v1', { key: 'later', in: '2h', priority: 5 });
    this.paused = await this.trigger('billing.charge.v1', { key: 'held', in: '1h' });
    await this.ask('POST', `/v1/runs/${this.paused}/pause`, { reason: 'asked for by the customer' });
    this.discount = await this.trigger('shop.discount.v1', { key: 'order-7001' });
    await this.status(this.discount, 'waiting');
    await this.status(this.failed, 'failed');
    await this.status(this.hostile, 'failed');
    await this.status(this.retried, 'failed');
  }

  async fillOrder() {
    this.order = await this.trigger('order', { key: 'order-7001', input: { order: 7001, items: 3 } });
    await this.status(this.order, 'waiting');
  }
}

export async function until(look, what, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never happened: ${typeof what === 'function' ? what() : what}`);
    await new Promise((resolve) => { setTimeout(resolve, 40); });
  }
}

export async function openBrowser() {
  const require = createRequire(join(process.env.HOLDFAST_BROWSER_MODULES, 'node_modules', 'x.js'));
  const { chromium } = require('playwright-core');
  return chromium.launch({ executablePath: process.env.HOLDFAST_BROWSER, args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'] });
}

export function axeSource() {
  return createRequire(join(process.env.HOLDFAST_BROWSER_MODULES, 'node_modules', 'x.js')).resolve('axe-core/axe.min.js');
}
