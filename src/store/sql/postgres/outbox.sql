-- name: insert_outbox
-- Events that leave the system, in the order of the run's journal, with a delivery for each subscription that wants them;
-- the runs that deliver are made due and their lanes given back. What nobody wants counts as published. The engine's own
-- events are written only if they are wanted, and if what they tell of was written by this flush: that the run failed, or was
-- cancelled, with this version, that there is this dead letter. What tells of an end tells, within room bytes, what the run was
-- and did. seq null: the run's last. Serves: commit, trigger with an initial transition, cancel.
-- takes: rows (id uuid, tenant int, run uuid, seq bigint, type text, payload text, ended_version bigint, letter uuid,
--   room bigint)
-- gives: (lane int, run_at bigint)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
fresh AS (
    INSERT INTO holdfast.outbox (id, tenant_id, run_id, seq, type, payload, created_at, published_at)
    SELECT n.id, n.tenant, n.run, coalesce(n.seq, r.event_seq), n.type,
           CASE WHEN n.ended_version IS NULL THEN n.payload
                ELSE left(n.payload, -1) || ',' || holdfast.run_told(n.tenant, n.run, n.room) || '}' END, t.now,
           CASE WHEN NOT w.wanted THEN t.now END
      FROM t, unnest($1::uuid[], $2::int[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::uuid[],
                  $9::bigint[]) AS n(id, tenant, run, seq, type, payload, ended_version, letter, room)
     CROSS JOIN LATERAL (
        SELECT x.event_seq, x.version, x.status FROM holdfast.run x WHERE x.tenant_id = n.tenant AND x.id = n.run
        OFFSET 0) r
     CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM holdfast.subscription s
                        WHERE s.tenant_id = n.tenant AND holdfast.event_wanted(s.filter, n.type)) AS wanted OFFSET 0) w
     WHERE (w.wanted OR NOT starts_with(n.type, 'holdfast.'))
       AND (n.ended_version IS NULL OR (r.version = n.ended_version
                                        AND r.status = CASE n.type WHEN 'holdfast.run.cancelled' THEN 6 ELSE 5 END))
       AND (n.letter IS NULL OR EXISTS (SELECT 1 FROM holdfast.dead_letter l
                                         WHERE l.tenant_id = n.tenant AND l.id = n.letter OFFSET 0))
    ON CONFLICT (id) DO NOTHING
    RETURNING id, position, tenant_id, type, published_at
), routed AS (
    INSERT INTO holdfast.delivery (subscription_id, position, outbox_id)
    SELECT s.id, f.position, f.id
      FROM fresh f
     CROSS JOIN LATERAL (
        SELECT x.id FROM holdfast.subscription x
         WHERE x.tenant_id = f.tenant_id AND holdfast.event_wanted(x.filter, f.type) OFFSET 0) s
     WHERE f.published_at IS NULL
    RETURNING subscription_id
), woken AS (
    UPDATE holdfast.run r SET run_at = t.now
      FROM t, (SELECT DISTINCT s.tenant_id, s.run_id
                 FROM routed d
                CROSS JOIN LATERAL (
                   SELECT x.tenant_id, x.run_id FROM holdfast.subscription x
                    WHERE x.id = d.subscription_id OFFSET 0) s
                ORDER BY s.tenant_id, s.run_id OFFSET 0) q
     WHERE r.tenant_id = ANY (ARRAY[q.tenant_id]) AND r.id = q.run_id AND r.status = 2 AND r.waiting_kind = 'outbox'
       AND (r.run_at IS NULL OR r.run_at > t.now)
    RETURNING r.lane, r.run_at
)
SELECT w.lane, w.run_at FROM woken w;

-- piece: free_seat
-- A seat of this place at which nobody writes events. Not all begin with the first.
SELECT l.seat FROM holdfast.engine_lock l
 WHERE l.kind = 2 AND l.place = p.place
 ORDER BY (l.seat + pg_backend_pid()) % 8 LIMIT 1
   FOR NO KEY UPDATE SKIP LOCKED

-- name: announce_outbox
-- Says that events of these tenants are about to be written: until the transaction ends, no run that delivers goes to
-- sleep. Takes a seat in each tenant's place; if none is free, waits for one. In one order, since somebody may wait_quiet in
-- between. Before insert_outbox, whose snapshot must be younger. Served by the primary key of engine_lock. Serves: commit,
-- trigger with an initial transition.
-- only: postgres
-- takes: rows (tenant int)
-- gives: (seat int)
SELECT coalesce(f.seat, w.seat)
  FROM (SELECT DISTINCT a.tenant % 128 AS place FROM unnest($1::int[]) AS a(tenant) ORDER BY 1 OFFSET 0) p
  LEFT JOIN LATERAL (
    -- include: free_seat
  ) f ON true
  LEFT JOIN LATERAL (
    SELECT l.seat FROM holdfast.engine_lock l
     WHERE l.kind = 2 AND l.place = p.place AND l.seat = pg_backend_pid() % 8 AND f.seat IS NULL
       FOR NO KEY UPDATE
  ) w ON true;

-- name: try_announce
-- The same without waiting, for those who tried to get quiet: two of them could wait for each other's tenants. Served by the
-- primary key of engine_lock. Serves: as announce_outbox.
-- only: postgres
-- takes: rows (tenant int)
-- gives: (announced bool)
SELECT f.seat IS NOT NULL
  FROM (SELECT DISTINCT a.tenant % 128 AS place FROM unnest($1::int[]) AS a(tenant) ORDER BY 1 OFFSET 0) p
  LEFT JOIN LATERAL (
    -- include: free_seat
  ) f ON true;

-- name: try_quiet
-- Whether no event of the tenant is being written: it takes all seats. Then none will be until this transaction ends. Before
-- pending_deliveries, whose snapshot must be younger. Served by the primary key of engine_lock. Serves: commits of runs that
-- deliver, which want to sleep.
-- only: postgres
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, quiet bool)
SELECT n.run,
       (SELECT count(*) = 8
          FROM (SELECT l.seat FROM holdfast.engine_lock l
                 WHERE l.kind = 2 AND l.place = n.tenant % 128 ORDER BY l.seat
                   FOR NO KEY UPDATE SKIP LOCKED) s)
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run);

-- name: wait_quiet
-- Waits until no event of the tenant is being written, seat by seat: who comes later waits behind it. Served by the primary key of
-- engine_lock. Serves: removing a subscription, before delete_subscription.
-- only: postgres
-- takes: one (tenant int)
-- gives: nothing
SELECT l.seat FROM holdfast.engine_lock l WHERE l.kind = 2 AND l.place = $1 % 128 ORDER BY l.seat FOR NO KEY UPDATE;

-- name: pending_deliveries
-- Runs that have something to deliver. Served by subscription_run and the primary key of delivery. Serves: commits of runs
-- that deliver, which want to sleep.
-- takes: rows (run uuid)
-- gives: (run uuid)
SELECT n.run FROM unnest($1::uuid[]) AS n(run)
 WHERE EXISTS (SELECT 1 FROM holdfast.subscription s
                CROSS JOIN LATERAL (SELECT 1 FROM holdfast.delivery d WHERE d.subscription_id = s.id LIMIT 1) d
                WHERE s.run_id = n.run OFFSET 0);

-- name: load_subscription
-- Where a run of holdfast.dispatch delivers to. Served by subscription_run. Serves: the dispatcher.
-- takes: one (tenant int, run uuid)
-- gives: (id uuid, name text, url text, secret text, mode int, max_failures int)
SELECT s.id, s.name, s.url, s.secret, s.mode::int, s.max_failures FROM holdfast.subscription s
 WHERE s.tenant_id = $1 AND s.run_id = $2;

-- name: load_deliveries
-- The next events to deliver after a position, in order; those of the runs that are named come without what they carry.
-- Their run may be purged by now. `behind`: how many there are up to that position. Served by the primary keys. Serves: the dispatcher, removing a subscription.
-- takes: one (subscription uuid, after bigint, most int, held_1 uuid, held_2 uuid, held_3 uuid)
-- gives: (position bigint, id uuid, run uuid, type text, payload text, created_at bigint, attempts int, workflow text,
--   subject text, key text, trace text, behind bigint)
SELECT d.position, o.id, o.run_id, o.type, CASE WHEN o.run_id IN ($4, $5, $6) THEN NULL ELSE o.payload END, o.created_at,
       d.attempts, r.workflow, r.subject, r.key, r.trace,
       (SELECT count(*) FROM holdfast.delivery b WHERE b.subscription_id = $1 AND b.position <= $2)
  FROM (SELECT x.position, x.outbox_id, x.attempts FROM holdfast.delivery x
         WHERE x.subscription_id = $1 AND x.position > $2 ORDER BY x.position LIMIT $3) d
 CROSS JOIN LATERAL (
    SELECT x.id, x.tenant_id, x.run_id, x.type, x.payload, x.created_at FROM holdfast.outbox x
     WHERE x.id = d.outbox_id OFFSET 0) o
  LEFT JOIN LATERAL (
    SELECT w.name AS workflow, x.subject, x.key, x.trace
      FROM holdfast.run x JOIN holdfast.workflow w ON w.id = x.workflow_id
     WHERE x.tenant_id = o.tenant_id AND x.id = o.run_id OFFSET 0) r ON true
 ORDER BY d.position;

-- name: lock_outbox
-- Locks events whose deliveries end: of two that end at once, the second sees the first. Serves: the dispatcher.
-- only: postgres
-- takes: rows (id uuid)
-- gives: (id uuid)
SELECT o.id FROM (SELECT n.id FROM unnest($1::uuid[]) AS n(id) ORDER BY n.id OFFSET 0) q
  JOIN holdfast.outbox o ON o.id = ANY (ARRAY[q.id]) FOR NO KEY UPDATE OF o;

-- name: end_deliveries
-- What was delivered, or is not wanted any more. Served by the primary key of delivery. Serves: the dispatcher, removing
-- a subscription.
-- takes: rows (subscription uuid, position bigint)
-- gives: nothing
DELETE FROM holdfast.delivery d USING unnest($1::uuid[], $2::bigint[]) AS n(subscription, position)
 WHERE d.subscription_id = ANY (ARRAY[n.subscription]) AND d.position = n.position;

-- name: publish_outbox
-- Events that have no delivery left are published. After end_deliveries. Serves: the dispatcher, removing a subscription.
-- takes: rows (id uuid)
-- gives: nothing
UPDATE holdfast.outbox o SET published_at = holdfast.now() FROM unnest($1::uuid[]) AS n(id)
 WHERE o.id = ANY (ARRAY[n.id]) AND coalesce(o.published_at, 0) = 0
   AND NOT EXISTS (SELECT 1 FROM holdfast.delivery d WHERE d.outbox_id = n.id OFFSET 0);

-- name: blame_delivery
-- Counts a failed attempt. Served by the primary key of delivery. Serves: the dispatcher.
-- takes: one (subscription uuid, position bigint, error text)
-- gives: nothing
UPDATE holdfast.delivery d SET attempts = d.attempts + 1, last_error = $3
 WHERE d.subscription_id = $1 AND d.position = $2;

-- name: put_subscription
-- Makes a subscription or changes it; the id given back tells which. Its secret stays unless a new one is given. Serves:
-- hf_subscription_put.
-- takes: one (tenant int, id uuid, name text, url text, filter text, secret text, fresh_secret text, mode int,
--   max_failures int, run uuid)
-- gives: (id uuid)
INSERT INTO holdfast.subscription AS s (tenant_id, id, name, url, filter, secret, mode, max_failures, run_id, created_at,
                                        updated_at)
VALUES ($1, $2, $3, $4, $5, coalesce($6, $7), $8::smallint, $9, $10, holdfast.now(), holdfast.now())
ON CONFLICT (tenant_id, name) DO UPDATE
   SET url = EXCLUDED.url, filter = EXCLUDED.filter, secret = coalesce($6, s.secret), mode = EXCLUDED.mode,
       max_failures = EXCLUDED.max_failures, run_id = EXCLUDED.run_id, updated_at = EXCLUDED.updated_at
RETURNING s.id;

-- name: list_subscriptions
-- Subscriptions by name, or one of them, with their runs, what is still to be delivered (counted to 100000), and what
-- keeps the run from its turns. Serves: lists.
-- takes: one (tenant int, name text)
-- gives: (id uuid, name text, url text, filter text, mode int, max_failures int, run uuid, created_at bigint, updated_at
--   bigint, status int, waiting_kind text, state text, run_at bigint, pause_requested bool, pending bigint,
--   oldest_at bigint, trouble text)
SELECT s.id, s.name, s.url, s.filter, s.mode::int, s.max_failures, s.run_id, s.created_at, s.updated_at, r.status::int,
       r.waiting_kind, r.state, r.run_at, r.pause_requested,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast.delivery d WHERE d.subscription_id = s.id LIMIT 100000) p),
       (SELECT o.created_at
          FROM (SELECT d.outbox_id FROM holdfast.delivery d WHERE d.subscription_id = s.id ORDER BY d.position LIMIT 1) p
         CROSS JOIN LATERAL (SELECT x.created_at FROM holdfast.outbox x WHERE x.id = p.outbox_id OFFSET 0) o),
       CASE WHEN r.status = 0 THEN r.last_error END
  FROM holdfast.subscription s
  LEFT JOIN LATERAL (
    SELECT x.status, x.waiting_kind, x.state, x.run_at, x.pause_requested, x.last_error FROM holdfast.run x
     WHERE x.tenant_id = s.tenant_id AND x.id = s.run_id OFFSET 0) r ON true
 WHERE s.tenant_id = $1 AND ($2::text IS NULL OR s.name = $2)
 ORDER BY s.name COLLATE "C";

-- name: get_secret
-- The secret of a subscription. Serves: hf_subscription_test.
-- takes: one (tenant int, name text)
-- gives: (secret text)
SELECT s.secret FROM holdfast.subscription s WHERE s.tenant_id = $1 AND s.name = $2;

-- name: delete_subscription
-- Removes a subscription; its deliveries are ended after it. Serves: hf_subscription_delete.
-- takes: one (tenant int, name text)
-- gives: (id uuid, run uuid)
DELETE FROM holdfast.subscription s WHERE s.tenant_id = $1 AND s.name = $2 RETURNING s.id, s.run_id;

-- name: list_outbox
-- A page of events, newest first. Ends with the one with which they hold more than `bytes`; total is what they hold
-- so far. Served by outbox_place. Serves: hf_outbox_list.
-- takes: one (tenant int, before bigint, most int, type text, type_end text, run uuid, bytes bigint)
-- gives: (id uuid, position bigint, run uuid, type text, payload text, created_at bigint, published_at bigint,
--   pending int, attempts int, last_error text, own int, total bigint)
SELECT * FROM (
    SELECT o.id, o.position, o.run_id, o.type, o.payload, o.created_at, o.published_at, coalesce(d.pending, 0)::int,
           coalesce(d.attempts, 0)::int, d.last_error,
           s.own, sum(s.own) OVER (ORDER BY o.position DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.outbox o
      LEFT JOIN LATERAL (
        SELECT count(*) AS pending, max(x.attempts) AS attempts, max(x.last_error) AS last_error
          FROM holdfast.delivery x WHERE x.outbox_id = o.id) d ON true
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(o.payload), 0) AS own) s
     WHERE o.tenant_id = $1 AND ($2::bigint IS NULL OR o.position < $2)
       AND ($4::text IS NULL OR (o.type COLLATE "C" >= $4 AND o.type COLLATE "C" <= $5)) AND ($6::uuid IS NULL OR o.run_id = $6)
     ORDER BY o.position DESC LIMIT $3) p
 WHERE p.total - p.own <= $7 ORDER BY p.position DESC;

-- name: list_undelivered
-- The same, of those that are not published. Ends with the one with which they hold more than `bytes`; total is what
-- they hold so far. Served by outbox_waiting. Serves: hf_outbox_list.
-- takes: one (tenant int, before bigint, most int, type text, type_end text, run uuid, bytes bigint)
-- gives: (id uuid, position bigint, run uuid, type text, payload text, created_at bigint, published_at bigint,
--   pending int, attempts int, last_error text, own int, total bigint)
SELECT * FROM (
    SELECT o.id, o.position, o.run_id, o.type, o.payload, o.created_at, o.published_at, coalesce(d.pending, 0)::int,
           coalesce(d.attempts, 0)::int, d.last_error,
           s.own, sum(s.own) OVER (ORDER BY o.position DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.outbox o
      LEFT JOIN LATERAL (
        SELECT count(*) AS pending, max(x.attempts) AS attempts, max(x.last_error) AS last_error
          FROM holdfast.delivery x WHERE x.outbox_id = o.id) d ON true
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(o.payload), 0) AS own) s
     WHERE o.tenant_id = $1 AND ($2::bigint IS NULL OR o.position < $2) AND o.published_at IS NULL
       AND ($4::text IS NULL OR (o.type COLLATE "C" >= $4 AND o.type COLLATE "C" <= $5)) AND ($6::uuid IS NULL OR o.run_id = $6)
     ORDER BY o.position DESC LIMIT $3) p
 WHERE p.total - p.own <= $7 ORDER BY p.position DESC;

-- name: count_undelivered
-- How many events are not published (counted to 100000), and since when the oldest waits. Served by outbox_waiting.
-- Serves: hf_outbox_lag_get.
-- takes: one (tenant int)
-- gives: (undelivered bigint, oldest_at bigint)
SELECT count(*), min(p.created_at)
  FROM (SELECT o.created_at FROM holdfast.outbox o WHERE o.tenant_id = $1 AND o.published_at IS NULL
         ORDER BY o.position LIMIT 100000) p;

-- name: expire_outbox
-- Removes some events that were published before a time. Served by outbox_published. Serves: retention.
-- takes: one (tenant int, before bigint, most int)
-- gives: (id uuid)
DELETE FROM holdfast.outbox o
 WHERE o.ctid = ANY (ARRAY(SELECT x.ctid FROM holdfast.outbox x
                           WHERE x.tenant_id = $1 AND x.published_at < $2 AND x.published_at IS NOT NULL
                           ORDER BY x.published_at LIMIT $3 FOR UPDATE SKIP LOCKED))
RETURNING o.id;
