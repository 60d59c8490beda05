-- name: newest_position
-- The place of the newest line of the journal, or a later one that is being written. Serves: live views.
-- takes: nothing
-- gives: (position bigint)
SELECT coalesce(max(position), 0) FROM event;

-- name: read_feed
-- Lines of all journals after a position, without their data. Served by the primary key of event. Serves: live views.
-- takes: one (after bigint, most int)
-- gives: (position bigint, tenant int, run uuid, seq bigint, kind int, name text, actor text, step text, at bigint,
--   workflow text, key text)
SELECT e.position, e.tenant_id, e.run_id, e.seq, e.kind, e.name, e.actor, e.step, e.at, w.name, r.key
  FROM event e
  LEFT JOIN run r ON r.tenant_id = e.tenant_id AND r.id = e.run_id
  LEFT JOIN workflow w ON w.id = r.workflow_id
 WHERE e.position > ?1 ORDER BY e.position LIMIT ?2;

-- name: count_minutes
-- What happened to a tenant's runs between two positions, by minute. Served by the primary key of event. Serves: stats.
-- takes: one (tenant int, after bigint, upto bigint)
-- gives: (minute bigint, name text, count bigint)
SELECT at / 60000000, name, count(*)
  FROM event
 WHERE position > ?2 AND position <= ?3 AND tenant_id = ?1 AND kind = 0 /* lifecycle */
   AND name IN ('created', 'succeeded', 'failed', 'cancelled')
 GROUP BY 1, 2;

-- name: measure_queues
-- How much each workflow of a tenant has to do. Served by run_claim and run_failed. Serves: stats.
-- takes: one (tenant int)
-- gives: (name text, paused bool, due bigint, delayed bigint, waiting bigint, leased bigint, failed bigint,
--   oldest bigint)
SELECT w.name, w.paused,
       coalesce(sum(r.status IN (0, 2) AND r.run_at <= holdfast_now()), 0),
       coalesce(sum(r.status = 0 AND r.run_at > holdfast_now()), 0),
       coalesce(sum(r.status = 2 AND r.run_at > holdfast_now()), 0),
       coalesce(sum(r.status = 1), 0),
       (SELECT count(*) FROM run f INDEXED BY run_failed
         WHERE f.workflow_id = w.id AND f.status = 5 AND f.deleted_at IS NULL),
       min(CASE WHEN r.status IN (0, 2) AND r.run_at <= holdfast_now() THEN r.run_at END)
  FROM workflow w
  LEFT JOIN lane l ON l.workflow_id = w.id
  LEFT JOIN run r INDEXED BY run_claim ON r.lane = l.id
        AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
 WHERE w.tenant_id = ?1
 GROUP BY w.name
 ORDER BY w.name LIMIT 10000;
