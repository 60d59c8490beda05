-- name: insert_outbox
-- Events that leave the system, in the order of the run's journal, with a delivery for each subscription that wants them;
-- the runs that deliver are made due and their lanes given back. What nobody wants counts as published. The engine's own
-- events are written only if they are wanted, and if what they tell of was written by this flush: that the run failed, or was
-- cancelled, with this version, that there is this dead letter. What tells of an end tells, within room bytes, what the run was
-- and did. seq null: the run's last. Serves: commit, trigger with an initial transition, cancel.
-- takes: rows (id uuid, tenant int, run uuid, seq bigint, type text, payload text, ended_version bigint, letter uuid,
--   room bigint)
-- gives: (lane int, run_at bigint)
INSERT INTO outbox (id, tenant_id, run_id, seq, type, payload, created_at, published_at)
SELECT ?1, ?2, ?3, coalesce(?4, r.event_seq), ?5,
       CASE WHEN ?7 IS NULL THEN ?6
            ELSE substr(?6, 1, length(?6) - 1) || ',' ||
                 -- include: run_told
                 || '}' END, holdfast_now(), CASE WHEN NOT w.wanted THEN holdfast_now() END
  FROM run r
 CROSS JOIN (SELECT ?2 AS tenant, ?3 AS run, ?9 AS room) x
 CROSS JOIN (SELECT EXISTS (SELECT 1 FROM subscription s WHERE s.tenant_id = ?2 AND
        EXISTS (SELECT 1 FROM json_each(s.filter) p
                WHERE (substr(p.value, 1, 9) = 'holdfast.') = (substr(?5, 1, 9) = 'holdfast.')
                  AND (p.value = ?5 OR (substr(p.value, -1) = '*'
                                        AND substr(?5, 1, length(p.value) - 1) = substr(p.value, 1, length(p.value) - 1))))) AS wanted) w
 WHERE r.tenant_id = ?2 AND r.id = ?3 AND (w.wanted OR substr(?5, 1, 9) <> 'holdfast.')
   AND (?7 IS NULL OR (r.version = ?7 AND r.status = CASE ?5 WHEN 'holdfast.run.cancelled' THEN 6 ELSE 5 END))
   AND (?8 IS NULL OR EXISTS (SELECT 1 FROM dead_letter l WHERE l.tenant_id = ?2 AND l.id = ?8))
ON CONFLICT DO NOTHING;
INSERT INTO delivery (subscription_id, position, outbox_id)
SELECT s.id, o.position, o.id
  FROM outbox o
 CROSS JOIN subscription s
 WHERE changes() = 1 AND o.id = ?1 AND o.published_at IS NULL AND s.tenant_id = ?2 AND
        EXISTS (SELECT 1 FROM json_each(s.filter) p
                WHERE (substr(p.value, 1, 9) = 'holdfast.') = (substr(?5, 1, 9) = 'holdfast.')
                  AND (p.value = ?5 OR (substr(p.value, -1) = '*'
                                        AND substr(?5, 1, length(p.value) - 1) = substr(p.value, 1, length(p.value) - 1))));
UPDATE run SET run_at = holdfast_now()
 WHERE tenant_id = ?2 AND status = 2 AND waiting_kind = 'outbox' AND (run_at IS NULL OR run_at > holdfast_now())
   AND id IN (SELECT s.run_id FROM delivery d CROSS JOIN subscription s ON s.id = d.subscription_id WHERE d.outbox_id = ?1);
SELECT r.lane, r.run_at
  FROM delivery d CROSS JOIN subscription s ON s.id = d.subscription_id CROSS JOIN run r ON r.tenant_id = ?2 AND r.id = s.run_id
 WHERE d.outbox_id = ?1 AND r.status = 2 AND r.run_at IS NOT NULL;

-- name: pending_deliveries
-- Runs that have something to deliver. Served by subscription_run and the primary key of delivery. Serves: commits of runs
-- that deliver, which want to sleep.
-- takes: rows (run uuid)
-- gives: (run uuid)
SELECT ?1 WHERE EXISTS (SELECT 1 FROM subscription s CROSS JOIN delivery d ON d.subscription_id = s.id WHERE s.run_id = ?1);

-- name: load_subscription
-- Where a run of holdfast.dispatch delivers to. Served by subscription_run. Serves: the dispatcher.
-- takes: one (tenant int, run uuid)
-- gives: (id uuid, name text, url text, secret text, mode int, max_failures int)
SELECT id, name, url, secret, mode, max_failures FROM subscription WHERE tenant_id = ?1 AND run_id = ?2;

-- name: load_deliveries
-- The next events to deliver after a position, in order; those of the runs that are named come without what they carry.
-- Their run may be purged by now. `behind`: how many there are up to that position. Served by the primary keys. Serves: the dispatcher, removing a subscription.
-- takes: one (subscription uuid, after bigint, most int, held_1 uuid, held_2 uuid, held_3 uuid)
-- gives: (position bigint, id uuid, run uuid, type text, payload text, created_at bigint, attempts int, workflow text,
--   subject text, key text, trace text, behind bigint)
SELECT d.position, o.id, o.run_id, o.type, CASE WHEN o.run_id IN (?4, ?5, ?6) THEN NULL ELSE o.payload END, o.created_at,
       d.attempts, w.name, r.subject, r.key, r.trace,
       (SELECT count(*) FROM delivery b WHERE b.subscription_id = ?1 AND b.position <= ?2)
  FROM delivery d
 CROSS JOIN outbox o ON o.id = d.outbox_id
  LEFT JOIN run r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
  LEFT JOIN workflow w ON w.id = r.workflow_id
 WHERE d.subscription_id = ?1 AND d.position > ?2
 ORDER BY d.position LIMIT ?3;

-- name: end_deliveries
-- What was delivered, or is not wanted any more. Served by the primary key of delivery. Serves: the dispatcher, removing
-- a subscription.
-- takes: rows (subscription uuid, position bigint)
-- gives: nothing
DELETE FROM delivery WHERE subscription_id = ?1 AND position = ?2;

-- name: publish_outbox
-- Events that have no delivery left are published. After end_deliveries. Serves: the dispatcher, removing a subscription.
-- takes: rows (id uuid)
-- gives: nothing
UPDATE outbox SET published_at = holdfast_now()
 WHERE id = ?1 AND published_at IS NULL AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.outbox_id = ?1);

-- name: blame_delivery
-- Counts a failed attempt. Served by the primary key of delivery. Serves: the dispatcher.
-- takes: one (subscription uuid, position bigint, error text)
-- gives: nothing
UPDATE delivery SET attempts = attempts + 1, last_error = ?3 WHERE subscription_id = ?1 AND position = ?2;

-- name: put_subscription
-- Makes a subscription or changes it; the id given back tells which. Its secret stays unless a new one is given. Serves:
-- hf_subscription_put.
-- takes: one (tenant int, id uuid, name text, url text, filter text, secret text, fresh_secret text, mode int,
--   max_failures int, run uuid)
-- gives: (id uuid)
INSERT INTO subscription (tenant_id, id, name, url, filter, secret, mode, max_failures, run_id, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, coalesce(?6, ?7), ?8, ?9, ?10, holdfast_now(), holdfast_now())
ON CONFLICT (tenant_id, name) DO UPDATE
   SET url = excluded.url, filter = excluded.filter, secret = coalesce(?6, secret), mode = excluded.mode,
       max_failures = excluded.max_failures, run_id = excluded.run_id, updated_at = excluded.updated_at
RETURNING id;

-- name: list_subscriptions
-- Subscriptions by name, or one of them, with their runs, what is still to be delivered (counted to 100000), and what
-- keeps the run from its turns. Serves: lists.
-- takes: one (tenant int, name text)
-- gives: (id uuid, name text, url text, filter text, mode int, max_failures int, run uuid, created_at bigint, updated_at
--   bigint, status int, waiting_kind text, state text, run_at bigint, pause_requested bool, pending bigint,
--   oldest_at bigint, trouble text)
SELECT s.id, s.name, s.url, s.filter, s.mode, s.max_failures, s.run_id, s.created_at, s.updated_at, r.status,
       r.waiting_kind, r.state, r.run_at, r.pause_requested,
       (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.subscription_id = s.id LIMIT 100000)),
       (SELECT o.created_at FROM delivery d CROSS JOIN outbox o ON o.id = d.outbox_id
         WHERE d.subscription_id = s.id ORDER BY d.position LIMIT 1),
       CASE WHEN r.status = 0 THEN r.last_error END
  FROM subscription s
  LEFT JOIN run r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
 WHERE s.tenant_id = ?1 AND (?2 IS NULL OR s.name = ?2)
 ORDER BY s.name;

-- name: get_secret
-- The secret of a subscription. Serves: hf_subscription_test.
-- takes: one (tenant int, name text)
-- gives: (secret text)
SELECT secret FROM subscription WHERE tenant_id = ?1 AND name = ?2;

-- name: delete_subscription
-- Removes a subscription; its deliveries are ended after it. Serves: hf_subscription_delete.
-- takes: one (tenant int, name text)
-- gives: (id uuid, run uuid)
DELETE FROM subscription WHERE tenant_id = ?1 AND name = ?2 RETURNING id, run_id;

-- name: list_outbox
-- A page of events, newest first. Ends with the one with which they hold more than `bytes`; total is what they hold
-- so far. Served by outbox_place. Serves: hf_outbox_list.
-- takes: one (tenant int, before bigint, most int, type text, type_end text, run uuid, bytes bigint)
-- gives: (id uuid, position bigint, run uuid, type text, payload text, created_at bigint, published_at bigint,
--   pending int, attempts int, last_error text, own int, total bigint)
SELECT o.id, o.position, o.run_id, o.type, o.payload, o.created_at, o.published_at,
       (SELECT count(*) FROM delivery x WHERE x.outbox_id = o.id),
       (SELECT coalesce(max(x.attempts), 0) FROM delivery x WHERE x.outbox_id = o.id),
       (SELECT max(x.last_error) FROM delivery x WHERE x.outbox_id = o.id), p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.position DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT o.rowid AS place, o.position AS position,
                   coalesce(length(CAST(o.payload AS BLOB)), 0) AS own
              FROM outbox o INDEXED BY outbox_place
             WHERE o.tenant_id = ?1 AND o.position < coalesce(?2, 9223372036854775807)
               AND (?4 IS NULL OR (o.type >= ?4 AND o.type <= ?5)) AND (?6 IS NULL OR o.run_id = ?6)
             ORDER BY o.position DESC LIMIT ?3) c) p
 CROSS JOIN outbox o ON o.rowid = p.place
 WHERE p.total - p.own <= ?7 ORDER BY p.position DESC;

-- name: list_undelivered
-- The same, of those that are not published. Ends with the one with which they hold more than `bytes`; total is what
-- they hold so far. Served by outbox_waiting. Serves: hf_outbox_list.
-- takes: one (tenant int, before bigint, most int, type text, type_end text, run uuid, bytes bigint)
-- gives: (id uuid, position bigint, run uuid, type text, payload text, created_at bigint, published_at bigint,
--   pending int, attempts int, last_error text, own int, total bigint)
SELECT o.id, o.position, o.run_id, o.type, o.payload, o.created_at, o.published_at,
       (SELECT count(*) FROM delivery x WHERE x.outbox_id = o.id),
       (SELECT coalesce(max(x.attempts), 0) FROM delivery x WHERE x.outbox_id = o.id),
       (SELECT max(x.last_error) FROM delivery x WHERE x.outbox_id = o.id), p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.position DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT o.rowid AS place, o.position AS position,
                   coalesce(length(CAST(o.payload AS BLOB)), 0) AS own
              FROM outbox o INDEXED BY outbox_waiting
             WHERE o.tenant_id = ?1 AND o.position < coalesce(?2, 9223372036854775807) AND o.published_at IS NULL
               AND (?4 IS NULL OR (o.type >= ?4 AND o.type <= ?5)) AND (?6 IS NULL OR o.run_id = ?6)
             ORDER BY o.position DESC LIMIT ?3) c) p
 CROSS JOIN outbox o ON o.rowid = p.place
 WHERE p.total - p.own <= ?7 ORDER BY p.position DESC;

-- name: count_undelivered
-- How many events are not published (counted to 100000), and since when the oldest waits. Served by outbox_waiting.
-- Serves: hf_outbox_lag_get.
-- takes: one (tenant int)
-- gives: (undelivered bigint, oldest_at bigint)
SELECT count(*), min(created_at)
  FROM (SELECT o.created_at FROM outbox o INDEXED BY outbox_waiting WHERE o.tenant_id = ?1 AND o.published_at IS NULL
         ORDER BY o.position LIMIT 100000);

-- name: expire_outbox
-- Removes some events that were published before a time. Served by outbox_published. Serves: retention.
-- takes: one (tenant int, before bigint, most int)
-- gives: (id uuid)
DELETE FROM outbox
 WHERE position IN (SELECT o.position FROM outbox o INDEXED BY outbox_published
                     WHERE o.tenant_id = ?1 AND o.published_at < ?2 AND o.published_at IS NOT NULL
                     ORDER BY o.published_at LIMIT ?3)
RETURNING id;
