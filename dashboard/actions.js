/* What people do to runs, with a question before. */
import { h } from './dom.js';
import { post, query } from './api.js';
import { dialog, isFinished, attempt, toast } from './ui.js';
import { number, plural, shortId } from './format.js';
import { navigate } from './router.js';
import { suggestWorkflows } from './names.js';

const reason = { name: 'reason', label: 'Reason', placeholder: 'for the journal; may be left out' };

/* `may(run)` tells when it is offered. */
export const changes = {
  cancel: { label: 'Cancel', icon: 'stop', danger: true, may: (run) => !isFinished(run.status) && !run.deleted_at,
    ask: 'It is stopped, and its children too. What it has done stays done.', done: 'cancelled' },
  pause: { label: 'Pause', icon: 'pause', may: (run) => !isFinished(run.status) && run.status !== 'paused' && !run.pause_requested && !run.deleted_at,
    ask: 'No worker takes it until it is resumed. If one has it now, it pauses at its next commit.', done: 'paused' },
  resume: { label: 'Resume', icon: 'play', may: (run) => (run.status === 'paused' || run.pause_requested) && !run.deleted_at,
    ask: 'It goes on where it was.', done: 'resumed' },
  retry: { label: 'Retry', icon: 'retry', may: (run) => (run.status === 'failed' || run.status === 'cancelled') && !run.deleted_at,
    ask: 'It is tried again with all its attempts. Steps that it finished are not repeated.', done: 'will be tried again' },
  delete: { label: 'Delete', icon: 'trash', danger: true, may: (run) => !run.deleted_at,
    ask: 'It leaves the lists and never runs again. It can be restored until it is purged.', done: 'deleted' },
  restore: { label: 'Restore', icon: 'restore', may: (run) => Boolean(run.deleted_at),
    ask: 'It comes back as it was.', done: 'restored' },
};

export async function changeRun(run, name) {
  const change = changes[name];
  const changed = await dialog({
    title: `${change.label} this run?`, danger: change.danger, action: `${change.label} run`, cancel: 'Back', fields: [reason],
    body: [h('p', { class: 'mono' }, `${run.workflow}${run.key ? ` / ${run.key}` : ''} · ${shortId(run.id)}`), h('p', { class: 'muted' }, change.ask)],
    act: (values) => post(`/v1/runs/${run.id}/${name}`, values.reason ? { reason: values.reason } : {}),
  });
  if (changed) toast(`The run is ${change.done}`.replace('is will', 'will'));
  return changed;
}

export async function signalRun(run) {
  return dialog({
    title: 'Send a signal', action: 'Send',
    body: h('p', { class: 'muted' }, run.waiting_kind === 'signal' ? `The run waits for a signal${run.current_step ? ` at “${run.current_step}”` : ''}.` : 'It stays in the run’s mailbox until the run asks for it.'),
    fields: [
      { name: 'name', label: 'Name', required: true, value: run.waiting_kind === 'signal' ? (run.current_step ?? '').replace(/#\d+$/, '') : '' },
      { name: 'payload', label: 'Payload (JSON)', type: 'json', value: '{}' },
    ],
    act: async (values) => {
      await post(`/v1/runs/${run.id}/signals`, `{"name":${JSON.stringify(values.name)}${values.payload.trim() ? `,"payload":${values.payload}` : ''}}`);
      toast('The signal was sent');
    },
  });
}

export async function forkRun(run, steps, chosen) {
  const made = await dialog({
    title: 'Fork from a step', action: 'Fork',
    body: h('p', { class: 'muted' }, 'A new run with the same input that keeps what was finished before the chosen step. This run is not touched.'),
    fields: [
      { name: 'step', label: 'Go on from', options: [{ value: '', label: 'the beginning' }, ...steps.map((name) => ({ value: name, label: name }))], value: chosen ?? '' },
      { name: 'input', label: 'Other input (JSON)', type: 'json', rows: 3, placeholder: 'as in this run' },
      reason,
    ],
    act: (values) => {
      const members = [];
      if (values.step) members.push(`"step":${JSON.stringify(values.step)}`);
      if (values.input.trim()) members.push(`"input":${values.input}`);
      if (values.reason) members.push(`"reason":${JSON.stringify(values.reason)}`);
      return post(`/v1/runs/${run.id}/fork`, `{${members.join(',')}}`);
    },
  });
  if (made?.id) navigate(`/runs/${made.id}`);
}

/* Numbers in the input keep their digits: it is sent as it was typed. */
export async function triggerRun(workflow) {
  const made = await dialog({
    title: 'New run', action: 'Start',
    fields: [
      { name: 'workflow', label: 'Workflow', required: true, value: workflow ?? '', suggest: suggestWorkflows },
      { name: 'input', label: 'Input (JSON)', type: 'json', value: 'null' },
      { name: 'key', label: 'Key', about: 'The same key and input give the run that is there.' },
      { name: 'delay', label: 'Delay', placeholder: '0s', about: 'As in 30s, 5m, 2h.' },
    ],
    act: (values) => {
      const members = [`"workflow":${JSON.stringify(values.workflow)}`];
      if (values.input.trim()) members.push(`"input":${values.input}`);
      if (values.key) members.push(`"key":${JSON.stringify(values.key)}`);
      if (values.delay) members.push(`"in":${JSON.stringify(values.delay)}`);
      return post('/v1/runs', `{${members.join(',')}}`);
    },
  });
  if (!made?.id) return;
  toast(made.existed ? 'This run was there already' : made.no_worker ? 'Accepted; no live worker serves it yet' : 'The run was started');
  navigate(`/runs/${made.id}`);
}

/* ---- Many ---- */

const ALONGSIDE = 6;

function progressBox() {
  const bar = h('progress', { max: '1', value: '0', 'aria-label': 'Progress' });
  const text = h('p', { class: 'muted' });
  return { node: h('div', { class: 'bulk-progress', hidden: true }, bar, text), show(done, all, refused) {
    this.node.hidden = false;
    bar.max = Math.max(all, 1);
    bar.value = done;
    text.textContent = `${number(done)} of ${number(all)}${refused ? `, ${number(refused)} refused` : ''}`;
  } };
}

/* Chosen runs, one by one. */
export async function changeChosen(ids, name) {
  const change = changes[name];
  const progress = progressBox();
  return dialog({
    title: `${change.label} ${plural(ids.length, 'run')}?`, danger: change.danger, action: `${change.label} ${plural(ids.length, 'run')}`, cancel: 'Back', fields: [reason],
    body: [h('p', { class: 'muted' }, change.ask.replace(/^It /, 'Each ')), progress.node],
    act: async (values) => {
      const left = [...ids];
      let done = 0, refused = 0;
      const work = async () => {
        for (let id = left.shift(); id; id = left.shift()) {
          try { await post(`/v1/runs/${id}/${name}`, values.reason ? { reason: values.reason } : {}); } catch (error) {
            if (error.status !== 409 && error.status !== 404) throw error;
            refused++;
          }
          progress.show(++done, ids.length, refused);
        }
      };
      await Promise.all(Array.from({ length: Math.min(ALONGSIDE, ids.length) }, work));
      toast(`${plural(done - refused, 'run')} changed${refused ? `, ${number(refused)} refused: their status does not allow it` : ''}`, refused && refused === done ? 'bad' : 'good');
      return { done, refused };
    },
  });
}

export const countMatching = async (filter, name = 'cancel') => (await post('/v1/runs/bulk', { action: name, filter, dry_run: true })).matched;

/* All that match a filter: counted first, then in pieces, each where the one before ended. */
export async function changeMatching(filter, name) {
  const change = changes[name];
  let matched = 0;
  if (!(await attempt(async () => { matched = await countMatching(filter, name); }))) return null;
  const progress = progressBox();
  return dialog({
    title: `${change.label} ${plural(matched, 'run')}?`, danger: true, action: `${change.label} ${plural(matched, 'run')}`, cancel: 'Back', fields: [reason],
    body: [h('p', { class: 'muted' }, `All that match: ${query(filter).slice(1).replaceAll('&', ', ') || 'every run'}. ${change.ask.replace(/^It /, 'Each ')}`), progress.node],
    act: async (values) => {
      let changed = 0, refused = 0, cursor = null;
      do {
        const part = await post('/v1/runs/bulk', { action: name, filter: cursor ? { ...filter, cursor } : filter, ...(values.reason ? { reason: values.reason } : {}) });
        changed += part.changed;
        refused += part.refused;
        cursor = part.next;
        progress.show(changed + refused, matched, refused);
      } while (cursor);
      toast(`${plural(changed, 'run')} changed${refused ? `, ${number(refused)} refused: their status does not allow it` : ''}`);
      return { changed, refused };
    },
  });
}
