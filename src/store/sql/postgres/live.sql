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
-- What happened to a tenant's runs between two positions, by minute, without the engine's own. Served by
-- event_by_position and the primary key of run. Serves: stats.
-- takes: one (tenant int, after bigint, upto bigint)
-- gives: (minute bigint, name text, count bigint)
SELECT e.event_at / 60000000, e.event_name, count(*)
  FROM holdfast.events_after($2, $3, NULL) e
 WHERE e.tenant = $1 AND e.event_kind = 0 /* lifecycle */
   AND e.event_name IN ('created', 'succeeded', 'failed', 'cancelled')
   AND NOT EXISTS (SELECT 1 FROM holdfast.run r JOIN holdfast.workflow w ON w.id = r.workflow_id
                    WHERE r.tenant_id = e.tenant AND r.id = e.run AND w.name >= 'holdfast.' AND w.name < 'holdfast/'
                   OFFSET 0)
 GROUP BY 1, 2;

-- piece: due_runs
-- Since when runs under `head` wait for a worker, to a limit.
SELECT r.run_at
  FROM head h
 CROSS JOIN LATERAL (
    SELECT c.run_at FROM holdfast.run c
     WHERE c.lane = h.lane AND c.priority = h.priority AND c.run_at <= holdfast.now()
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL AND c.status IN (0, 2)
     ORDER BY c.run_at LIMIT $2) r
 LIMIT $2

-- piece: leased_and_failed_counts
-- How many runs of workflow `w` are held, and how many have failed, to a limit.
(SELECT count(*) FROM (SELECT 1 FROM holdfast.run r WHERE r.workflow_id = w.id AND r.status = 1
                          AND r.status + 0 >= 1 AND r.deleted_at IS NULL LIMIT $2) x),
(SELECT count(*) FROM (SELECT 1 FROM holdfast.run r WHERE r.workflow_id = w.id AND r.status = 5
                          AND r.deleted_at IS NULL LIMIT $2) x)

-- name: measure_queues
-- How much each workflow of a tenant has to do. No more than `most` of its runs are counted of each kind, so that it stays
-- cheap whatever is queued. Those that are delayed lie among others that have a time ahead, and those that wait
-- among those whose time has come: no more than three times so many are looked at to find them. Lanes and priorities are
-- found by skipping through run_claim. Served by run_claim, run_state and run_failed. Serves: stats.
-- takes: one (tenant int, most int)
-- gives: (name text, paused bool, due bigint, delayed bigint, waiting bigint, leased bigint, failed bigint,
--   oldest bigint)
SELECT w.name, w.paused, d.due, d.delayed,
       (SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT r.run_at FROM holdfast.run r WHERE r.workflow_id = w.id AND r.status = 2
                           AND r.status + 0 >= 1 AND r.deleted_at IS NULL LIMIT 3 * $2) x
                 WHERE x.run_at IS NULL OR x.run_at > holdfast.now() LIMIT $2) y),
       -- include: leased_and_failed_counts
       ,
       d.oldest
  FROM holdfast.workflow w
 CROSS JOIN LATERAL (
    -- include: heads
    SELECT past.due, past.oldest, ahead.delayed
      FROM (SELECT count(*) AS due, min(x.run_at) AS oldest
              FROM (
                    -- include: due_runs
                   ) x) past
     CROSS JOIN (SELECT count(*) AS delayed
                   FROM (SELECT 1
                           FROM (SELECT r.status
                                   FROM head h
                                  CROSS JOIN LATERAL (
                                     SELECT c.status FROM holdfast.run c
                                      WHERE c.lane = h.lane AND c.priority = h.priority AND c.run_at > holdfast.now()
                                        AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
                                      ORDER BY c.run_at LIMIT 3 * $2) r
                                  LIMIT 3 * $2) x
                          WHERE x.status = 0 LIMIT $2) y) ahead) d
 WHERE w.tenant_id = $1
 ORDER BY w.name LIMIT 10000;
