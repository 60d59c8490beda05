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

-- piece: heads_of_filter
-- As heads, of the workflows that a filter takes.
WITH RECURSIVE head (lane, priority) AS (
    SELECT l.id, 2147483648
      FROM workflow w CROSS JOIN lane l ON l.workflow_id = w.id
     WHERE w.tenant_id = ?1
       -- include: workflow_filter
    -- include: lower_priorities
)

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
-- are older than their odd numbers have no index. Served by lane_key and run_flow. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, flow_key text)
-- gives: (id uuid)
SELECT n.id
  FROM (SELECT r.id
          FROM workflow w
         CROSS JOIN lane l INDEXED BY lane_key ON l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?4
         CROSS JOIN run r INDEXED BY run_flow ON r.lane = l.id AND r.lane & 1 = 1 AND r.id < ?2
                AND r.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_flow
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

-- name: find_odd
-- Runs of a tenant, deleted or not, between two ids and made in a span of time, whose ids tell another time than the one at
-- which they were made. Served by run_odd, which is empty where clocks are right. Serves: list, bulk operations by time.
-- takes: one (tenant int, before uuid, most int, low uuid, created_after bigint, created_before bigint)
-- gives: (id uuid)
SELECT r.id FROM run r INDEXED BY run_odd
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

-- name: find_by_state
-- Runs in some statuses (bits) that are not deleted, before a cursor: the newest of each workflow and status, of which
-- there are few, and of what is pending all. Served by run_state and run_claim. Serves: list, bulk operations, where
-- find_newest did not find enough.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text, statuses int)
-- gives: (id uuid)
SELECT n.id
  FROM (SELECT r.id
          FROM workflow w
         CROSS JOIN json_each('[1,2,3,4,5,6]') s
         CROSS JOIN run r INDEXED BY run_state ON r.workflow_id = w.id AND r.status = s.value AND r.status + 0 >= 1
                AND r.deleted_at IS NULL AND r.id < ?2
                AND r.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_state
                                       WHERE x.workflow_id = w.id AND x.status = s.value AND x.status + 0 >= 1
                                         AND x.deleted_at IS NULL AND x.id < ?2
                                       ORDER BY x.id DESC LIMIT 1 OFFSET ?3 - 1), x'')
         WHERE w.tenant_id = ?1 AND (1 << s.value) & ?7 <> 0
           -- include: workflow_filter
        UNION ALL
        SELECT r.id
          FROM workflow w
         CROSS JOIN lane l ON l.workflow_id = w.id
         CROSS JOIN run r INDEXED BY run_claim ON r.lane = l.id AND r.status <= 3 AND r.deleted_at IS NULL
                AND r.run_at IS NOT NULL AND r.status = 0 AND r.id < ?2
         WHERE w.tenant_id = ?1 AND ?7 & 1 <> 0
           -- include: workflow_filter
           ) n
 ORDER BY n.id DESC LIMIT ?3;

-- name: find_overdue
-- Runs that are due but not begun, or past their deadline, before a cursor: what lies in the past of run_claim, and what is
-- held. A deadline of what is not held is in run_claim as well.
-- Served by run_claim and run_state. Serves: list, bulk operations, where find_newest did not find enough.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text)
-- gives: (id uuid)
-- include: heads_of_filter
SELECT n.id
  FROM (SELECT r.id
          FROM head h
         CROSS JOIN run r INDEXED BY run_claim ON r.lane = h.lane AND r.priority = h.priority
                AND r.run_at <= holdfast_now() AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
                AND (r.status IN (0, 2) OR r.timeout_at <= holdfast_now())
                AND r.id < ?2
         WHERE h.priority IS NOT NULL
        UNION
        SELECT r.id
          FROM workflow w
         CROSS JOIN run r INDEXED BY run_state ON r.workflow_id = w.id AND r.status = 1 AND r.status + 0 >= 1
                AND r.deleted_at IS NULL AND r.timeout_at <= holdfast_now() AND r.id < ?2
         WHERE w.tenant_id = ?1
           -- include: workflow_filter
           ) n
 ORDER BY n.id DESC LIMIT ?3;

-- name: count_queued
-- How many runs some workflows have in run_claim, or how many of them are due there, to a limit: what find_by_state and
-- find_overdue would have to collect. The cursor is ignored. Served by run_claim. Serves: list, bulk operations, before they
-- collect.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text, overdue bool)
-- gives: (count bigint)
-- include: heads_of_filter
SELECT count(*)
  FROM (SELECT 1
          FROM head h
         CROSS JOIN run r INDEXED BY run_claim ON r.lane = h.lane AND r.priority = h.priority
                AND r.run_at <= CASE WHEN ?7 THEN holdfast_now() ELSE 9223372036854775807 END
                AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         WHERE h.priority IS NOT NULL
         LIMIT ?3) c;
