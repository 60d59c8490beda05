-- name: create_workflow
-- Registers workflows with their lanes, where they do not exist. Serves: workflow create, worker registration, the
-- engine's own runs.
-- takes: rows (tenant int, name text)
-- gives: (lane int)
INSERT INTO workflow (tenant_id, name, lane, created_at, updated_at)
SELECT ?1, ?2, coalesce((SELECT max(id) FROM lane), 0) + 2 & ~1, holdfast_now(), holdfast_now()
 WHERE true
ON CONFLICT (tenant_id, name) DO NOTHING;
INSERT INTO lane (id, tenant_id, workflow_id, created_at)
SELECT w.lane, w.tenant_id, w.id, holdfast_now() FROM workflow w
 WHERE changes() = 1 AND w.tenant_id = ?1 AND w.name = ?2
RETURNING id;

-- name: set_workflow
-- Sets the fields named by the bits of mask (HF_SET_*). A workflow with any limit has max_running. Serves: workflow
-- create and set.
-- takes: one (tenant int, name text, mask int, max_attempts int, retry_base bigint, retry_cap bigint, lease bigint,
--   timeout bigint, retention bigint, dead_letter text, definition text, paused bool, max_running int, rate_count int,
--   rate_interval bigint, rate_burst int, key_max_running int, key_rate_count int, key_rate_interval bigint,
--   key_rate_burst int, fit_within bigint, on_cancel text, children text)
-- gives: (lane int)
UPDATE workflow
   SET max_attempts = CASE WHEN ?3 & 1 THEN ?4 ELSE max_attempts END,
       retry_base   = CASE WHEN ?3 & 2 THEN ?5 ELSE retry_base END,
       retry_cap    = CASE WHEN ?3 & 4 THEN ?6 ELSE retry_cap END,
       lease        = CASE WHEN ?3 & 8 THEN ?7 ELSE lease END,
       timeout      = CASE WHEN ?3 & 16 THEN ?8 ELSE timeout END,
       retention    = CASE WHEN ?3 & 32 THEN ?9 ELSE retention END,
       dead_letter  = CASE WHEN ?3 & 64 THEN ?10 ELSE dead_letter END,
       definition   = CASE WHEN ?3 & 128 THEN ?11 ELSE definition END,
       paused       = CASE WHEN ?3 & 256 THEN ?12 ELSE paused END,
       max_running  = coalesce(CASE WHEN ?3 & 512 THEN ?13 ELSE nullif(max_running, 2147483647) END,
                               CASE WHEN coalesce(CASE WHEN ?3 & 1024 THEN ?14 ELSE rate_count END,
                                                  CASE WHEN ?3 & 2048 THEN ?17 ELSE key_max_running END,
                                                  CASE WHEN ?3 & 4096 THEN ?18 ELSE key_rate_count END) IS NOT NULL
                                    THEN 2147483647 END),
       rate_count = CASE WHEN ?3 & 1024 THEN ?14 ELSE rate_count END,
       rate_interval = CASE WHEN ?3 & 1024 THEN ?15 ELSE rate_interval END,
       rate_burst = CASE WHEN ?3 & 1024 THEN ?16 ELSE rate_burst END,
       key_max_running = CASE WHEN ?3 & 2048 THEN ?17 ELSE key_max_running END,
       key_rate_count = CASE WHEN ?3 & 4096 THEN ?18 ELSE key_rate_count END,
       key_rate_interval = CASE WHEN ?3 & 4096 THEN ?19 ELSE key_rate_interval END,
       key_rate_burst = CASE WHEN ?3 & 4096 THEN ?20 ELSE key_rate_burst END,
       fit_within   = CASE WHEN ?3 & 8192 THEN ?21 ELSE fit_within END,
       on_cancel    = CASE WHEN ?3 & 16384 THEN ?22 ELSE on_cancel END,
       children     = CASE WHEN ?3 & 32768 THEN ?23 ELSE children END,
       updated_at   = holdfast_now()
 WHERE tenant_id = ?1 AND name = ?2
RETURNING lane;

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
       -- include: due_count
       ,
       (
        -- include: heads
        SELECT count(*)
          FROM (SELECT r.status FROM head h CROSS JOIN run r INDEXED BY run_claim ON r.lane = h.lane AND r.priority = h.priority
                 WHERE h.priority IS NOT NULL AND r.run_at > holdfast_now()
                   AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL AND r.status IN (0, 2) LIMIT ?2) c),
       (SELECT min(count(*), ?2)
          FROM (SELECT 1
                  FROM (SELECT r.run_at FROM run r INDEXED BY run_state
                         WHERE r.workflow_id = w.id AND r.status = 2 AND r.status + 0 >= 1 AND r.deleted_at IS NULL
                         LIMIT 3 * ?2) s
                 WHERE s.run_at IS NULL
                UNION ALL
                SELECT 1 FROM (SELECT 1 FROM run r INDEXED BY run_state
                                WHERE r.workflow_id = w.id AND r.status = 3 AND r.status + 0 >= 1 AND r.deleted_at IS NULL
                                LIMIT ?2) p) y),
       -- include: leased_and_failed_counts
       ,
       nullif(w.max_running, 2147483647),
       w.rate_count, w.rate_interval, w.rate_burst, w.key_max_running, w.key_rate_count, w.key_rate_interval, w.key_rate_burst,
       w.fit_within,
       w.on_cancel, coalesce(w.children, 'leave')
  FROM workflow w
 WHERE w.tenant_id = ?1 AND (?3 IS NULL OR w.name = ?3)
   AND (?4 IS NULL OR (w.name >= ?4 AND w.name < ?5))
 ORDER BY w.name LIMIT 10000;

-- name: served_lanes
-- Lanes of the workflows whose name begins with a prefix (or is it), for one tenant, or all that are not disabled
-- (tenant 0). Paused workflows are left out: what is due there would look like something that nobody takes. Served by
-- the unique index on workflow. Serves: a worker learning what it may claim.
-- takes: rows (tenant int, low text, high text)
-- gives: (lane int, workflow text, tenant_id int, lease bigint, workflow_id int, weight int, limited bool)
SELECT l.id, w.name, w.tenant_id, w.lease, w.id, l.weight, w.max_running IS NOT NULL
  FROM tenant t
  JOIN workflow w ON w.tenant_id = t.id AND w.name >= ?2 AND w.name < ?3 AND NOT w.paused
  JOIN lane l ON l.workflow_id = w.id
 WHERE (?1 = 0 OR t.id = ?1) AND NOT t.disabled;

-- name: new_lanes
-- Lanes that were made since, of any workflow that is not paused: ids rise. Served by the primary key of lane. Serves: a
-- worker learning of new flow keys.
-- takes: one (after int)
-- gives: (lane int, workflow text, tenant_id int, lease bigint, workflow_id int, weight int, limited bool)
SELECT l.id, w.name, w.tenant_id, w.lease, w.id, l.weight, w.max_running IS NOT NULL
  FROM lane l
  JOIN workflow w ON w.id = l.workflow_id AND NOT w.paused
  JOIN tenant t ON t.id = l.tenant_id AND NOT t.disabled
 WHERE l.id > ?1;

-- name: occupy_slots
-- Runs that are held already count when their workflow gets its first limit. Served by run_claim. Serves: workflow set.
-- takes: one (tenant int, name text)
-- gives: nothing
UPDATE run SET slot = workflow_id
 WHERE rowid IN (
    SELECT r.rowid FROM workflow w
     CROSS JOIN lane l ON l.workflow_id = w.id
     CROSS JOIN run r INDEXED BY run_claim ON r.lane = l.id
       AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL AND r.status = 1 AND r.slot IS NULL
     WHERE w.tenant_id = ?1 AND w.name = ?2 AND w.max_running IS NOT NULL);

-- name: set_weight
-- The share of a flow key, which is made if nothing had it yet. Serves: workflow set.
-- takes: one (tenant int, name text, flow_key text, weight int)
-- gives: (lane int)
INSERT INTO lane (id, tenant_id, workflow_id, flow_key, weight, created_at)
SELECT (SELECT max(k.id) FROM lane k) + 1 | 1, w.tenant_id, w.id, ?3, ?4, holdfast_now() FROM workflow w
 WHERE w.tenant_id = ?1 AND w.name = ?2
ON CONFLICT (workflow_id, coalesce(flow_key, '')) DO UPDATE SET weight = excluded.weight
RETURNING id;

-- name: list_weights
-- The flow keys of a workflow that have a weight of their own. Served by lane_weight. Serves: workflow show.
-- takes: one (tenant int, name text, most int)
-- gives: (flow_key text, weight int)
SELECT coalesce(l.flow_key, ''), l.weight FROM lane l INDEXED BY lane_weight
 WHERE l.workflow_id = (SELECT w.id FROM workflow w WHERE w.tenant_id = ?1 AND w.name = ?2) AND l.weight <> 1
 ORDER BY l.weight DESC, l.id LIMIT ?3;
