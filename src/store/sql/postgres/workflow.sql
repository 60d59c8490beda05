-- name: create_workflow
-- Registers workflows with their lanes, where they do not exist. Serves: workflow create, worker registration, the
-- engine's own runs.
-- takes: rows (tenant int, name text)
-- gives: (lane int)
WITH made AS (
    INSERT INTO holdfast.workflow (tenant_id, name)
    SELECT n.tenant, n.name FROM unnest($1::int[], $2::text[]) AS n(tenant, name)
    ON CONFLICT (tenant_id, name) DO NOTHING
    RETURNING id, tenant_id, lane
)
INSERT INTO holdfast.lane (id, tenant_id, workflow_id)
SELECT m.lane, m.tenant_id, m.id FROM made m
RETURNING id;

-- name: set_workflow
-- Sets the fields named by the bits of mask (HF_SET_*). A workflow with any limit has max_running. Serves: workflow
-- create and set.
-- takes: one (tenant int, name text, mask int, max_attempts int, retry_base bigint, retry_cap bigint, lease bigint,
--   timeout bigint, retention bigint, dead_letter text, definition text, paused bool, max_running int, rate_count int,
--   rate_interval bigint, rate_burst int, key_max_running int, key_rate_count int, key_rate_interval bigint,
--   key_rate_burst int, fit_within bigint, on_cancel text, children text)
-- gives: (lane int)
UPDATE holdfast.workflow w
   SET max_attempts = CASE WHEN $3 & 1 <> 0 THEN $4 ELSE w.max_attempts END,
       retry_base   = CASE WHEN $3 & 2 <> 0 THEN $5 ELSE w.retry_base END,
       retry_cap    = CASE WHEN $3 & 4 <> 0 THEN $6 ELSE w.retry_cap END,
       lease        = CASE WHEN $3 & 8 <> 0 THEN $7 ELSE w.lease END,
       timeout      = CASE WHEN $3 & 16 <> 0 THEN $8 ELSE w.timeout END,
       retention    = CASE WHEN $3 & 32 <> 0 THEN $9 ELSE w.retention END,
       dead_letter  = CASE WHEN $3 & 64 <> 0 THEN $10 ELSE w.dead_letter END,
       definition   = CASE WHEN $3 & 128 <> 0 THEN $11 ELSE w.definition END,
       paused       = CASE WHEN $3 & 256 <> 0 THEN $12 ELSE w.paused END,
       max_running  = coalesce(CASE WHEN $3 & 512 <> 0 THEN $13 ELSE nullif(w.max_running, 2147483647) END,
                               CASE WHEN coalesce(CASE WHEN $3 & 1024 <> 0 THEN $14 ELSE w.rate_count END,
                                                  CASE WHEN $3 & 2048 <> 0 THEN $17 ELSE w.key_max_running END,
                                                  CASE WHEN $3 & 4096 <> 0 THEN $18 ELSE w.key_rate_count END) IS NOT NULL
                                    THEN 2147483647 END),
       rate_count = CASE WHEN $3 & 1024 <> 0 THEN $14 ELSE w.rate_count END,
       rate_interval = CASE WHEN $3 & 1024 <> 0 THEN $15 ELSE w.rate_interval END,
       rate_burst = CASE WHEN $3 & 1024 <> 0 THEN $16 ELSE w.rate_burst END,
       key_max_running = CASE WHEN $3 & 2048 <> 0 THEN $17 ELSE w.key_max_running END,
       key_rate_count = CASE WHEN $3 & 4096 <> 0 THEN $18 ELSE w.key_rate_count END,
       key_rate_interval = CASE WHEN $3 & 4096 <> 0 THEN $19 ELSE w.key_rate_interval END,
       key_rate_burst = CASE WHEN $3 & 4096 <> 0 THEN $20 ELSE w.key_rate_burst END,
       fit_within   = CASE WHEN $3 & 8192 <> 0 THEN $21 ELSE w.fit_within END,
       on_cancel    = CASE WHEN $3 & 16384 <> 0 THEN $22 ELSE w.on_cancel END,
       children     = CASE WHEN $3 & 32768 <> 0 THEN $23 ELSE w.children END,
       updated_at   = holdfast.now()
 WHERE w.tenant_id = $1 AND w.name = $2
RETURNING w.lane;

-- name: list_workflows
-- Workflows of a tenant by exact name or by prefix, with their depth; no more than `most` runs of each kind are counted, and of
-- those that are parked looked for among three times as many.
-- Served by run_claim, run_state and run_failed. Serves: workflow show and list.
-- takes: one (tenant int, most int, name text, prefix text, prefix_end text)
-- gives: (name text, paused bool, max_attempts int, retry_base bigint, retry_cap bigint, lease bigint, timeout bigint,
--   retention bigint, dead_letter text, definition text, created_at bigint, updated_at bigint, due bigint,
--   delayed bigint, parked bigint, leased bigint, failed bigint, max_running int, rate_count int, rate_interval bigint,
--   rate_burst int, key_max_running int, key_rate_count int, key_rate_interval bigint, key_rate_burst int,
--   fit_within bigint, on_cancel text, children text)
SELECT w.name, w.paused, w.max_attempts, w.retry_base, w.retry_cap, w.lease, w.timeout,
       w.retention, w.dead_letter, w.definition, w.created_at, w.updated_at,
       d.due, d.delayed,
       (SELECT least(count(*), $2)
          FROM (SELECT 1
                  FROM (SELECT r.run_at FROM holdfast.run r
                         WHERE r.workflow_id = w.id AND r.status = 2 AND r.status + 0 >= 1 AND r.deleted_at IS NULL
                         LIMIT 3 * $2) s
                 WHERE s.run_at IS NULL
                UNION ALL
                SELECT 1 FROM (SELECT 1 FROM holdfast.run r
                                WHERE r.workflow_id = w.id AND r.status = 3 AND r.status + 0 >= 1 AND r.deleted_at IS NULL
                                LIMIT $2) p) y),
       -- include: leased_and_failed_counts
       ,
       nullif(w.max_running, 2147483647),
       w.rate_count, w.rate_interval, w.rate_burst, w.key_max_running, w.key_rate_count, w.key_rate_interval, w.key_rate_burst,
       w.fit_within,
       w.on_cancel, coalesce(w.children, 'leave')
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    -- include: heads
    SELECT (SELECT count(*)
              FROM (
                    -- include: due_runs
                   ) x) AS due,
           (SELECT count(*)
              FROM (SELECT 1
                      FROM head h
                     CROSS JOIN LATERAL (
                        SELECT 1 FROM holdfast.run c
                         WHERE c.lane = h.lane AND c.priority = h.priority AND c.run_at > holdfast.now()
                           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL AND c.status IN (0, 2)
                         LIMIT $2) r
                     LIMIT $2) x) AS delayed) d
 WHERE w.tenant_id = $1 AND ($3::text IS NULL OR w.name = $3)
   AND ($4::text IS NULL OR (w.name >= $4 AND w.name < $5))
 ORDER BY w.name LIMIT 10000;

-- name: served_lanes
-- Lanes of the workflows whose name begins with a prefix (or is it), for one tenant, or all that are not disabled
-- (tenant 0). Paused workflows are left out: what is due there would look like something that nobody takes. Served by
-- the unique index on workflow. Serves: a worker learning what it may claim.
-- takes: rows (tenant int, low text, high text)
-- gives: (lane int, workflow text, tenant_id int, lease bigint, workflow_id int, weight int, limited bool)
SELECT l.id, w.name, w.tenant_id, w.lease, w.id, l.weight, w.max_running IS NOT NULL
  FROM unnest($1::int[], $2::text[], $3::text[]) AS p(tenant, low, high)
  JOIN holdfast.tenant t ON (p.tenant = 0 OR t.id = p.tenant) AND NOT t.disabled
  JOIN holdfast.workflow w ON w.tenant_id = t.id AND w.name >= p.low AND w.name < p.high AND NOT w.paused
  JOIN holdfast.lane l ON l.workflow_id = w.id;

-- name: new_lanes
-- Lanes that were made since, of any workflow that is not paused: ids rise. Served by the primary key of lane. Serves: a
-- worker learning of new flow keys.
-- takes: one (after int)
-- gives: (lane int, workflow text, tenant_id int, lease bigint, workflow_id int, weight int, limited bool)
SELECT l.id, w.name, w.tenant_id, w.lease, w.id, l.weight, w.max_running IS NOT NULL
  FROM holdfast.lane l
  JOIN holdfast.workflow w ON w.id = l.workflow_id AND NOT w.paused
  JOIN holdfast.tenant t ON t.id = l.tenant_id AND NOT t.disabled
 WHERE l.id > $1;

-- name: occupy_slots
-- Runs that are held already count when their workflow gets its first limit. Served by run_claim. Serves: workflow set.
-- takes: one (tenant int, name text)
-- gives: nothing
WITH held AS MATERIALIZED (
    SELECT r.ctid
      FROM holdfast.workflow w
      JOIN holdfast.lane l ON l.workflow_id = w.id
     CROSS JOIN LATERAL (
        SELECT c.ctid FROM holdfast.run c
         WHERE c.lane = l.id AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
           AND c.status = 1 AND c.slot IS NULL
           FOR NO KEY UPDATE) r
     WHERE w.tenant_id = $1 AND w.name = $2 AND w.max_running IS NOT NULL
)
UPDATE holdfast.run r SET slot = r.workflow_id FROM held h WHERE r.ctid = h.ctid;

-- name: set_weight
-- The share of a flow key, which is made if nothing had it yet. Serves: workflow set.
-- takes: one (tenant int, name text, flow_key text, weight int)
-- gives: (lane int)
INSERT INTO holdfast.lane AS l (id, tenant_id, workflow_id, flow_key, weight)
SELECT nextval('holdfast.lane_id') * 2 + 1, w.tenant_id, w.id, $3, $4 FROM holdfast.workflow w
 WHERE w.tenant_id = $1 AND w.name = $2
ON CONFLICT (workflow_id, coalesce(flow_key, '')) DO UPDATE SET weight = EXCLUDED.weight
RETURNING l.id;

-- name: list_weights
-- The flow keys of a workflow that have a weight of their own. Served by lane_weight. Serves: workflow show.
-- takes: one (tenant int, name text, most int)
-- gives: (flow_key text, weight int)
SELECT coalesce(l.flow_key, ''), l.weight FROM holdfast.lane l
 WHERE l.workflow_id = (SELECT w.id FROM holdfast.workflow w WHERE w.tenant_id = $1 AND w.name = $2) AND l.weight <> 1
 ORDER BY l.weight DESC, l.id LIMIT $3;
