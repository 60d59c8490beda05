-- piece: run_filter
-- Which runs `r`, of workflow `w` and lane `l`, a filter takes. Its parameters are the first 18 of what includes it; 1 to 3
-- are the tenant, the cursor and how many. The engine's own are left out unless a workflow, a parent or a prefix of theirs
-- is named.
AND (?4 = 0 OR (1 << r.status) & ?4 <> 0)
AND (?5 IS NULL OR w.name = ?5) AND (?6 IS NULL OR (w.name >= ?6 AND w.name < ?7))
AND (?5 IS NOT NULL OR substr(?6, 1, 9) = 'holdfast.' OR ?13 IS NOT NULL
     OR w.name < 'holdfast.' OR w.name >= 'holdfast/')
AND (?8 IS NULL OR r.key = ?8) AND (?9 IS NULL OR r.subject = ?9)
AND (?10 IS NULL OR r.reference = ?10)
AND (?11 IS NULL OR EXISTS (SELECT 1 FROM run_tag g
                             WHERE g.tenant_id = ?1 AND g.tag = ?11 AND g.run_id = r.id))
AND (?12 IS NULL OR r.current_step = ?12) AND (?13 IS NULL OR r.parent = ?13)
AND (?14 IS NULL OR r.created_at >= ?14) AND (?15 IS NULL OR r.created_at < ?15)
AND (NOT ?16 OR (r.status <= 3 AND (r.timeout_at <= holdfast_now()
                                    OR (r.status IN (0, 2) AND r.run_at <= holdfast_now()))))
AND (r.deleted_at IS NOT NULL) = ?17 AND (?18 IS NULL OR l.flow_key = ?18)

-- piece: workflow_filter
-- Which workflows `w` a filter takes: one, or all that begin so. The engine's own only if they are named.
AND (?4 IS NULL OR w.name = ?4) AND (?5 IS NULL OR (w.name >= ?5 AND w.name < ?6))
AND (?4 IS NOT NULL OR substr(?5, 1, 9) = 'holdfast.' OR w.name < 'holdfast.' OR w.name >= 'holdfast/')

-- name: read_runs
-- Those of the runs named (JSON, newest first) that match, until they are `most` or hold more than `bytes` together;
-- total is what they hold so far. `brief` leaves input, state, result and error out. What was found a moment ago is
-- asked again here, since it may have changed. Served by the primary key. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, statuses int, workflow text, prefix text, prefix_end text, key text,
--   subject text, reference text, tag text, current_step text, parent uuid, created_after bigint, created_before
--   bigint, overdue bool, deleted bool, flow_key text,
--   ids text, bytes bigint, brief bool)
-- gives: (id uuid, tenant text, workflow text, key text, status int, priority int, attempt int, max_attempts int,
--   version bigint, revision bigint, run_at bigint, leased_by text, pause_requested bool, input text, state text,
--   result text, error text, error_code text, last_error text, current_step text, waiting_kind text, waiting_token
--   text, waiting_until bigint, wait_count int, last_worker text, subject text, reference text, tags text, partition
--   text, trace text, actor text, parent uuid, root uuid, timeout_at bigint, created_at bigint, started_at bigint,
--   updated_at bigint, paused_at bigint, finished_at bigint, deleted_at bigint, delete_reason text, flow_key text,
--   debounce_key text, total bigint)
SELECT r.id, t.name, w.name, r.key, r.status, r.priority, r.attempt, coalesce(r.max_attempts, w.max_attempts),
       r.version, r.revision, r.run_at, r.leased_by, r.pause_requested,
       CASE WHEN NOT ?21 THEN r.input END, CASE WHEN NOT ?21 THEN r.state END,
       CASE WHEN NOT ?21 THEN r.result END, CASE WHEN NOT ?21 THEN r.error END,
       r.error_code, r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until,
       r.wait_count, r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent,
       r.root, r.timeout_at, r.created_at, r.started_at, r.updated_at, r.paused_at, r.finished_at, r.deleted_at,
       r.delete_reason, l.flow_key, r.debounce_key, p.total
  FROM (SELECT c.place, c.own, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS total, c.id
          FROM (SELECT r.rowid AS place, r.id, CASE WHEN ?21 THEN 0 ELSE coalesce(length(CAST(r.input AS BLOB)), 0)
                       + coalesce(length(CAST(r.state AS BLOB)), 0) + coalesce(length(CAST(r.result AS BLOB)), 0)
                       + coalesce(length(CAST(r.error AS BLOB)), 0) END AS own
                  FROM json_each(?19) n
                 CROSS JOIN run r ON r.tenant_id = ?1 AND r.id = holdfast_uuid(n.value)
                 CROSS JOIN workflow w ON w.id = r.workflow_id
                 CROSS JOIN lane l ON l.id = r.lane
                 WHERE r.id < ?2
                 -- include: run_filter
                 ORDER BY r.id DESC LIMIT ?3) c) p
 CROSS JOIN run r ON r.rowid = p.place
 CROSS JOIN workflow w ON w.id = r.workflow_id
 CROSS JOIN tenant t ON t.id = r.tenant_id
 CROSS JOIN lane l ON l.id = r.lane
 WHERE p.total - p.own <= ?20
 ORDER BY p.id DESC;

-- name: find_newest
-- The newest runs of a tenant that match, before a cursor and from `low` on; no more than `steps` runs are looked at. Where
-- these hold fewer than `most`, the last one that was looked at follows: there it goes on. Served by the primary key, read
-- backwards. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, statuses int, workflow text, prefix text, prefix_end text, key text,
--   subject text, reference text, tag text, current_step text, parent uuid, created_after bigint, created_before
--   bigint, overdue bool, deleted bool, flow_key text,
--   steps int, low uuid)
-- gives: (id uuid, matches bool)
SELECT f.id, f.matches
  FROM (SELECT r.id, true AS matches
          FROM (SELECT x.rowid AS place, x.id FROM run x
                 WHERE x.tenant_id = ?1 AND x.id < ?2 AND x.id >= ?20 ORDER BY x.id DESC LIMIT coalesce(?19, -1)) n
         CROSS JOIN run r ON r.rowid = n.place
         CROSS JOIN workflow w ON w.id = r.workflow_id
         CROSS JOIN lane l ON l.id = r.lane
         WHERE true
           -- include: run_filter
         LIMIT ?3) f
UNION ALL
SELECT g.id, g.matches
  FROM (SELECT x.id, false AS matches FROM run x
         WHERE ?19 IS NOT NULL AND x.tenant_id = ?1 AND x.id < ?2 AND x.id >= ?20
         ORDER BY x.id DESC LIMIT 1 OFFSET coalesce(?19, 1) - 1) g
 LIMIT ?3;

-- name: find_by_subject
-- Runs with a subject, deleted or not, before a cursor. Served by run_subject. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, subject text)
-- gives: (id uuid)
SELECT r.id FROM run r INDEXED BY run_subject
 WHERE r.tenant_id = ?1 AND r.subject = ?4 AND r.subject IS NOT NULL AND r.id < ?2
 ORDER BY r.id DESC LIMIT ?3;

-- name: find_by_reference
-- Runs with a reference, deleted or not, before a cursor. Served by run_reference. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, reference text)
-- gives: (id uuid)
SELECT r.id FROM run r INDEXED BY run_reference
 WHERE r.tenant_id = ?1 AND r.reference = ?4 AND r.reference IS NOT NULL AND r.id < ?2
 ORDER BY r.id DESC LIMIT ?3;

-- name: find_by_tag
-- Runs with a tag, deleted or not, before a cursor. Served by the primary key of run_tag. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, tag text)
-- gives: (id uuid)
SELECT g.run_id FROM run_tag g
 WHERE g.tenant_id = ?1 AND g.tag = ?4 AND g.run_id < ?2
 ORDER BY g.run_id DESC LIMIT ?3;

-- name: find_by_key
-- Runs with a key that are not deleted, before a cursor: at most one of each workflow. Served by run_key. Serves: list,
-- bulk operations.
-- takes: one (tenant int, before uuid, most int, key text)
-- gives: (id uuid)
SELECT r.id
  FROM workflow w
 CROSS JOIN run r INDEXED BY run_key ON r.workflow_id = w.id AND r.key = ?4 AND r.key IS NOT NULL AND r.deleted_at IS NULL
 WHERE w.tenant_id = ?1 AND r.id < ?2
 ORDER BY r.id DESC LIMIT ?3;

-- name: find_children
-- The children of a run, deleted or not, before a cursor. Served by run_parent. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, parent uuid)
-- gives: (id uuid)
SELECT r.id FROM run r INDEXED BY run_parent
 WHERE r.tenant_id = ?1 AND r.parent = ?4 AND r.parent IS NOT NULL AND r.id < ?2
 ORDER BY r.id DESC LIMIT ?3;

-- name: find_by_flow_key
-- Runs with a flow key, deleted or not, before a cursor: the newest of its lane in each workflow. Lanes of flow keys that
-- are older than their odd numbers have no index. Served by lane_key and run_flow_id. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, flow_key text)
-- gives: (id uuid)
SELECT n.id
  FROM (SELECT r.id
          FROM workflow w
         CROSS JOIN lane l INDEXED BY lane_key ON l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?4
         CROSS JOIN run r INDEXED BY run_flow_id ON r.lane = l.id AND r.lane & 1 = 1 AND r.id < ?2
                AND r.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_flow_id
                                       WHERE x.lane = l.id AND x.lane & 1 = 1 AND x.id < ?2
                                       ORDER BY x.id DESC LIMIT 1 OFFSET ?3 - 1), x'')
         WHERE w.tenant_id = ?1
        UNION ALL
        SELECT r.id
          FROM workflow w
         CROSS JOIN lane l INDEXED BY lane_key ON l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?4 AND l.id & 1 = 0
         CROSS JOIN run r ON r.tenant_id = w.tenant_id AND r.id < ?2 AND r.lane = l.id
         WHERE w.tenant_id = ?1) n
 ORDER BY n.id DESC LIMIT ?3;

-- name: find_by_step
-- Runs whose last step has a name, before a cursor: those that nobody holds, and of those that are held, of which there are
-- few, all. Served by run_step and run_state. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, current_step text)
-- gives: (id uuid)
SELECT n.id
  FROM (SELECT f.id
          FROM (SELECT r.id FROM run r INDEXED BY run_step
                 WHERE r.tenant_id = ?1 AND r.current_step = ?4 AND r.current_step IS NOT NULL AND r.status <> 1
                   AND r.id < ?2
                 ORDER BY r.id DESC LIMIT ?3) f
        UNION ALL
        SELECT r.id
          FROM workflow w
         CROSS JOIN run r INDEXED BY run_state ON r.workflow_id = w.id AND r.status = 1 AND r.status + 0 >= 1
                AND r.deleted_at IS NULL AND r.current_step = ?4 AND r.id < ?2
         WHERE w.tenant_id = ?1) n
 ORDER BY n.id DESC LIMIT ?3;

-- name: find_odd
-- Runs of a tenant, deleted or not, between two ids and made in a span of time, whose ids tell another time than the one at
-- which they were made. Served by run_odd_id, which is empty where clocks are right. Serves: list, bulk operations by time.
-- takes: one (tenant int, before uuid, most int, low uuid, created_after bigint, created_before bigint)
-- gives: (id uuid)
SELECT r.id FROM run r INDEXED BY run_odd_id
 WHERE r.tenant_id = ?1 AND r.id < ?2 AND r.id >= ?4
   AND r.in_time IS NULL
   AND hex(r.id) NOT BETWEEN printf('%012X', r.created_at / 1000 - 1000)
                         AND printf('%012X', r.created_at / 1000 + 101)
   AND (?5 IS NULL OR r.created_at >= ?5) AND (?6 IS NULL OR r.created_at < ?6)
 ORDER BY r.id DESC LIMIT ?3;

-- name: find_deleted
-- Deleted runs, before a cursor: the newest of each workflow, of which there are few. Served by run_deleted_id. Serves: list,
-- bulk operations.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text)
-- gives: (id uuid)
SELECT r.id
  FROM workflow w
 CROSS JOIN run r INDEXED BY run_deleted_id ON r.workflow_id = w.id AND coalesce(r.deleted_at, 0) > 0
        AND r.id < ?2
        AND r.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_deleted_id
                               WHERE x.workflow_id = w.id AND coalesce(x.deleted_at, 0) > 0
                                 AND x.id < ?2
                               ORDER BY x.id DESC LIMIT 1 OFFSET ?3 - 1), x'')
 WHERE w.tenant_id = ?1
   -- include: workflow_filter
 ORDER BY r.id DESC LIMIT ?3;

-- piece: queued
-- The newest of what is pending without a delay, which no index has in the order of ids: such runs are due when they were
-- made, so run_claim has them by the time that their ids tell, but for 0.1 s ahead or 1 s behind. Of the lanes and
-- priorities whose newest entries are newest, 64 or a thirty-second of `reach`, `reach` entries are looked at. Those of flow
-- keys, and those whose ids tell another time, have an index. All that is pending from the id `edge` on is found; empty: all.
WITH RECURSIVE head (lane, priority) AS (
    SELECT l.id, 2147483648
      FROM workflow w CROSS JOIN lane l INDEXED BY lane_even ON l.workflow_id = w.id AND l.id & 1 = 0
     WHERE w.tenant_id = ?1 AND ?7 > 0
       -- include: workflow_filter
    -- include: lower_priorities
), newest AS MATERIALIZED (
    SELECT h.*
      FROM (SELECT h.lane, h.priority,
                   (SELECT x.run_at FROM run x INDEXED BY run_claim
                     WHERE x.lane = h.lane AND x.priority = h.priority AND x.run_at < ?7
                       AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
                     ORDER BY x.run_at DESC LIMIT 1) AS run_at
              FROM head h WHERE h.priority IS NOT NULL LIMIT -1) h
     WHERE h.run_at IS NOT NULL
     ORDER BY h.run_at DESC LIMIT max(64, ?8 / 32) + 1
), cut AS MATERIALIZED (
    SELECT max(c.run_at) AS run_at
      FROM (SELECT (SELECT x.run_at FROM run x INDEXED BY run_claim
                     WHERE x.lane = n.lane AND x.priority = n.priority AND x.run_at < ?7
                       AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
                     ORDER BY x.run_at DESC LIMIT 1 OFFSET ?8 / (SELECT count(*) FROM newest)) AS run_at
              FROM newest n
            UNION ALL
            SELECT * FROM (SELECT n.run_at FROM newest n LIMIT 1 OFFSET max(64, ?8 / 32))) c
), bound AS MATERIALIZED (
    SELECT c.run_at,
           CASE WHEN c.run_at IS NULL THEN x''
                ELSE holdfast_uuid(printf('%08x-%04x-0000-0000-000000000000', c.run_at / 1000 + 101 >> 16,
                                          c.run_at / 1000 + 101 & 65535)) END AS edge
      FROM cut c
), queued AS (
    SELECT x.id
      FROM bound b CROSS JOIN newest n
     CROSS JOIN run x INDEXED BY run_claim ON x.lane = n.lane AND x.priority = n.priority
            AND x.run_at > coalesce(b.run_at, -1) AND x.run_at < ?7
            AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
            AND x.status = 0 AND x.run_at = x.created_at AND x.id < ?2
    UNION
    SELECT x.id
      FROM workflow w
     CROSS JOIN run x INDEXED BY run_keyed ON x.workflow_id = w.id AND x.status = 0 AND x.deleted_at IS NULL
            AND x.run_at = x.created_at AND x.id < ?2
            -- include: is_keyed
            AND x.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_keyed
                                   WHERE x.workflow_id = w.id AND x.status = 0 AND x.deleted_at IS NULL
                                     AND x.run_at = x.created_at AND x.id < ?2
                                     -- include: is_keyed
                                   ORDER BY x.id DESC LIMIT 1 OFFSET ?3 - 1), x'')
     WHERE w.tenant_id = ?1 AND ?7 > 0
       -- include: workflow_filter
)

-- piece: is_keyed
-- Whether run `x` has a flow key, or an id that tells another time than the one at which it was made.
AND (x.lane & 1 = 1 OR x.in_time IS NULL AND hex(x.id) NOT BETWEEN printf('%012X', x.created_at / 1000 - 1000)
                                                              AND printf('%012X', x.created_at / 1000 + 101))

-- name: find_by_state
-- Runs in some statuses (bits) that are not deleted, before a cursor: the newest of each workflow and status, of which
-- there are few, and of what is pending without a delay what `queued` tells, down to an id that follows: there it goes on.
-- `run_before` is a time before which all runs before the cursor were made, unless their ids are wrong; 0: none that are
-- pending. Served by run_state, run_claim and run_keyed. Serves: list, bulk operations, where find_newest did not
-- find enough.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text, run_before bigint,
--   reach int, statuses int)
-- gives: (id uuid, matches bool)
-- include: queued
SELECT f.id, f.matches
  FROM (SELECT n.id, true AS matches
          FROM (SELECT r.id
                  FROM workflow w
                 CROSS JOIN json_each('[0,1,2,3,4,5,6]') s
                 CROSS JOIN run r INDEXED BY run_state ON r.workflow_id = w.id AND r.status = s.value
                        AND r.deleted_at IS NULL AND (r.status + 0 >= 1 OR r.run_at <> r.created_at) AND r.id < ?2
                        AND r.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_state
                                               WHERE x.workflow_id = w.id AND x.status = s.value AND x.deleted_at IS NULL
                                                 AND (x.status + 0 >= 1 OR x.run_at <> x.created_at) AND x.id < ?2
                                               ORDER BY x.id DESC LIMIT 1 OFFSET ?3 - 1), x'')
                 WHERE w.tenant_id = ?1 AND (1 << s.value) & ?9 <> 0
                   -- include: workflow_filter
                UNION
                SELECT q.id FROM queued q) n
         WHERE n.id >= (SELECT b.edge FROM bound b)
         ORDER BY n.id DESC LIMIT ?3) f
UNION ALL
SELECT b.edge, false FROM bound b WHERE length(b.edge) = 16
 LIMIT ?3;

-- name: find_overdue
-- Runs that are due but not begun, or past their deadline, before a cursor: what was delayed or waits and is due, what is
-- held past its deadline, and of what is pending without a delay what `queued` tells, down to an id that follows: there it
-- goes on. A deadline of what is not held is a time at which it is due. `run_before` as in find_by_state. Where more than
-- `reach` were delayed or wait, nothing is told. Served by run_timed, run_state, run_claim and run_keyed. Serves:
-- list, bulk operations, where find_newest did not find enough.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text, run_before bigint,
--   reach int)
-- gives: (id uuid, matches bool)
-- include: queued
, timed AS MATERIALIZED (
    SELECT r.id
      FROM workflow w
     CROSS JOIN run r INDEXED BY run_timed ON r.workflow_id = w.id AND r.run_at <= holdfast_now()
            AND r.run_at IS NOT NULL AND r.status <> 1 AND r.status <= 3 AND r.deleted_at IS NULL
            AND (r.status + 0 >= 1 OR r.run_at <> r.created_at)
     WHERE w.tenant_id = ?1
       -- include: workflow_filter
     LIMIT ?8 + 1
), reached AS MATERIALIZED (
    SELECT CASE WHEN (SELECT count(*) FROM timed) > ?8 THEN ?2 ELSE b.edge END AS edge FROM bound b
)
SELECT f.id, f.matches
  FROM (SELECT n.id, true AS matches
          FROM (SELECT t.id FROM timed t WHERE t.id < ?2
                UNION
                SELECT r.id
                  FROM workflow w
                 CROSS JOIN run r INDEXED BY run_state ON r.workflow_id = w.id AND r.status = 1 AND r.status + 0 >= 1
                        AND r.deleted_at IS NULL AND r.timeout_at <= holdfast_now() AND r.id < ?2
                 WHERE w.tenant_id = ?1
                   -- include: workflow_filter
                UNION
                SELECT q.id FROM queued q) n
         WHERE n.id >= (SELECT e.edge FROM reached e)
         ORDER BY n.id DESC LIMIT ?3) f
UNION ALL
SELECT e.edge, false FROM reached e WHERE length(e.edge) = 16
 LIMIT ?3;
