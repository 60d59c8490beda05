-- name: newest_position
-- The place of the newest line of the journal, or a later one that is being written. Serves: live views.
-- takes: nothing
-- gives: (position bigint)
SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM holdfast.event_position s;

-- name: read_feed
-- Lines of all journals after a position, without their data. Served by event_by_position. Serves: live views.
-- takes: one (after bigint, most int)
-- gives: (position bigint, tenant int, run uuid, seq bigint, kind int, name text, actor text, step text, at bigint,
--   workflow text, key text)
SELECT f.pos, f.tenant, f.run, f.event_seq, f.event_kind, f.event_name, f.event_actor, f.event_step, f.event_at, w.name,
       r.key
  FROM holdfast.events_after($1, 9223372036854775807, $2) f
  LEFT JOIN LATERAL (
    SELECT x.workflow_id, x.key FROM holdfast.run x WHERE x.tenant_id = f.tenant AND x.id = f.run OFFSET 0) r ON true
  LEFT JOIN LATERAL (SELECT v.name FROM holdfast.workflow v WHERE v.id = r.workflow_id OFFSET 0) w ON true;

-- name: count_minutes
-- What happened to a tenant's runs between two positions, by minute. Served by event_by_position. Serves: stats.
-- takes: one (tenant int, after bigint, upto bigint)
-- gives: (minute bigint, name text, count bigint)
SELECT e.event_at / 60000000, e.event_name, count(*)
  FROM holdfast.events_after($2, $3, NULL) e
 WHERE e.tenant = $1 AND e.event_kind = 0 /* lifecycle */
   AND e.event_name IN ('created', 'succeeded', 'failed', 'cancelled')
 GROUP BY 1, 2;

-- name: measure_queues
-- How much each workflow of a tenant has to do. Served by run_claim and run_failed. Serves: stats.
-- takes: one (tenant int)
-- gives: (name text, paused bool, due bigint, delayed bigint, waiting bigint, leased bigint, failed bigint,
--   oldest bigint)
SELECT w.name, w.paused, d.due, d.delayed, d.waiting, d.leased,
       (SELECT count(*) FROM holdfast.run r WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL),
       d.oldest
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE r.status IN (0, 2) AND r.run_at <= holdfast.now()) AS due,
           count(*) FILTER (WHERE r.status = 0 AND r.run_at > holdfast.now()) AS delayed,
           count(*) FILTER (WHERE r.status = 2 AND r.run_at > holdfast.now()) AS waiting,
           count(*) FILTER (WHERE r.status = 1) AS leased,
           min(r.run_at) FILTER (WHERE r.status IN (0, 2) AND r.run_at <= holdfast.now()) AS oldest
      FROM holdfast.lane l
     CROSS JOIN LATERAL (
        SELECT c.status, c.run_at FROM holdfast.run c
         WHERE c.lane = l.id AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL OFFSET 0) r
     WHERE l.workflow_id = w.id) d
 WHERE w.tenant_id = $1
 ORDER BY w.name LIMIT 10000;
