-- name: find_signals
-- Signals that have arrived before, by id, consumed or not. Under the run's lock. Serves: signal.
-- takes: rows (tenant int, run uuid, id text)
-- gives: (run uuid, id text)
SELECT run_id, id FROM signal WHERE run_id = ?2 AND id = ?3 AND tenant_id = ?1;

-- name: find_stale_signals
-- Signals that were journalled as stale before, by what their journal line says. They have no place in the mailbox to
-- be known by. Under the run's lock. The journal is read only where the token is not the one that is waited for. Served
-- by the primary keys of run and event. Serves: signals with a token.
-- takes: rows (tenant int, run uuid, data text, token text)
-- gives: (run uuid, data text)
SELECT ?2, ?3
 WHERE (SELECT r.waiting_token IS NOT ?4 FROM run r WHERE r.tenant_id = ?1 AND r.id = ?2)
   AND EXISTS (SELECT 1 FROM event WHERE run_id = ?2 AND kind = 4 AND data = ?3 AND tenant_id = ?1);

-- name: insert_signals
-- Puts mail into mailboxes of locked runs. Serves: signal, child ends.
-- takes: rows (tenant int, run uuid, id text, type text, name text, payload text, token text, sender text,
--   expected_revision int, failed_child bool, delay bigint)
-- gives: nothing
INSERT INTO signal (tenant_id, run_id, id, type, name, payload, token, sender, expected_revision, failed_child,
                    occurred_at, visible_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, holdfast_now(), holdfast_now() + ?11)
ON CONFLICT DO NOTHING;

-- name: put_timers
-- Sets timers by key, replacing the one that is there. Times are absolute. The signal's id is new each time, so that
-- the old one is stale. Serves: commit, trigger with an initial transition.
-- takes: rows (tenant int, run uuid, id text, key text, payload text, token text, visible_at bigint)
-- gives: nothing
DELETE FROM signal WHERE run_id = ?2 AND timer_key = ?4 AND timer_key IS NOT NULL AND consumed_at IS NULL;
INSERT INTO signal (tenant_id, run_id, id, type, name, payload, token, timer_key, occurred_at, visible_at)
SELECT ?1, ?2, ?3, 'timer', ?4, ?5, ?6, ?4, holdfast_now(), ?7
 WHERE EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);

-- name: cancel_timers
-- Takes timers back by key. Serves: commit.
-- takes: rows (tenant int, run uuid, key text)
-- gives: nothing
DELETE FROM signal WHERE run_id = ?2 AND tenant_id = ?1 AND timer_key = ?3 AND timer_key IS NOT NULL AND consumed_at IS NULL;

-- name: consume_signals
-- Marks mail as done with. The row stays, so that the same id sent again is dropped. Serves: commit.
-- takes: rows (tenant int, run uuid, id text)
-- gives: nothing
UPDATE signal SET consumed_at = holdfast_now()
 WHERE run_id = ?2 AND id = ?3 AND tenant_id = ?1 AND consumed_at IS NULL;

-- name: split_ends
-- Gives ends that share a row of mail rows of their own, with new positions but for the first. A row that is shared is never
-- consumed as it is. Served by signal_shared. Serves: commits that are done with single ends, before what takes those out.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
INSERT INTO signal (tenant_id, run_id, id, type, name, payload, sender, occurred_at, visible_at)
SELECT b.tenant_id, b.run_id, 'child:' || substr(e.value, 9, 36), b.type, b.name, e.value, substr(e.value, 9, 36),
       b.occurred_at, b.visible_at
  FROM signal b INDEXED BY signal_shared, json_each(b.payload) e
 WHERE b.run_id = ?2 AND b.tenant_id = ?1 AND b.ends IS NOT NULL
ON CONFLICT (run_id, id) DO UPDATE SET payload = excluded.payload, ends = NULL WHERE signal.ends IS NOT NULL;

-- name: consume_ends
-- The same for all ends of children that lie between two positions of a mailbox: ten thousand at once. Those of children
-- that succeeded are removed: such a child cannot end again, so there is nothing to be recognised. Served by
-- signal_mailbox. Serves: commits of waits for children.
-- takes: rows (tenant int, run uuid, first bigint, last bigint)
-- gives: nothing
DELETE FROM signal INDEXED BY signal_mailbox
 WHERE run_id = ?2 AND consumed_at IS NULL AND position BETWEEN ?3 AND ?4 AND type = 'child' AND tenant_id = ?1
   AND NOT failed_child;
UPDATE signal INDEXED BY signal_mailbox SET consumed_at = holdfast_now()
 WHERE run_id = ?2 AND consumed_at IS NULL AND position BETWEEN ?3 AND ?4 AND type = 'child' AND tenant_id = ?1;

-- name: blame_signals
-- Counts a failed turn on mail; the last time it is taken out of the mailbox and kept as a dead letter. Serves:
-- commits of failed turns.
-- takes: rows (tenant int, run uuid, id text, worker text, letter uuid, most int)
-- gives: nothing
UPDATE signal SET attempts = attempts + 1, consumed_at = CASE WHEN attempts + 1 >= ?6 THEN holdfast_now() END
 WHERE run_id = ?2 AND id = ?3 AND tenant_id = ?1 AND consumed_at IS NULL;
INSERT INTO dead_letter (tenant_id, id, run_id, reason, envelope, node, created_at)
SELECT s.tenant_id, ?5, s.run_id, 'poison: the run failed on this signal ' || s.attempts || ' times',
       json_object('id', s.id, 'type', s.type, 'name', s.name, 'payload', s.payload, 'token', s.token,
                   'sender', s.sender, 'occurred_at', s.occurred_at), ?4, s.consumed_at
  FROM signal s
 WHERE changes() = 1 AND s.run_id = ?2 AND s.id = ?3 AND s.tenant_id = ?1 AND s.consumed_at IS NOT NULL;
