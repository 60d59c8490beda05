-- name: measure_workflows
-- How much each workflow has to do, of one tenant or of all (0), at most `workflows` of them; no more than `most` runs of
-- one are counted, so that it stays cheap whatever is queued. `oldest` is the earliest time at which a run that nobody holds
-- became due, found by skipping through run_claim. Served by run_claim and run_failed. Serves: metrics, top, doctor.
-- takes: one (tenant int, workflows int, most int)
-- gives: (tenant_id int, tenant text, workflow text, paused bool, due bigint, delayed bigint, leased bigint, failed bigint,
--   oldest bigint)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now)
SELECT w.tenant_id, w.tenant, w.name, w.paused, d.due, d.delayed, d.leased, f.failed,
       CASE WHEN o.run_at <= t.now THEN o.run_at END
  FROM t
 CROSS JOIN (SELECT x.id, x.tenant_id, n.name AS tenant, x.name, x.paused
               FROM holdfast.workflow x JOIN holdfast.tenant n ON n.id = x.tenant_id
              WHERE $1 = 0 OR x.tenant_id = $1
              ORDER BY x.id LIMIT $2) w
 CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE r.status IN (0, 2) AND r.run_at <= t.now) AS due,
           count(*) FILTER (WHERE r.status IN (0, 2) AND r.run_at > t.now) AS delayed,
           count(*) FILTER (WHERE r.status = 1) AS leased
      FROM (SELECT c.status, c.run_at
              FROM holdfast.lane l
             CROSS JOIN LATERAL (
                SELECT x.status, x.run_at FROM holdfast.run x
                 WHERE x.lane = l.id AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL OFFSET 0) c
             WHERE l.workflow_id = w.id LIMIT $3) r) d
 CROSS JOIN LATERAL (
    SELECT count(*) AS failed
      FROM (SELECT 1 FROM holdfast.run x
             WHERE x.workflow_id = w.id AND x.status = 5 AND x.deleted_at IS NULL LIMIT $3) r) f
 CROSS JOIN LATERAL (
    -- include: heads
    SELECT min(h.run_at) AS run_at FROM head h) o;

-- name: measure_store
-- What waits in the store beside runs, of which no more than `most` rows are looked at: mail, dead letters, events that were not
-- delivered and when the oldest of them was written; workers. Served by signal_mailbox, by any index of dead_letter, and
-- by the one of outbox over what is not published. Serves: metrics, top, doctor.
-- takes: one (most int)
-- gives: (mail bigint, dead_letters bigint, undelivered bigint, oldest bigint, workers bigint, threads bigint,
--   running bigint, now bigint, stuck bigint)
SELECT (SELECT coalesce(sum(x.pieces), 0)
          FROM (SELECT coalesce(s.ends, 1) AS pieces FROM holdfast.signal s WHERE s.consumed_at IS NULL LIMIT $1) x),
       (SELECT count(*) FROM (SELECT 1 FROM holdfast.dead_letter l LIMIT $1) x),
       u.count, u.oldest, w.live, w.threads, w.running, holdfast.now(), w.stuck
  FROM (SELECT count(*) AS count, min(x.created_at) AS oldest
          FROM (SELECT o.created_at FROM holdfast.outbox o WHERE o.published_at IS NULL LIMIT $1) x) u
 CROSS JOIN (SELECT count(*) AS live, coalesce(sum(x.threads), 0)::bigint AS threads,
                   coalesce(sum(x.running), 0)::bigint AS running, coalesce(sum(x.stuck), 0)::bigint AS stuck
              FROM holdfast.worker x WHERE x.expires_at > holdfast.now()) w;

-- name: measure_mail
-- How much mail that no run has taken and how many dead letters each workflow has, of all tenants; no more than `most` of
-- either are looked at, and the run of each. Workflows that have neither are left out. Served by signal_mailbox, by
-- dead_letter_run, and by the primary keys of run and workflow. Serves: metrics.
-- takes: one (most int)
-- gives: (tenant int, workflow text, mail bigint, dead_letters bigint)
SELECT w.tenant_id, w.name, sum(x.mail)::bigint, sum(x.letters)::bigint
  FROM (SELECT m.tenant_id, m.run_id, sum(m.pieces) AS mail, 0 AS letters
          FROM (SELECT s.tenant_id, s.run_id, coalesce(s.ends, 1) AS pieces
                  FROM holdfast.signal s WHERE s.consumed_at IS NULL LIMIT $1) m
         GROUP BY m.tenant_id, m.run_id
        UNION ALL
        SELECT d.tenant_id, d.run_id, 0, count(*)
          FROM (SELECT l.tenant_id, l.run_id FROM holdfast.dead_letter l ORDER BY l.run_id LIMIT $1) d
         GROUP BY d.tenant_id, d.run_id) x
 CROSS JOIN LATERAL (
    SELECT r.workflow_id FROM holdfast.run r WHERE r.tenant_id = x.tenant_id AND r.id = x.run_id OFFSET 0) r
 CROSS JOIN LATERAL (SELECT f.tenant_id, f.name FROM holdfast.workflow f WHERE f.id = r.workflow_id OFFSET 0) w
 GROUP BY w.tenant_id, w.name;
