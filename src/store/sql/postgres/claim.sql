-- name: claim_runs
-- Leases due runs to a worker, most urgent first: heads is a JSON array of [lane, priority, floor, share], in the
-- order in which they are looked at; floor is a run_at below which nothing is left, share the most to take of it.
-- The lateral sub-selects keep that order. Workflows with limits are left to claim_limited. Runs whose lease expired are taken only up
-- to an attempt, unless they have none left or are late: those need no handler to end. The attempt is counted here and the journal says started. Paused workflows and disabled tenants are
-- passed over. A locked row stays where it is, so it is updated by its place (ctid); one that was changed between the
-- snapshot and its lock is left for the next claim. Served by run_claim. Serves: workers.
-- takes: one (heads text, most int, worker text, lease bigint, suspect_attempts int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint, deferred bool)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
due AS MATERIALIZED (
    SELECT r.ctid, l.tenant, l.name, coalesce($4, l.lease) AS lease, l.max_attempts, l.retry_base, l.retry_cap,
           l.dead_letter, t.now
      FROM t
     CROSS JOIN jsonb_array_elements($1::jsonb) AS h(head)
     CROSS JOIN LATERAL (
        SELECT i.id, n.name AS tenant, w.name, w.lease, w.max_attempts, w.retry_base, w.retry_cap, w.dead_letter
          FROM holdfast.lane i
          JOIN holdfast.workflow w ON w.id = i.workflow_id AND NOT w.paused AND w.max_running IS NULL
          JOIN holdfast.tenant n ON n.id = i.tenant_id AND NOT n.disabled
         WHERE i.id = (h.head->>0)::int
        OFFSET 0) l
     CROSS JOIN LATERAL (
        SELECT c.ctid
          FROM holdfast.run c
         WHERE c.lane = l.id AND c.priority = (h.head->>1)::int
           AND c.run_at >= (h.head->>2)::bigint AND c.run_at <= t.now
           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
           AND (c.status <> 1 OR c.attempt <= $5 OR c.attempt >= coalesce(c.max_attempts, l.max_attempts)
                OR c.timeout_at <= t.now)
         ORDER BY c.run_at LIMIT least((h.head->>3)::int, $2)
           FOR NO KEY UPDATE SKIP LOCKED) r
     LIMIT $2
), ok AS (
    UPDATE holdfast.run r
       SET status = 1, claimed_from = r.status, due_at = CASE WHEN r.status = 1 THEN r.due_at ELSE r.run_at END, version = r.version + 1, attempt = r.attempt + 1,
           event_seq = r.event_seq + 1, leased_by = $3, started_at = coalesce(r.started_at, d.now), updated_at = d.now,
           run_at = CASE WHEN r.timeout_at > d.now THEN least(d.now + d.lease, r.timeout_at) ELSE d.now + d.lease END
      FROM due d
     WHERE r.ctid = d.ctid
    RETURNING r.id, r.tenant_id, d.tenant, d.name, r.lane, r.key, r.priority, r.attempt,
              coalesce(r.max_attempts, d.max_attempts) AS max_attempts, r.version, r.revision, r.event_seq, r.run_at,
              r.due_at, r.claimed_from, r.has_mail, r.has_steps, r.watched, r.input, r.state, r.error, r.error_code,
              r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until, r.wait_count,
              r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent, r.root,
              r.timeout_at, r.created_at, r.started_at, d.lease, d.retry_base, d.retry_cap,
              d.dead_letter, r.updated_at, r.deferred
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 0, 'started', $3 FROM ok o
)
SELECT o.id, o.tenant_id, o.tenant, o.name, o.lane, o.key, o.priority, o.attempt, o.max_attempts, o.version, o.revision,
       o.event_seq, o.run_at, o.due_at, o.claimed_from, o.has_mail, o.has_steps, o.watched, o.input, o.state, o.error,
       o.error_code, o.last_error, o.current_step, o.waiting_kind, o.waiting_token, o.waiting_until, o.wait_count,
       o.last_worker, o.subject, o.reference, o.tags, o.partition, o.trace, o.actor, o.parent, o.root, o.timeout_at,
       o.created_at, o.started_at, o.lease, o.retry_base, o.retry_cap, o.dead_letter, o.updated_at,
       o.deferred
  FROM ok o;

-- name: claim_head
-- As claim_runs, from one head: its lane is read once and stays out of the rows that are passed on, and all its runs are
-- updated by one scan of their places. What they share comes once, in a last row without an id; max_attempts is theirs where
-- it is not null in their own. Served by the primary keys of lane, workflow and tenant and by run_claim. Serves: workers,
-- where one lane and priority has what they want.
-- only: postgres
-- takes: one (lane int, priority int, floor bigint, most int, worker text, lease bigint, suspect_attempts int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint, deferred bool)
WITH l AS MATERIALIZED (
    SELECT i.id, n.name AS tenant, w.name, coalesce($6, w.lease) AS lease, w.max_attempts, w.retry_base, w.retry_cap,
           w.dead_letter, holdfast.now() AS now
      FROM holdfast.lane i
      JOIN holdfast.workflow w ON w.id = i.workflow_id AND NOT w.paused AND w.max_running IS NULL
      JOIN holdfast.tenant n ON n.id = i.tenant_id AND NOT n.disabled
     WHERE i.id = $1
), due AS MATERIALIZED (
    SELECT r.ctid
      FROM l
     CROSS JOIN LATERAL (
        SELECT c.ctid
          FROM holdfast.run c
         WHERE c.lane = l.id AND c.priority = $2 AND c.run_at >= $3 AND c.run_at <= l.now
           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
           AND (c.status <> 1 OR c.attempt <= $7 OR c.attempt >= coalesce(c.max_attempts, l.max_attempts)
                OR c.timeout_at <= l.now)
         ORDER BY c.run_at LIMIT $4
           FOR NO KEY UPDATE SKIP LOCKED) r
), ok AS (
    UPDATE holdfast.run r
       SET status = 1, claimed_from = r.status, due_at = CASE WHEN r.status = 1 THEN r.due_at ELSE r.run_at END, version = r.version + 1, attempt = r.attempt + 1,
           event_seq = r.event_seq + 1, leased_by = $5, started_at = coalesce(r.started_at, l.now), updated_at = l.now,
           run_at = CASE WHEN r.timeout_at > l.now THEN least(l.now + l.lease, r.timeout_at) ELSE l.now + l.lease END
      FROM l
     WHERE r.ctid = ANY (ARRAY(SELECT d.ctid FROM due d))
    RETURNING r.id, r.tenant_id, r.event_seq, r.version, r.key, r.attempt, r.max_attempts, r.revision, r.run_at,
              r.due_at, r.claimed_from, r.has_mail, r.has_steps, r.watched, r.input, r.state, r.error, r.error_code,
              r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until, r.wait_count,
              r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent, r.root,
              r.timeout_at, r.created_at, r.started_at, r.deferred
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, (SELECT l.now FROM l), 0, 'started', $5 FROM ok o
)
SELECT o.id, o.tenant_id, NULL::text, NULL::text, NULL::int, o.key, NULL::int, o.attempt, o.max_attempts, o.version,
       o.revision, NULL::bigint, o.run_at, o.due_at, o.claimed_from, o.has_mail, o.has_steps, o.watched, o.input, o.state,
       o.error, o.error_code, o.last_error, o.current_step, o.waiting_kind, o.waiting_token, o.waiting_until, o.wait_count,
       o.last_worker, o.subject, o.reference, o.tags, o.partition, o.trace, o.actor, o.parent, o.root, o.timeout_at,
       o.created_at, o.started_at, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text, NULL::bigint, o.deferred
  FROM ok o
 UNION ALL
SELECT NULL, NULL, l.tenant, l.name, l.id, NULL, $2, NULL, l.max_attempts, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, l.lease, l.retry_base, l.retry_cap, l.dead_letter, l.now, NULL
  FROM l;

-- name: claim_run
-- As claim_runs, for one new run that is known by its id: the same flush has just inserted it, or it was heard of. What is
-- heard need not be true: it must be of the lane that the worker serves. One that somebody has locked is passed over, and no
-- table is touched that an insert does not touch, so this waits for nothing. The run is left to claim_runs if another of its
-- lane and priority is due before it. It is only locked, and given as lease_run will write it in the same transaction: that
-- takes twice as long, for the indexes, and nobody need wait for it. Served by the primary keys and run_claim. Serves: a
-- worker whose claim goes along with the trigger that it waits for, or that was woken for this run.
-- only: postgres
-- takes: one (tenant int, id uuid, lane int, lease bigint)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint, deferred bool)
SELECT r.id, r.tenant_id, n.name, w.name, r.lane, r.key, r.priority, r.attempt + 1,
       coalesce(r.max_attempts, w.max_attempts), r.version + 1, r.revision, r.event_seq + 1,
       CASE WHEN r.timeout_at > t.now THEN least(t.now + coalesce($4, w.lease), r.timeout_at)
            ELSE t.now + coalesce($4, w.lease) END,
       r.run_at, r.status, r.has_mail, r.has_steps, r.watched, r.input, r.state, r.error, r.error_code, r.last_error,
       r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until, r.wait_count, r.last_worker, r.subject, r.reference,
       r.tags, r.partition, r.trace, r.actor, r.parent, r.root, r.timeout_at, r.created_at, coalesce(r.started_at, t.now),
       coalesce($4, w.lease), w.retry_base, w.retry_cap, w.dead_letter, t.now, r.deferred
  FROM (SELECT holdfast.now() AS now OFFSET 0) t, holdfast.run r, holdfast.workflow w, holdfast.tenant n
 WHERE r.tenant_id = $1 AND r.id = $2 AND r.lane = $3 AND r.status = 0 AND r.run_at <= t.now AND r.deleted_at IS NULL
   AND w.id = r.workflow_id AND NOT w.paused AND w.max_running IS NULL
   AND n.id = $1 AND NOT n.disabled
   AND NOT EXISTS (
        SELECT 1 FROM holdfast.run c
         WHERE c.lane = r.lane AND c.priority = r.priority AND c.run_at < r.run_at
           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL OFFSET 0)
   FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: is_on_disk
-- Whether the log is on disk up to a place that notify_early gave. Serves: a worker that was woken for a run while its trigger
-- waits for the disk.
-- only: postgres
-- takes: one (place bigint)
-- gives: (on_disk bool)
SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint >= $1;

-- name: lease_run
-- Writes what claim_run has given, with its line in the journal. Served by the primary key. Serves: claims, after claim_run.
-- only: postgres
-- takes: one (tenant int, id uuid, worker text, now bigint, lease_end bigint)
-- gives: nothing
WITH ok AS (
    UPDATE holdfast.run r
       SET status = 1, claimed_from = r.status, due_at = r.run_at, version = r.version + 1, attempt = r.attempt + 1,
           event_seq = r.event_seq + 1, leased_by = $3, started_at = coalesce(r.started_at, $4), updated_at = $4,
           run_at = $5
     WHERE r.tenant_id = $1 AND r.id = $2
    RETURNING r.id, r.event_seq, r.version, r.tenant_id, r.updated_at
)
INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 0, 'started', $3 FROM ok o;

-- name: lock_flow
-- Makes the claims from workflows with limits wait for each other, until the transaction ends. A statement of its own,
-- before the counting one: that one's snapshot must be younger than the lock. Served by the primary key of engine_lock. Serves:
-- workers, before claim_limited.
-- only: postgres
-- takes: one (heads text)
-- gives: nothing
SELECT k.place
  FROM (SELECT DISTINCT l.workflow_id % 1024 AS place
          FROM jsonb_array_elements($1::jsonb) AS h(head)
          JOIN holdfast.lane l ON l.id = (h.head->>0)::int
         ORDER BY 1 OFFSET 0) f
 CROSS JOIN LATERAL (
    SELECT x.place FROM holdfast.engine_lock x WHERE x.kind = 1 AND x.place = f.place AND x.seat = 0
       FOR NO KEY UPDATE) k;

-- name: claim_limited
-- As claim_runs, for workflows with limits: takes no more than there are free slots and starts left, of the workflow
-- and of the flow key, and pays for the starts. A run whose lease expired keeps its slot: taking it over needs a start
-- only. One that was deleted counts until its lease ends. Of the free slots a worker takes half, or as many as it has idle hands (hands). The caller has locked the flow:
-- what is counted here holds until its commit. Shares are of what is free, where that is less than most. A rate_next
-- further ahead than the burst is of another rate, or of a clock that was set back: it counts for nothing. Where all that is
-- due fits into every limit, which of it comes first need not be found out; and a key has no more running than its workflow, so
-- where that leaves twice as many slots as are wanted, its own are not counted. Served by run_claim and run_slot. Serves: workers.
-- takes: one (heads text, most int, worker text, lease bigint, suspect_attempts int, hands int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
head AS MATERIALIZED (
    SELECT h.turn, l.id AS lane, l.workflow_id, (h.head->>1)::int AS priority, (h.head->>2)::bigint AS floor,
           least((h.head->>3)::int, $2) AS share
      FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS h(head, turn)
      JOIN holdfast.lane l ON l.id = (h.head->>0)::int
), flow AS MATERIALIZED (
    SELECT w.id, n.name AS tenant, w.name, coalesce($4, w.lease) AS lease, w.max_attempts, w.retry_base, w.retry_cap,
           w.dead_letter, w.key_max_running, (w.key_rate_interval + w.key_rate_count - 1) / w.key_rate_count AS key_step,
           w.key_rate_burst, s.step, p.paid, coalesce((t.now + s.step * w.rate_burst - p.paid) / s.step, 2147483647) AS
           starts, c.running,
           CASE WHEN c.running IS NULL THEN 2147483647 ELSE least(u.free, greatest($6, (u.free + 1) / 2)) END AS slots
      FROM t
     CROSS JOIN (SELECT DISTINCT h.workflow_id FROM head h) d
      JOIN holdfast.workflow w ON w.id = d.workflow_id AND NOT w.paused
      JOIN holdfast.tenant n ON n.id = w.tenant_id AND NOT n.disabled
     CROSS JOIN LATERAL (SELECT (w.rate_interval + w.rate_count - 1) / w.rate_count AS step) s
     CROSS JOIN LATERAL (
        SELECT CASE WHEN w.rate_next > t.now + s.step * w.rate_burst + 1000000 THEN t.now
                    ELSE least(greatest(w.rate_next, t.now), t.now + s.step * w.rate_burst) END AS paid) p
     CROSS JOIN LATERAL (
        SELECT CASE WHEN w.max_running < 2147483647 THEN (
               SELECT count(*) FROM holdfast.run r WHERE r.slot = w.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > t.now))
               END AS running OFFSET 0) c
     CROSS JOIN LATERAL (SELECT greatest(w.max_running - c.running, 0) AS free) u
), place AS MATERIALIZED (
    SELECT l.id, f.key_step AS step, p.paid,
           coalesce((t.now + f.key_step * f.key_rate_burst - p.paid) / f.key_step, 2147483647) AS starts,
           CASE WHEN c.free IS NULL THEN 2147483647 ELSE least(c.free, greatest($6, (c.free + 1) / 2)) END AS slots
      FROM t
     CROSS JOIN (SELECT DISTINCT h.lane FROM head h) d
      JOIN holdfast.lane l ON l.id = d.lane
      JOIN flow f ON f.id = l.workflow_id
     CROSS JOIN LATERAL (
        SELECT CASE WHEN l.rate_next > t.now + f.key_step * f.key_rate_burst + 1000000 THEN t.now
                    ELSE least(greatest(l.rate_next, t.now), t.now + f.key_step * f.key_rate_burst) END AS paid) p
     CROSS JOIN LATERAL (
        SELECT CASE WHEN f.key_max_running - 2 * $2 >= f.running THEN NULL
                    WHEN f.key_max_running IS NOT NULL THEN greatest(f.key_max_running - (
               SELECT count(*) FROM holdfast.run r
                WHERE r.slot = f.id AND r.lane = l.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > t.now)), 0) END AS free OFFSET 0) c
), due AS MATERIALIZED (
    SELECT r.ctid, r.run_at, r.fresh, h.turn, h.lane, h.workflow_id, f.slots, f.starts, p.slots AS key_slots,
           p.starts AS key_starts
      FROM t
     CROSS JOIN head h
      JOIN flow f ON f.id = h.workflow_id
      JOIN place p ON p.id = h.lane
     CROSS JOIN LATERAL (
        SELECT (h.share * least($2, f.slots, f.starts)::bigint + $2 - 1) / $2 AS part) a
     CROSS JOIN LATERAL (
        SELECT o.ctid, o.run_at, 0 AS fresh
          FROM (SELECT c.ctid, c.run_at
                  FROM holdfast.run c
                 WHERE c.slot = h.workflow_id AND c.lane = h.lane AND c.run_at <= t.now
                   AND c.status = 1 AND c.deleted_at IS NULL AND c.priority = h.priority
                   AND (c.attempt <= $5 OR c.attempt >= coalesce(c.max_attempts, f.max_attempts)
                        OR c.timeout_at <= t.now)
                 ORDER BY c.run_at LIMIT least(h.share, f.starts, p.starts)
                   FOR NO KEY UPDATE SKIP LOCKED) o
         UNION ALL
        SELECT n.ctid, n.run_at, 1
          FROM (SELECT c.ctid, c.run_at
                  FROM holdfast.run c
                 WHERE c.lane = h.lane AND c.priority = h.priority AND c.run_at >= h.floor AND c.run_at <= t.now
                   AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
                   AND (c.status <> 1
                        OR (c.slot IS NULL
                            AND (c.attempt <= $5 OR c.attempt >= coalesce(c.max_attempts, f.max_attempts)
                                 OR c.timeout_at <= t.now)))
                 ORDER BY c.run_at LIMIT least(a.part, f.slots, f.starts, p.slots, p.starts)
                   FOR NO KEY UPDATE SKIP LOCKED) n) r
), fits AS MATERIALIZED (
    SELECT count(*) <= least($2, min(least(d.slots, d.starts, d.key_slots, d.key_starts))) AS whole FROM due d
), key_slotted AS (
    SELECT d.*, sum(d.fresh) OVER (PARTITION BY d.lane ORDER BY d.turn, d.fresh, d.run_at, d.ctid) AS place
      FROM due d WHERE NOT (SELECT f.whole FROM fits f)
), key_started AS (
    SELECT d.*, row_number() OVER (PARTITION BY d.lane ORDER BY d.turn, d.fresh, d.run_at, d.ctid) AS number
      FROM key_slotted d WHERE d.fresh = 0 OR d.place <= d.key_slots
), slotted AS (
    SELECT d.ctid, d.fresh, d.turn, d.run_at, d.workflow_id, d.slots, d.starts,
           sum(d.fresh) OVER (PARTITION BY d.workflow_id ORDER BY d.turn, d.fresh, d.run_at, d.ctid) AS place
      FROM key_started d WHERE d.number <= d.key_starts
), started AS (
    SELECT d.ctid, d.fresh, d.turn, d.run_at, d.workflow_id, d.starts,
           row_number() OVER (PARTITION BY d.workflow_id ORDER BY d.turn, d.fresh, d.run_at, d.ctid) AS number
      FROM slotted d WHERE d.fresh = 0 OR d.place <= d.slots
), taken AS MATERIALIZED (
    SELECT d.ctid, d.workflow_id FROM due d WHERE (SELECT f.whole FROM fits f)
     UNION ALL
    (SELECT s.ctid, s.workflow_id FROM started s WHERE s.number <= s.starts ORDER BY s.turn, s.fresh, s.run_at LIMIT $2)
), ok AS (
    UPDATE holdfast.run r
       SET status = 1, claimed_from = r.status, due_at = CASE WHEN r.status = 1 THEN r.due_at ELSE r.run_at END, version = r.version + 1, attempt = r.attempt + 1,
           event_seq = r.event_seq + 1, leased_by = $3, slot = r.workflow_id, started_at = coalesce(r.started_at, d.now), updated_at = d.now,
           run_at = CASE WHEN r.timeout_at > d.now THEN least(d.now + d.lease, r.timeout_at) ELSE d.now + d.lease END
      FROM (SELECT k.ctid, f.tenant, f.name, f.lease, f.max_attempts, f.retry_base, f.retry_cap, f.dead_letter, t.now
              FROM taken k JOIN flow f ON f.id = k.workflow_id CROSS JOIN t) d
     WHERE r.ctid = d.ctid
    RETURNING r.id, r.tenant_id, r.workflow_id, d.tenant, d.name, r.lane, r.key, r.priority, r.attempt,
              coalesce(r.max_attempts, d.max_attempts) AS max_attempts, r.version, r.revision, r.event_seq, r.run_at,
              r.due_at, r.claimed_from, r.has_mail, r.has_steps, r.watched, r.input, r.state, r.error, r.error_code,
              r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until, r.wait_count,
              r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent, r.root,
              r.timeout_at, r.created_at, r.started_at, d.lease, d.retry_base, d.retry_cap,
              d.dead_letter, r.updated_at
), charge AS (
    UPDATE holdfast.workflow w SET rate_next = f.paid + f.step * o.starts
      FROM (SELECT k.workflow_id, count(*) AS starts FROM ok k GROUP BY k.workflow_id) o
      JOIN flow f ON f.id = o.workflow_id AND f.step IS NOT NULL
     WHERE w.id = f.id
), charge_keys AS (
    UPDATE holdfast.lane l SET rate_next = p.paid + p.step * o.starts
      FROM (SELECT k.lane, count(*) AS starts FROM ok k GROUP BY k.lane) o
      JOIN place p ON p.id = o.lane AND p.step IS NOT NULL
     WHERE l.id = p.id
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 0, 'started', $3 FROM ok o
)
SELECT o.id, o.tenant_id, o.tenant, o.name, o.lane, o.key, o.priority, o.attempt, o.max_attempts, o.version, o.revision,
       o.event_seq, o.run_at, o.due_at, o.claimed_from, o.has_mail, o.has_steps, o.watched, o.input, o.state, o.error,
       o.error_code, o.last_error, o.current_step, o.waiting_kind, o.waiting_token, o.waiting_until, o.wait_count,
       o.last_worker, o.subject, o.reference, o.tags, o.partition, o.trace, o.actor, o.parent, o.root, o.timeout_at,
       o.created_at, o.started_at, o.lease, o.retry_base, o.retry_cap, o.dead_letter, o.updated_at
  FROM ok o;

-- name: claim_limited_head
-- As claim_limited, from one head, in the form of claim_head: what its runs share comes once, in a last row without an id. Runs
-- whose lease expired come first, since they have a slot; others get what starts these leave, as far as there are slots. Served
-- by the primary keys of lane, workflow and tenant, run_claim and run_slot. Serves: workers, where one lane and priority of
-- those with limits may have what they want.
-- only: postgres
-- takes: one (lane int, priority int, floor bigint, most int, worker text, lease bigint, suspect_attempts int, hands int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint)
WITH f AS MATERIALIZED (
    SELECT i.id, w.id AS workflow_id, n.name AS tenant, w.name, coalesce($6, w.lease) AS lease, w.max_attempts, w.retry_base,
           w.retry_cap, w.dead_letter, t.now, w.max_running, w.key_max_running, s.step, s.key_step, p.paid, k.paid AS key_paid,
           least($4, coalesce((t.now + s.step * w.rate_burst - p.paid) / s.step, 2147483647),
                 coalesce((t.now + s.key_step * w.key_rate_burst - k.paid) / s.key_step, 2147483647)) AS starts,
           CASE WHEN w.max_running < 2147483647 THEN (
                SELECT count(*) FROM holdfast.run r WHERE r.slot = w.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > t.now)) END AS running
      FROM (SELECT holdfast.now() AS now OFFSET 0) t
     CROSS JOIN holdfast.lane i
      JOIN holdfast.workflow w ON w.id = i.workflow_id AND NOT w.paused
      JOIN holdfast.tenant n ON n.id = i.tenant_id AND NOT n.disabled
     CROSS JOIN LATERAL (
        SELECT (w.rate_interval + w.rate_count - 1) / w.rate_count AS step,
               (w.key_rate_interval + w.key_rate_count - 1) / w.key_rate_count AS key_step) s
     CROSS JOIN LATERAL (
        SELECT CASE WHEN w.rate_next > t.now + s.step * w.rate_burst + 1000000 THEN t.now
                    ELSE least(greatest(w.rate_next, t.now), t.now + s.step * w.rate_burst) END AS paid) p
     CROSS JOIN LATERAL (
        SELECT CASE WHEN i.rate_next > t.now + s.key_step * w.key_rate_burst + 1000000 THEN t.now
                    ELSE least(greatest(i.rate_next, t.now), t.now + s.key_step * w.key_rate_burst) END AS paid) k
     WHERE i.id = $1
), counted AS MATERIALIZED (
    SELECT greatest(f.max_running - f.running, 0) AS free, f.running IS NULL AS unlimited,
           CASE WHEN f.key_max_running - 2 * $4 >= f.running THEN NULL
                WHEN f.key_max_running IS NOT NULL THEN greatest(f.key_max_running - (
                     SELECT count(*) FROM holdfast.run r WHERE r.slot = f.workflow_id AND r.lane = f.id AND r.status = 1
                        AND (r.deleted_at IS NULL OR r.run_at > f.now)), 0) END AS key_free
      FROM f
), slots AS MATERIALIZED (
    SELECT least(CASE WHEN c.unlimited THEN 2147483647 ELSE least(c.free, greatest($8, (c.free + 1) / 2)) END,
                 CASE WHEN c.key_free IS NULL THEN 2147483647
                      ELSE least(c.key_free, greatest($8, (c.key_free + 1) / 2)) END) AS free
      FROM counted c
), expired AS MATERIALIZED (
    SELECT r.ctid
      FROM f
     CROSS JOIN LATERAL (
        SELECT c.ctid
          FROM holdfast.run c
         WHERE c.slot = f.workflow_id AND c.lane = f.id AND c.run_at <= f.now
           AND c.status = 1 AND c.deleted_at IS NULL AND c.priority = $2
           AND (c.attempt <= $7 OR c.attempt >= coalesce(c.max_attempts, f.max_attempts) OR c.timeout_at <= f.now)
         ORDER BY c.run_at LIMIT f.starts
           FOR NO KEY UPDATE SKIP LOCKED) r
), fresh AS MATERIALIZED (
    SELECT r.ctid
      FROM f
     CROSS JOIN slots s
     CROSS JOIN (SELECT count(*) AS starts FROM expired) e
     CROSS JOIN LATERAL (
        SELECT c.ctid
          FROM holdfast.run c
         WHERE c.lane = f.id AND c.priority = $2 AND c.run_at >= $3 AND c.run_at <= f.now
           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
           AND (c.status <> 1
                OR (c.slot IS NULL
                    AND (c.attempt <= $7 OR c.attempt >= coalesce(c.max_attempts, f.max_attempts)
                         OR c.timeout_at <= f.now)))
         ORDER BY c.run_at LIMIT least(f.starts - e.starts, s.free)
           FOR NO KEY UPDATE SKIP LOCKED) r
), ok AS (
    UPDATE holdfast.run r
       SET status = 1, claimed_from = r.status, due_at = CASE WHEN r.status = 1 THEN r.due_at ELSE r.run_at END, version = r.version + 1, attempt = r.attempt + 1,
           event_seq = r.event_seq + 1, leased_by = $5, slot = r.workflow_id, started_at = coalesce(r.started_at, f.now),
           updated_at = f.now,
           run_at = CASE WHEN r.timeout_at > f.now THEN least(f.now + f.lease, r.timeout_at) ELSE f.now + f.lease END
      FROM f
     WHERE r.ctid = ANY (ARRAY(SELECT e.ctid FROM expired e UNION ALL SELECT n.ctid FROM fresh n))
    RETURNING r.id, r.tenant_id, r.event_seq, r.version, r.key, r.attempt, r.max_attempts, r.revision, r.run_at,
              r.due_at, r.claimed_from, r.has_mail, r.has_steps, r.watched, r.input, r.state, r.error, r.error_code,
              r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until, r.wait_count,
              r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent, r.root,
              r.timeout_at, r.created_at, r.started_at
), started AS MATERIALIZED (
    SELECT count(*) AS runs FROM ok
), charge AS (
    UPDATE holdfast.workflow w SET rate_next = f.paid + f.step * s.runs
      FROM f CROSS JOIN started s
     WHERE w.id = f.workflow_id AND f.step IS NOT NULL AND s.runs > 0
), charge_key AS (
    UPDATE holdfast.lane i SET rate_next = f.key_paid + f.key_step * s.runs
      FROM f CROSS JOIN started s
     WHERE i.id = f.id AND f.key_step IS NOT NULL AND s.runs > 0
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, (SELECT f.now FROM f), 0, 'started', $5 FROM ok o
)
SELECT o.id, o.tenant_id, NULL::text, NULL::text, NULL::int, o.key, NULL::int, o.attempt, o.max_attempts, o.version,
       o.revision, NULL::bigint, o.run_at, o.due_at, o.claimed_from, o.has_mail, o.has_steps, o.watched, o.input, o.state,
       o.error, o.error_code, o.last_error, o.current_step, o.waiting_kind, o.waiting_token, o.waiting_until, o.wait_count,
       o.last_worker, o.subject, o.reference, o.tags, o.partition, o.trace, o.actor, o.parent, o.root, o.timeout_at,
       o.created_at, o.started_at, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text, NULL::bigint
  FROM ok o
 UNION ALL
SELECT NULL, NULL, f.tenant, f.name, f.id, NULL, $2, NULL, f.max_attempts, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, f.lease, f.retry_base, f.retry_cap, f.dead_letter, f.now
  FROM f;

-- name: flow_state
-- What keeps the lanes of a claim from giving more: free slots, the end of the first lease that holds one where there
-- is none, when the next start is allowed, and what the workflow has free. Served by run_slot. Serves: claims that got
-- less than they would have taken, for how long to sleep.
-- takes: one (heads text)
-- gives: (lane int, slots int, lease_end bigint, start_at bigint, free int, now bigint)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
lanes AS MATERIALIZED (
    SELECT DISTINCT l.id, l.workflow_id, l.rate_next
      FROM jsonb_array_elements($1::jsonb) AS h(head)
      JOIN holdfast.lane l ON l.id = (h.head->>0)::int
), flow AS MATERIALIZED (
    SELECT w.id, w.key_max_running, (w.key_rate_interval + w.key_rate_count - 1) / w.key_rate_count AS key_step,
           w.key_rate_burst, coalesce(w.max_running - c.running, 2147483647) AS slots, c.lease_end,
           p.paid - s.step * (w.rate_burst - 1) AS start_at,
           coalesce((t.now + s.step * w.rate_burst - p.paid) / s.step, 2147483647) AS starts
      FROM t
     CROSS JOIN (SELECT DISTINCT k.workflow_id FROM lanes k) d
      JOIN holdfast.workflow w ON w.id = d.workflow_id
     CROSS JOIN LATERAL (SELECT (w.rate_interval + w.rate_count - 1) / w.rate_count AS step) s
     CROSS JOIN LATERAL (
        SELECT CASE WHEN w.rate_next > t.now + s.step * w.rate_burst + 1000000 THEN t.now
                    ELSE least(greatest(w.rate_next, t.now), t.now + s.step * w.rate_burst) END AS paid) p
     CROSS JOIN LATERAL (
        SELECT count(*)::int AS running, min(r.run_at) AS lease_end FROM holdfast.run r
         WHERE r.slot = w.id AND w.max_running < 2147483647 AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > t.now)) c
)
SELECT l.id, least(f.slots, coalesce(f.key_max_running - c.running, 2147483647)),
       CASE WHEN f.slots <= 0 THEN f.lease_end ELSE c.lease_end END,
       greatest(coalesce(f.start_at, 0), coalesce(p.paid - f.key_step * (f.key_rate_burst - 1), 0)),
       least(greatest(f.slots, 0), f.starts, 2147483647)::int, t.now
  FROM t CROSS JOIN lanes l
  JOIN flow f ON f.id = l.workflow_id
 CROSS JOIN LATERAL (
    SELECT CASE WHEN l.rate_next > t.now + f.key_step * f.key_rate_burst + 1000000 THEN t.now
                ELSE least(greatest(l.rate_next, t.now), t.now + f.key_step * f.key_rate_burst) END AS paid) p
 CROSS JOIN LATERAL (
    SELECT count(*)::int AS running, min(r.run_at) AS lease_end FROM holdfast.run r
     WHERE r.slot = f.id AND r.lane = l.id AND f.key_max_running IS NOT NULL AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > t.now)) c;

-- piece: lower_priorities
-- How a walk `head` over lanes goes on from a priority to the next lower one that has unfinished runs, by skipping through
-- run_claim.
UNION ALL
SELECT p.lane, h.priority, h.run_at
  FROM head p
 CROSS JOIN LATERAL (
    SELECT r.priority, r.run_at FROM holdfast.run r
     WHERE r.lane = p.lane AND r.priority < p.priority
       AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
     ORDER BY r.priority DESC, r.run_at LIMIT 1) h

-- piece: heads
-- The lanes of workflow `w` and their priorities that have unfinished runs, with the earliest time of each.
WITH RECURSIVE head AS (
    SELECT l.id AS lane, h.priority, h.run_at
      FROM holdfast.lane l
     CROSS JOIN LATERAL (
        SELECT r.priority, r.run_at FROM holdfast.run r
         WHERE r.lane = l.id AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.priority DESC, r.run_at LIMIT 1) h
     WHERE l.workflow_id = w.id
    -- include: lower_priorities
)

-- name: find_heads
-- For each lane its priorities that have unfinished runs, with the earliest run_at of each, by skipping through
-- run_claim. Serves: workers looking for work and for how long to sleep.
-- takes: one (lanes text)
-- gives: (lane int, priority int, run_at bigint, now bigint)
WITH RECURSIVE head AS (
    SELECT (l.lane)::int AS lane, h.priority, h.run_at
      FROM jsonb_array_elements_text($1::jsonb) AS l(lane)
     CROSS JOIN LATERAL (
        SELECT r.priority, r.run_at FROM holdfast.run r
         WHERE r.lane = l.lane::int AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.priority DESC, r.run_at LIMIT 1) h
    -- include: lower_priorities
)
SELECT h.lane, h.priority, h.run_at, holdfast.now() FROM head h;

-- name: find_misplaced
-- Whether leases have ended since a time whose runs are not in the place that they had before they were claimed. Served by
-- run_leased. Serves: claims where runs have been due for a while.
-- takes: one (since bigint)
-- gives: (found bool, now bigint)
SELECT f.found IS NOT NULL, t.now
  FROM (SELECT holdfast.now() AS now OFFSET 0) t
  LEFT JOIN LATERAL (
    SELECT true AS found FROM holdfast.run r
     WHERE r.status + 0 = 1 AND r.run_at > least($1, t.now - 60000000) AND r.run_at <= t.now AND r.due_at < r.run_at
       AND r.deleted_at IS NULL
     ORDER BY r.run_at LIMIT 1) f ON true;

-- name: restore_places
-- Puts those runs back, so that the next claim meets them there. They are still leased: who holds one after all may prolong its
-- lease. Served by run_leased. Serves: claims, after find_misplaced.
-- takes: one (since bigint)
-- gives: nothing
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
expired AS MATERIALIZED (
    SELECT e.ctid
      FROM t
     CROSS JOIN LATERAL (
        SELECT r.ctid FROM holdfast.run r
         WHERE r.status + 0 = 1 AND r.run_at > least($1, t.now - 60000000) AND r.run_at <= t.now AND r.due_at < r.run_at
           AND r.deleted_at IS NULL
         ORDER BY r.run_at LIMIT 10000
           FOR NO KEY UPDATE SKIP LOCKED) e
)
UPDATE holdfast.run r SET run_at = r.due_at FROM expired e WHERE r.ctid = e.ctid;

-- name: next_due
-- The earliest run_at after now per head, which is when a sleeper must wake. Served by run_claim. Serves: workers
-- going to sleep.
-- takes: one (heads text)
-- gives: (run_at bigint, now bigint)
SELECT min(r.run_at), holdfast.now()
  FROM jsonb_array_elements($1::jsonb) AS h(head)
 CROSS JOIN LATERAL (
    SELECT c.run_at FROM holdfast.run c
     WHERE c.lane = (h.head->>0)::int AND c.priority = (h.head->>1)::int AND c.run_at > holdfast.now()
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
     ORDER BY c.run_at LIMIT 1) r;

-- name: adopt_runs
-- Runs that a worker holds according to the store, within one head: claims whose answer was lost. Served by
-- run_claim. Serves: workers after a reconnect.
-- takes: one (heads text, worker text)
-- gives: (id uuid, tenant_id int, version bigint)
SELECT r.id, r.tenant_id, r.version
  FROM jsonb_array_elements($1::jsonb) AS h(head)
 CROSS JOIN LATERAL (
    SELECT c.id, c.tenant_id, c.version FROM holdfast.run c
     WHERE c.lane = (h.head->>0)::int AND c.priority = (h.head->>1)::int AND c.leased_by = $2 AND c.status = 1
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
       AND c.run_at <= holdfast.now() + 86400000000
    OFFSET 0) r;

-- name: load_mail
-- The visible mail of claimed runs, in order. A child's end is always visible, also when the clock was set back: its
-- parent was woken for it. Ends that share a row count as many as they are. Run after the claim, never inside it: the
-- claim's snapshot is older than the lock. Served by signal_mailbox. Serves: claims.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, id text, type text, name text, payload text, token text, sender text, position bigint, visible_at
--   bigint, occurred_at bigint, attempts int, ends int)
SELECT s.run_id, s.id, s.type, s.name, s.payload, s.token, s.sender, s.position, s.visible_at, s.occurred_at, s.attempts,
       s.ends
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 CROSS JOIN LATERAL (
    SELECT m.run_id, m.id, m.type, m.name, m.payload, m.token, m.sender, m.position, m.visible_at, m.occurred_at,
           m.attempts, m.ends,
           sum(coalesce(m.ends, 1)) OVER (ORDER BY m.visible_at, m.position ROWS UNBOUNDED PRECEDING) AS so_far
      FROM holdfast.signal m
     WHERE m.run_id = n.run AND m.tenant_id = n.tenant AND m.consumed_at IS NULL
       AND (m.type = 'child' OR m.visible_at <= holdfast.now())
     ORDER BY m.visible_at, m.position LIMIT 100000) s
 WHERE s.so_far - coalesce(s.ends, 1) < 100000;

-- name: load_steps
-- The recorded steps of claimed runs and where they were tried again (without a step), by sequence. Served by the primary key of event. Serves: claims, steps.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, seq bigint, position bigint, version bigint, name text, actor text, step text, data text, at
--   bigint)
SELECT e.run_id, e.seq, e.position, e.version, e.name, e.actor, e.step, e.data, e.at
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 CROSS JOIN LATERAL (
    SELECT v.run_id, v.seq, v.position, v.version, v.name, v.actor, v.step, v.data, v.at
      FROM holdfast.event v
     WHERE v.run_id = n.run AND v.tenant_id = n.tenant AND (v.kind = 2 OR (v.kind = 0 AND v.name = 'retried'))
     ORDER BY v.seq LIMIT 100000) e;
