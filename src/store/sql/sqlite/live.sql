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
-- What happened to a tenant's runs between two positions, by minute, without the engine's own. Served by the primary
-- keys of event and run. Serves: stats.
-- takes: one (tenant int, after bigint, upto bigint)
-- gives: (minute bigint, name text, count bigint)
SELECT e.at / 60000000, e.name, count(*)
  FROM event e
 WHERE e.position > ?2 AND e.position <= ?3 AND e.tenant_id = ?1 AND e.kind = 0 /* lifecycle */
   AND e.name IN ('created', 'succeeded', 'failed', 'cancelled')
   AND NOT EXISTS (SELECT 1 FROM run r CROSS JOIN workflow w ON w.id = r.workflow_id
                    WHERE r.tenant_id = e.tenant_id AND r.id = e.run_id AND w.name >= 'holdfast.' AND w.name < 'holdfast/')
 GROUP BY 1, 2;

-- piece: due_count
-- How many runs of workflow `w` wait for a worker, to a limit.
(
 -- include: heads
 SELECT count(*)
   FROM (SELECT r.status FROM head h CROSS JOIN run r INDEXED BY run_claim ON r.lane = h.lane AND r.priority = h.priority
          WHERE h.priority IS NOT NULL AND r.run_at <= holdfast_now()
            AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL AND r.status IN (0, 2) LIMIT ?2) c)

-- piece: leased_and_failed_counts
-- How many runs of workflow `w` are held, and how many have failed, to a limit.
(SELECT count(*) FROM (SELECT 1 FROM run r INDEXED BY run_state
                        WHERE r.workflow_id = w.id AND r.status = 1 AND r.status + 0 >= 1 AND r.deleted_at IS NULL LIMIT ?2)),
(SELECT count(*) FROM (SELECT 1 FROM run r INDEXED BY run_failed
                        WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL LIMIT ?2))

-- name: measure_queues
-- How much each workflow of a tenant has to do. No more than `most` of its runs are counted of each kind, so that it stays
-- cheap whatever is queued. Those that are delayed lie among others that have a time ahead, and those that wait
-- among those whose time has come: no more than three times so many are looked at to find them. Lanes and priorities are
-- found by skipping through run_claim. Served by run_claim, run_state and run_failed. Serves: stats.
-- takes: one (tenant int, most int)
-- gives: (name text, paused bool, due bigint, delayed bigint, waiting bigint, leased bigint, failed bigint,
--   oldest bigint)
SELECT w.name, w.paused,
       -- include: due_count
       ,
       (
        -- include: heads
        SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT r.status
                          FROM head h
                         CROSS JOIN run r INDEXED BY run_claim ON r.lane = h.lane AND r.priority = h.priority
                         WHERE h.priority IS NOT NULL AND r.run_at > holdfast_now()
                           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL LIMIT 3 * ?2) c
                 WHERE c.status = 0 LIMIT ?2)),
       (SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT r.run_at FROM run r INDEXED BY run_state
                         WHERE r.workflow_id = w.id AND r.status = 2 AND r.status + 0 >= 1 AND r.deleted_at IS NULL
                         LIMIT 3 * ?2) c
                 WHERE c.run_at IS NULL OR c.run_at > holdfast_now() LIMIT ?2)),
       -- include: leased_and_failed_counts
       ,
       (
        -- include: heads
        SELECT min((SELECT r.run_at FROM run r INDEXED BY run_claim
                     WHERE r.lane = h.lane AND r.priority = h.priority AND r.run_at <= holdfast_now()
                       AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL AND r.status IN (0, 2)
                     ORDER BY r.run_at LIMIT 1))
          FROM head h WHERE h.priority IS NOT NULL)
  FROM workflow w
 WHERE w.tenant_id = ?1
 ORDER BY w.name LIMIT 10000;
