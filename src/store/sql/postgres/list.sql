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

-- name: find_by_step
-- Runs whose last step has a name, before a cursor: those that nobody holds, and of those that are held, of which there are
-- few, all: what rest_step says of these may be old. Served by run_step and run_state. Serves: list, bulk operations.
-- takes: one (tenant int, before uuid, most int, current_step text)
-- gives: (id uuid)
SELECT n.id
  FROM ((SELECT r.id FROM holdfast.run r
          WHERE r.tenant_id = $1 AND r.rest_step IS NOT NULL AND r.rest_step >= $4 AND (r.rest_step, r.id) < ($4, $2)
            AND r.current_step = $4 AND r.status <> 1
          ORDER BY r.rest_step DESC, r.id DESC LIMIT $3)
        UNION ALL
        SELECT h.id
          FROM holdfast.workflow w
         CROSS JOIN LATERAL (
            SELECT x.id FROM holdfast.run x
             WHERE x.workflow_id = w.id AND x.status = 1 AND x.status + 0 >= 1 AND x.deleted_at IS NULL
               AND x.current_step = $4 AND x.id < $2 OFFSET 0) h
         WHERE w.tenant_id = $1) n
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

-- piece: queued
-- The newest of what is pending without a delay, which no index has in the order of ids: such runs are due when they were
-- made, so run_claim has them by the time that their ids tell, but for 0.1 s ahead or 1 s behind. Of the lanes and
-- priorities whose newest entries are newest, 64 or a thirty-second of `reach`, `reach` entries are looked at. Those of flow
-- keys, and those whose ids tell another time, have an index. All that is pending from the id `edge` on is found.
WITH RECURSIVE head AS (
    SELECT l.id AS lane, h.priority, h.run_at
      FROM holdfast.workflow w
     CROSS JOIN LATERAL (
        SELECT k.id FROM holdfast.lane k WHERE k.workflow_id = w.id AND k.id & 1 = 0 OFFSET 0) l
     CROSS JOIN LATERAL (
        SELECT r.priority, r.run_at FROM holdfast.run r
         WHERE r.lane = l.id AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.priority DESC, r.run_at LIMIT 1) h
     WHERE w.tenant_id = $1 AND $7::bigint > 0
       -- include: workflow_filter
    -- include: lower_priorities
), newest AS MATERIALIZED (
    SELECT h.lane, h.priority, n.run_at, row_number() OVER (ORDER BY n.run_at DESC) AS place, count(*) OVER () AS heads
      FROM head h
     CROSS JOIN LATERAL (
        SELECT x.run_at FROM holdfast.run x
         WHERE x.lane = h.lane AND x.priority = h.priority AND x.run_at < $7
           AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
         ORDER BY x.run_at DESC LIMIT 1) n
), entry AS MATERIALIZED (
    SELECT n.lane, n.priority, n.heads, x.id, x.run_at, x.plain
      FROM newest n
     CROSS JOIN LATERAL (
        SELECT x.id, x.run_at, x.status = 0 AND x.run_at = x.created_at AS plain FROM holdfast.run x
         WHERE x.lane = n.lane AND x.priority = n.priority AND x.run_at < $7
           AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL
         ORDER BY x.run_at DESC LIMIT $8 / least(n.heads, greatest(64, $8 / 32)) + 1) x
     WHERE n.place <= greatest(64, $8 / 32)
), cut AS MATERIALIZED (
    SELECT max(c.run_at) AS run_at
      FROM (SELECT min(e.run_at) AS run_at FROM entry e GROUP BY e.lane, e.priority, e.heads
            HAVING count(*) > $8 / least(e.heads, greatest(64, $8 / 32))
            UNION ALL
            SELECT n.run_at FROM newest n WHERE n.place = greatest(64, $8 / 32) + 1) c
), bound AS MATERIALIZED (
    SELECT c.run_at, (lpad(to_hex(c.run_at / 1000 + 101), 12, '0') || repeat('0', 20))::uuid AS edge FROM cut c
), queued AS (
    SELECT e.id FROM entry e CROSS JOIN bound b
     WHERE e.plain AND e.run_at > coalesce(b.run_at, -1) AND e.id < $2
    UNION ALL
    SELECT n.id
      FROM holdfast.workflow w
     CROSS JOIN LATERAL (
        SELECT x.id FROM holdfast.run x
         WHERE x.workflow_id = w.id AND x.status = 0 AND x.deleted_at IS NULL AND x.run_at = x.created_at AND x.id < $2
           -- include: is_keyed
         ORDER BY x.id DESC LIMIT $3) n
     WHERE w.tenant_id = $1 AND $7 > 0
       -- include: workflow_filter
)

-- piece: is_keyed
-- Whether run `x` has a flow key, or an id that tells another time than the one at which it was made.
AND (x.lane & 1 = 1 OR x.in_time IS NULL AND uuid_send(x.id) NOT BETWEEN int8send((x.created_at / 1000 - 1000) << 16)
                                                                    AND int8send((x.created_at / 1000 + 101) << 16))

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
  FROM ((SELECT DISTINCT n.id, true AS matches
           FROM (SELECT r.id
                   FROM holdfast.workflow w
                  CROSS JOIN generate_series(0, 6) s(status)
                  CROSS JOIN LATERAL (
                     SELECT x.id FROM holdfast.run x
                      WHERE x.workflow_id = w.id AND x.status = s.status AND x.deleted_at IS NULL
                        AND (x.status + 0 >= 1 OR x.run_at <> x.created_at) AND x.id < $2
                      ORDER BY x.id DESC LIMIT $3) r
                  WHERE w.tenant_id = $1 AND (1 << s.status) & $9 <> 0
                    -- include: workflow_filter
                 UNION ALL
                 SELECT q.id FROM queued q) n
          WHERE n.id >= coalesce((SELECT b.edge FROM bound b), n.id)
          ORDER BY n.id DESC LIMIT $3)
        UNION ALL
        SELECT b.edge, false FROM bound b WHERE b.edge IS NOT NULL) f
 LIMIT $3;

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
      FROM holdfast.workflow w
     CROSS JOIN LATERAL (
        SELECT x.id FROM holdfast.run x
         WHERE x.workflow_id = w.id AND x.run_at <= holdfast.now() AND x.run_at IS NOT NULL AND x.status <> 1
           AND x.status <= 3 AND x.deleted_at IS NULL AND (x.status + 0 >= 1 OR x.run_at <> x.created_at)
         LIMIT $8 + 1) r
     WHERE w.tenant_id = $1
       -- include: workflow_filter
     LIMIT $8 + 1
), reached AS MATERIALIZED (
    SELECT CASE WHEN (SELECT count(*) FROM timed) > $8 THEN $2 ELSE b.edge END AS edge FROM bound b
)
SELECT f.id, f.matches
  FROM ((SELECT DISTINCT n.id, true AS matches
           FROM (SELECT t.id FROM timed t WHERE t.id < $2
                 UNION ALL
                 SELECT x.id
                   FROM holdfast.workflow w
                  CROSS JOIN LATERAL (
                     SELECT x.id FROM holdfast.run x
                      WHERE x.workflow_id = w.id AND x.status = 1 AND x.status + 0 >= 1 AND x.deleted_at IS NULL
                        AND x.timeout_at <= holdfast.now() AND x.id < $2 OFFSET 0) x
                  WHERE w.tenant_id = $1
                    -- include: workflow_filter
                 UNION ALL
                 SELECT q.id FROM queued q) n
          WHERE n.id >= coalesce((SELECT e.edge FROM reached e), n.id)
          ORDER BY n.id DESC LIMIT $3)
        UNION ALL
        SELECT e.edge, false FROM reached e WHERE e.edge IS NOT NULL) f
 LIMIT $3;
