-- piece: run_filter
-- Which runs `r`, of workflow `w` and lane `l`, a filter takes. Its parameters are the first 18 of what includes it; 1 to 3
-- are the tenant, the cursor and how many. The engine's own are left out unless a workflow, a parent or a prefix of theirs
-- is named.
AND ($4 = 0 OR (1 << r.status) & $4 <> 0)
AND ($5::text IS NULL OR w.name = $5) AND ($6::text IS NULL OR (w.name >= $6 AND w.name < $7))
AND ($5::text IS NOT NULL OR starts_with($6::text, 'holdfast.') OR $13::uuid IS NOT NULL
     OR w.name < 'holdfast.' OR w.name >= 'holdfast/')
AND ($8::text IS NULL OR r.key = $8) AND ($9::text IS NULL OR r.subject = $9)
AND ($10::text IS NULL OR r.reference = $10)
AND ($11::text IS NULL OR EXISTS (SELECT 1 FROM holdfast.run_tag g
                                   WHERE g.tenant_id = $1 AND g.tag = $11 AND g.run_id = r.id))
AND ($12::text IS NULL OR r.current_step = $12) AND ($13::uuid IS NULL OR r.parent = $13)
AND ($14::bigint IS NULL OR r.created_at >= $14) AND ($15::bigint IS NULL OR r.created_at < $15)
AND (NOT $16 OR (r.status <= 3 AND (r.timeout_at <= holdfast.now()
                                    OR (r.status IN (0, 2) AND r.run_at <= holdfast.now()))))
AND (r.deleted_at IS NOT NULL) = $17 AND ($18::text IS NULL OR l.flow_key = $18)

-- piece: workflow_filter
-- Which workflows `w` a filter takes: one, or all that begin so. The engine's own only if they are named.
AND ($4::text IS NULL OR w.name = $4) AND ($5::text IS NULL OR (w.name >= $5 AND w.name < $6))
AND ($4::text IS NOT NULL OR starts_with($5::text, 'holdfast.') OR w.name < 'holdfast.' OR w.name >= 'holdfast/')

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
       CASE WHEN NOT $21 THEN r.input END, CASE WHEN NOT $21 THEN r.state END,
       CASE WHEN NOT $21 THEN r.result END, CASE WHEN NOT $21 THEN r.error END,
       r.error_code, r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until,
       r.wait_count, r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent,
       r.root, r.timeout_at, r.created_at, r.started_at, r.updated_at, r.paused_at, r.finished_at, r.deleted_at,
       r.delete_reason, l.flow_key, r.debounce_key, r.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
          FROM (SELECT r.*, CASE WHEN $21 THEN 0 ELSE coalesce(octet_length(r.input), 0)
                       + coalesce(octet_length(r.state), 0) + coalesce(octet_length(r.result), 0)
                       + coalesce(octet_length(r.error), 0) END AS own
                  FROM (SELECT x.value::uuid AS id FROM json_array_elements_text($19::json) x(value) OFFSET 0) n
                 CROSS JOIN LATERAL (SELECT x.* FROM holdfast.run x WHERE x.tenant_id = $1 AND x.id = n.id OFFSET 0) r
                  JOIN holdfast.workflow w ON w.id = r.workflow_id
                  JOIN holdfast.lane l ON l.id = r.lane
                 WHERE r.id < $2
                 -- include: run_filter
                 ORDER BY r.id DESC LIMIT $3) c) r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
  JOIN holdfast.tenant t ON t.id = r.tenant_id
  JOIN holdfast.lane l ON l.id = r.lane
 WHERE r.total - r.own <= $20
 ORDER BY r.id DESC;

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
  FROM ((SELECT r.id, true AS matches
          FROM (SELECT x.* FROM holdfast.run x
                 WHERE x.tenant_id = $1 AND x.id < $2 AND x.id >= $20 ORDER BY x.id DESC LIMIT $19) r
          JOIN holdfast.workflow w ON w.id = r.workflow_id
          JOIN holdfast.lane l ON l.id = r.lane
         WHERE true
           -- include: run_filter
         ORDER BY r.id DESC LIMIT $3)
        UNION ALL
        (SELECT x.id, false FROM holdfast.run x
          WHERE $19::int IS NOT NULL AND x.tenant_id = $1 AND x.id < $2 AND x.id >= $20
          ORDER BY x.id DESC LIMIT 1 OFFSET $19 - 1)) f
 LIMIT $3;

-- name: find_by_subject
-- Runs with a subject, deleted or not, before a cursor. Served by run_subject. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, subject text)
-- gives: (id uuid)
SELECT r.id FROM holdfast.run r
 WHERE r.tenant_id = $1 AND r.subject IS NOT NULL AND r.subject >= $4
   AND (r.subject, r.id) < ($4, $2)
 ORDER BY r.subject DESC, r.id DESC LIMIT $3;

-- name: find_by_reference
-- Runs with a reference, deleted or not, before a cursor. Served by run_reference. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, reference text)
-- gives: (id uuid)
SELECT r.id FROM holdfast.run r
 WHERE r.tenant_id = $1 AND r.reference IS NOT NULL AND r.reference >= $4
   AND (r.reference, r.id) < ($4, $2)
 ORDER BY r.reference DESC, r.id DESC LIMIT $3;

-- name: find_by_tag
-- Runs with a tag, deleted or not, before a cursor. Served by the primary key of run_tag. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, tag text)
-- gives: (id uuid)
SELECT g.run_id FROM holdfast.run_tag g
 WHERE g.tenant_id = $1 AND g.tag >= $4 AND (g.tag, g.run_id) < ($4, $2)
 ORDER BY g.tag DESC, g.run_id DESC LIMIT $3;

-- name: find_by_key
-- Runs with a key that are not deleted, before a cursor: at most one of each workflow. Served by run_key. Serves: list,
-- bulk operations.
-- takes: one (tenant int, before uuid, most int, key text)
-- gives: (id uuid)
SELECT r.id
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    SELECT x.id FROM holdfast.run x
     WHERE x.workflow_id = w.id AND x.key = $4 AND x.key IS NOT NULL AND x.deleted_at IS NULL OFFSET 0) r
 WHERE w.tenant_id = $1 AND r.id < $2
 ORDER BY r.id DESC LIMIT $3;

-- name: find_children
-- The children of a run, deleted or not, before a cursor. Served by run_parent. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, parent uuid)
-- gives: (id uuid)
SELECT r.id FROM holdfast.run r
 WHERE r.tenant_id = $1 AND r.parent IS NOT NULL AND r.parent >= $4 AND (r.parent, r.id) < ($4, $2)
 ORDER BY r.parent DESC, r.id DESC LIMIT $3;

-- name: find_by_flow_key
-- Runs with a flow key, deleted or not, before a cursor: the newest of its lane in each workflow. Lanes of flow keys that
-- are older than their odd numbers have no index. Served by lane_key and run_flow. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, flow_key text)
-- gives: (id uuid)
SELECT n.id
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    SELECT l.id FROM holdfast.lane l WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = $4 OFFSET 0) l
 CROSS JOIN LATERAL (
    (SELECT x.id FROM holdfast.run x
      WHERE x.lane = l.id AND x.lane & 1 = 1 AND x.id < $2
      ORDER BY x.id DESC LIMIT $3)
    UNION ALL
    (SELECT x.id FROM holdfast.run x
      WHERE l.id & 1 = 0 AND x.tenant_id = $1 AND x.lane = l.id AND x.id < $2
      ORDER BY x.tenant_id DESC, x.id DESC LIMIT $3)) n
 WHERE w.tenant_id = $1
 ORDER BY n.id DESC LIMIT $3;

-- name: find_odd
-- Runs of a tenant, deleted or not, between two ids and made in a span of time, whose ids tell another time than the one at
-- which they were made. Served by run_odd, which is empty where clocks are right. Serves: list, bulk operations by time.
-- takes: one (tenant int, before uuid, most int, low uuid, created_after bigint, created_before bigint)
-- gives: (id uuid)
SELECT r.id FROM holdfast.run r
 WHERE r.tenant_id = $1 AND r.id < $2 AND r.id >= $4
   AND r.in_time IS NULL
   AND uuid_send(r.id) NOT BETWEEN int8send((r.created_at / 1000 - 1000) << 16)
                               AND int8send((r.created_at / 1000 + 101) << 16)
   AND ($5::bigint IS NULL OR r.created_at >= $5) AND ($6::bigint IS NULL OR r.created_at < $6)
 ORDER BY r.id DESC LIMIT $3;

-- name: find_deleted
-- Deleted runs, before a cursor: the newest of each workflow, of which there are few. Served by run_deleted_id. Serves: list,
-- bulk operations.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text)
-- gives: (id uuid)
SELECT r.id
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    SELECT x.id FROM holdfast.run x
     WHERE x.workflow_id = w.id AND coalesce(x.deleted_at, 0) > 0 AND x.id < $2
     ORDER BY x.id DESC LIMIT $3) r
 WHERE w.tenant_id = $1
   -- include: workflow_filter
 ORDER BY r.id DESC LIMIT $3;

-- name: find_by_state
-- Runs in some statuses (bits) that are not deleted, before a cursor: the newest of each workflow and status, of which
-- there are few, and of what is pending all. Served by run_state and run_claim. Serves: list, bulk operations, where
-- find_newest did not find enough.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text, statuses int)
-- gives: (id uuid)
SELECT n.id
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    SELECT r.id
      FROM generate_series(1, 6) s(status)
     CROSS JOIN LATERAL (
        SELECT x.id FROM holdfast.run x
         WHERE x.workflow_id = w.id AND x.status = s.status AND x.status + 0 >= 1 AND x.deleted_at IS NULL
           AND x.id < $2
         ORDER BY x.id DESC LIMIT $3) r
     WHERE (1 << s.status) & $7 <> 0
    UNION ALL
    SELECT r.id
      FROM holdfast.lane l
     CROSS JOIN LATERAL (
        SELECT x.id FROM holdfast.run x
         WHERE x.lane = l.id AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
           AND x.status = 0 AND x.id < $2 OFFSET 0) r
     WHERE l.workflow_id = w.id AND $7 & 1 <> 0) n
 WHERE w.tenant_id = $1
   -- include: workflow_filter
 ORDER BY n.id DESC LIMIT $3;

-- name: find_overdue
-- Runs that are due but not begun, or past their deadline, before a cursor: what lies in the past of run_claim, and what is
-- held. A deadline of what is not held is in run_claim as well.
-- Served by run_claim and run_state. Serves: list, bulk operations, where find_newest did not find enough.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text)
-- gives: (id uuid)
SELECT n.id
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    -- include: heads
    SELECT r.id
      FROM head h
     CROSS JOIN LATERAL (
        SELECT x.id FROM holdfast.run x
         WHERE x.lane = h.lane AND x.priority = h.priority AND x.run_at <= holdfast.now()
           AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
           AND (x.status IN (0, 2) OR x.timeout_at <= holdfast.now()) AND x.id < $2 OFFSET 0) r
    UNION
    SELECT x.id FROM holdfast.run x
     WHERE x.workflow_id = w.id AND x.status = 1 AND x.status + 0 >= 1 AND x.deleted_at IS NULL
       AND x.timeout_at <= holdfast.now()
       AND x.id < $2) n
 WHERE w.tenant_id = $1
   -- include: workflow_filter
 ORDER BY n.id DESC LIMIT $3;

-- name: count_queued
-- How many runs some workflows have in run_claim, or how many of them are due there, to a limit: what find_by_state and
-- find_overdue would have to collect. The cursor is ignored. Served by run_claim. Serves: list, bulk operations, before they
-- collect.
-- takes: one (tenant int, before uuid, most int, workflow text, prefix text, prefix_end text, overdue bool)
-- gives: (count bigint)
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast.workflow w
         CROSS JOIN LATERAL (
            -- include: heads
            SELECT 1
              FROM head h
             CROSS JOIN LATERAL (
                SELECT 1 FROM holdfast.run x
                 WHERE x.lane = h.lane AND x.priority = h.priority
                   AND x.run_at <= CASE WHEN $7 THEN holdfast.now() ELSE 9223372036854775807 END
                   AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL LIMIT $3) r
             LIMIT $3) n
         WHERE w.tenant_id = $1 AND ($2::uuid IS NULL OR true)
           -- include: workflow_filter
         LIMIT $3) c;
