-- name: measure_workflows
-- How much each workflow has to do, of one tenant or of all (0), at most `workflows` of them; no more than `most` runs of
-- one are counted, so that it stays cheap whatever is queued. `oldest` is the earliest time at which a run that nobody holds
-- became due, found by skipping through run_claim. Served by run_claim and run_failed. Serves: metrics, top, doctor.
-- takes: one (tenant int, workflows int, most int)
-- gives: (tenant_id int, tenant text, workflow text, paused bool, due bigint, delayed bigint, leased bigint, failed bigint,
--   oldest bigint)
SELECT w.tenant_id, n.name, w.name, w.paused,
       (SELECT count(*) FROM (SELECT r.status, r.run_at FROM lane l CROSS JOIN run r INDEXED BY run_claim ON r.lane = l.id
                               WHERE l.workflow_id = w.id AND r.status <= 3 AND r.deleted_at IS NULL
                                 AND r.run_at IS NOT NULL LIMIT ?3) c
         WHERE c.status IN (0, 2) AND c.run_at <= holdfast_now()),
       (SELECT count(*) FROM (SELECT r.status, r.run_at FROM lane l CROSS JOIN run r INDEXED BY run_claim ON r.lane = l.id
                               WHERE l.workflow_id = w.id AND r.status <= 3 AND r.deleted_at IS NULL
                                 AND r.run_at IS NOT NULL LIMIT ?3) c
         WHERE c.status IN (0, 2) AND c.run_at > holdfast_now()),
       (SELECT count(*) FROM (SELECT r.status FROM lane l CROSS JOIN run r INDEXED BY run_claim ON r.lane = l.id
                               WHERE l.workflow_id = w.id AND r.status <= 3 AND r.deleted_at IS NULL
                                 AND r.run_at IS NOT NULL LIMIT ?3) c
         WHERE c.status = 1),
       (SELECT count(*) FROM (SELECT 1 FROM run r INDEXED BY run_failed
                               WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL LIMIT ?3)),
       (
        -- include: heads
        SELECT min((SELECT r.run_at FROM run r INDEXED BY run_claim
                     WHERE r.lane = h.lane AND r.priority = h.priority AND r.run_at <= holdfast_now()
                       AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
                     ORDER BY r.run_at LIMIT 1))
          FROM head h WHERE h.priority IS NOT NULL)
  FROM workflow w JOIN tenant n ON n.id = w.tenant_id
 WHERE ?1 = 0 OR w.tenant_id = ?1
 ORDER BY w.id LIMIT ?2;

-- name: measure_store
-- What waits in the store beside runs, of which no more than `most` rows are looked at: mail, dead letters, events that were not
-- delivered and when the oldest of them was written; workers. Served by signal_mailbox, by any index of dead_letter, and
-- by the one of outbox over what is not published. Serves: metrics, top, doctor.
-- takes: one (most int)
-- gives: (mail bigint, dead_letters bigint, undelivered bigint, oldest bigint, workers bigint, threads bigint,
--   running bigint, now bigint, stuck bigint)
SELECT (SELECT coalesce(sum(x.pieces), 0)
          FROM (SELECT coalesce(s.ends, 1) AS pieces FROM signal s INDEXED BY signal_mailbox
                 WHERE s.consumed_at IS NULL LIMIT ?1) x),
       (SELECT count(*) FROM (SELECT 1 FROM dead_letter LIMIT ?1)),
       (SELECT count(*) FROM (SELECT 1 FROM outbox o INDEXED BY outbox_waiting WHERE o.published_at IS NULL LIMIT ?1)),
       (SELECT min(x.created_at) FROM (SELECT o.created_at FROM outbox o INDEXED BY outbox_waiting
                                        WHERE o.published_at IS NULL LIMIT ?1) x),
       (SELECT count(*) FROM worker x WHERE x.expires_at > holdfast_now()),
       (SELECT coalesce(sum(x.threads), 0) FROM worker x WHERE x.expires_at > holdfast_now()),
       (SELECT coalesce(sum(x.running), 0) FROM worker x WHERE x.expires_at > holdfast_now()),
       holdfast_now(), (SELECT coalesce(sum(x.stuck), 0) FROM worker x WHERE x.expires_at > holdfast_now());

-- name: measure_mail
-- How much mail that no run has taken and how many dead letters each workflow has, of all tenants; no more than `most` of
-- either are looked at, and the run of each. Workflows that have neither are left out. Served by signal_mailbox, by
-- dead_letter_run, and by the primary keys of run and workflow. Serves: metrics.
-- takes: one (most int)
-- gives: (tenant int, workflow text, mail bigint, dead_letters bigint)
SELECT w.tenant_id, w.name, sum(x.mail), sum(x.letters)
  FROM (SELECT m.tenant_id, m.run_id, sum(m.pieces) AS mail, 0 AS letters
          FROM (SELECT s.tenant_id, s.run_id, coalesce(s.ends, 1) AS pieces
                  FROM signal s INDEXED BY signal_mailbox WHERE s.consumed_at IS NULL LIMIT ?1) m
         GROUP BY m.tenant_id, m.run_id
        UNION ALL
        SELECT d.tenant_id, d.run_id, 0, count(*)
          FROM (SELECT l.tenant_id, l.run_id FROM dead_letter l ORDER BY l.run_id LIMIT ?1) d
         GROUP BY d.tenant_id, d.run_id) x
 CROSS JOIN run r ON r.tenant_id = x.tenant_id AND r.id = x.run_id
 CROSS JOIN workflow w ON w.id = r.workflow_id
 GROUP BY w.tenant_id, w.name;
