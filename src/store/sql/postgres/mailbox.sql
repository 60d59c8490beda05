-- name: find_signals
-- Signals that have arrived before, by id, consumed or not. Under the run's lock. Serves: signal.
-- takes: rows (tenant int, run uuid, id text)
-- gives: (run uuid, id text)
SELECT n.run, n.id FROM unnest($1::int[], $2::uuid[], $3::text[]) AS n(tenant, run, id)
 WHERE EXISTS (SELECT 1 FROM holdfast.signal s WHERE s.run_id = n.run AND s.id = n.id AND s.tenant_id = n.tenant OFFSET 0);

-- name: find_stale_signals
-- Signals that were journalled as stale before, by what their journal line says. They have no place in the mailbox to
-- be known by. Under the run's lock. The journal is read only where the token is not the one that is waited for. Served
-- by the primary keys of run and event. Serves: signals with a token.
-- takes: rows (tenant int, run uuid, data text, token text)
-- gives: (run uuid, data text)
SELECT n.run, n.data FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[]) AS n(tenant, run, data, token)
 WHERE (SELECT r.waiting_token IS DISTINCT FROM n.token FROM holdfast.run r
         WHERE r.tenant_id = n.tenant AND r.id = n.run OFFSET 0)
   AND EXISTS (SELECT 1 FROM holdfast.event e
                WHERE e.run_id = n.run AND e.kind = 4 AND e.data = n.data AND e.tenant_id = n.tenant OFFSET 0);

-- name: insert_signals
-- Puts mail into mailboxes of locked runs. Serves: signal, child ends.
-- takes: rows (tenant int, run uuid, id text, type text, name text, payload text, token text, sender text,
--   expected_revision int, failed_child bool, delay bigint)
-- gives: nothing
INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, payload, token, sender, expected_revision, failed_child,
                             occurred_at, visible_at)
SELECT n.tenant, n.run, n.id, n.type, n.name, n.payload, n.token, n.sender, n.expected_revision, n.failed_child,
       holdfast.now(), holdfast.now() + n.delay
  FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[],
              $10::bool[], $11::bigint[])
       AS n(tenant, run, id, type, name, payload, token, sender, expected_revision, failed_child, delay)
ON CONFLICT (run_id, id) DO NOTHING;

-- name: put_timers
-- Sets timers by key, replacing the one that is there. Times are absolute. The signal's id is new each time, so that
-- the old one is stale. Serves: commit, trigger with an initial transition.
-- takes: rows (tenant int, run uuid, id text, key text, payload text, token text, visible_at bigint)
-- gives: nothing
INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, payload, token, timer_key, occurred_at, visible_at)
SELECT n.tenant, n.run, n.id, 'timer', n.key, n.payload, n.token, n.key, holdfast.now(), n.visible_at
  FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
       AS n(tenant, run, id, key, payload, token, visible_at)
 WHERE EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = n.tenant AND r.id = n.run OFFSET 0)
ON CONFLICT (run_id, timer_key) WHERE timer_key IS NOT NULL AND consumed_at IS NULL
DO UPDATE SET id = EXCLUDED.id, payload = EXCLUDED.payload, token = EXCLUDED.token, attempts = 0,
              position = nextval('holdfast.signal_position'), occurred_at = EXCLUDED.occurred_at,
              visible_at = EXCLUDED.visible_at;

-- name: cancel_timers
-- Takes timers back by key. Serves: commit.
-- takes: rows (tenant int, run uuid, key text)
-- gives: nothing
DELETE FROM holdfast.signal s
 USING unnest($1::int[], $2::uuid[], $3::text[]) AS n(tenant, run, key)
 CROSS JOIN LATERAL (
    SELECT t.ctid FROM holdfast.signal t
     WHERE t.run_id = n.run AND t.timer_key = n.key AND t.timer_key IS NOT NULL AND t.consumed_at IS NULL
    OFFSET 0) f
 WHERE s.ctid = f.ctid AND s.tenant_id = n.tenant;

-- name: consume_signals
-- Marks mail as done with. The row stays, so that the same id sent again is dropped. Serves: commit.
-- takes: rows (tenant int, run uuid, id text)
-- gives: nothing
UPDATE holdfast.signal s SET consumed_at = holdfast.now()
  FROM unnest($1::int[], $2::uuid[], $3::text[]) AS n(tenant, run, id)
 WHERE s.run_id = ANY (ARRAY[n.run]) AND s.id = n.id AND s.tenant_id = n.tenant
   AND coalesce(s.consumed_at, 0) = 0;

-- name: split_ends
-- Gives ends that share a row of mail rows of their own, with new positions but for the first. Under the run's lock. A row that
-- is shared is never consumed as it is. Served by signal_shared. Serves: commits that are done with single ends, before what
-- takes those out.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, payload, sender, occurred_at, visible_at)
SELECT b.tenant_id, b.run_id, 'child:' || substr(e.payload::text, 9, 36), b.type, b.name, e.payload::text,
       substr(e.payload::text, 9, 36), b.occurred_at, b.visible_at
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 CROSS JOIN LATERAL (
    SELECT m.tenant_id, m.run_id, m.type, m.name, m.payload, m.occurred_at, m.visible_at
      FROM holdfast.signal m
     WHERE m.run_id = n.run AND m.tenant_id = n.tenant AND m.ends IS NOT NULL
    OFFSET 0) b
 CROSS JOIN LATERAL json_array_elements(b.payload::json) AS e(payload)
ON CONFLICT (run_id, id) DO UPDATE SET payload = EXCLUDED.payload, ends = NULL WHERE signal.ends IS NOT NULL;

-- name: consume_ends
-- The same for all ends of children that lie between two positions of a mailbox: ten thousand at once. Those of children
-- that succeeded are removed, which costs a tenth of marking them: such a child cannot end again, so there is nothing to
-- be recognised. Served by signal_mailbox. Serves: commits of waits for children.
-- takes: rows (tenant int, run uuid, first bigint, last bigint)
-- gives: nothing
WITH done AS MATERIALIZED (
    SELECT f.ctid, f.failed_child
      FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[]) AS n(tenant, run, first, last)
     CROSS JOIN LATERAL (
        SELECT c.ctid, c.failed_child FROM holdfast.signal c
         WHERE c.run_id = n.run AND c.consumed_at IS NULL AND c.position BETWEEN n.first AND n.last AND c.type = 'child'
           AND c.tenant_id = n.tenant
        OFFSET 0) f
), gone AS (
    DELETE FROM holdfast.signal s WHERE s.ctid = ANY (ARRAY(SELECT d.ctid FROM done d WHERE NOT d.failed_child))
)
UPDATE holdfast.signal s SET consumed_at = holdfast.now()
 WHERE s.ctid = ANY (ARRAY(SELECT d.ctid FROM done d WHERE d.failed_child));

-- name: blame_signals
-- Counts a failed turn on mail; the last time it is taken out of the mailbox and kept as a dead letter. Serves:
-- commits of failed turns.
-- takes: rows (tenant int, run uuid, id text, worker text, letter uuid, most int)
-- gives: nothing
WITH blamed AS (
    UPDATE holdfast.signal s
       SET attempts = s.attempts + 1,
           consumed_at = CASE WHEN s.attempts + 1 >= n.most THEN holdfast.now() END
      FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::int[])
           AS n(tenant, run, id, worker, letter, most)
     WHERE s.run_id = ANY (ARRAY[n.run]) AND s.id = n.id AND s.tenant_id = n.tenant
       AND coalesce(s.consumed_at, 0) = 0
    RETURNING s.tenant_id, s.run_id, s.id, s.type, s.name, s.payload, s.token, s.sender, s.occurred_at, s.attempts,
              s.consumed_at, n.worker, n.letter
)
INSERT INTO holdfast.dead_letter (tenant_id, id, run_id, reason, envelope, node, created_at)
SELECT b.tenant_id, b.letter, b.run_id, 'poison: the run failed on this signal ' || b.attempts || ' times',
       json_build_object('id', b.id, 'type', b.type, 'name', b.name, 'payload', b.payload, 'token', b.token,
                         'sender', b.sender, 'occurred_at', b.occurred_at)::text, b.worker, b.consumed_at
  FROM blamed b WHERE b.consumed_at IS NOT NULL;
