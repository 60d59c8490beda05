-- Views for people: names instead of numbers, ids as text, times as ISO 8601 in UTC, the same names as on
-- PostgreSQL. They use
-- nothing but SQLite's own functions, so that any program can read them.

CREATE VIEW runs AS
SELECT lower(substr(hex(r.id), 1, 8) || '-' || substr(hex(r.id), 9, 4) || '-' || substr(hex(r.id), 13, 4) || '-'
             || substr(hex(r.id), 17, 4) || '-' || substr(hex(r.id), 21)) AS id,
       t.name AS tenant, w.name AS workflow, r.key,
       CASE r.status WHEN 0 THEN 'pending' WHEN 1 THEN 'leased' WHEN 2 THEN 'waiting' WHEN 3 THEN 'paused'
            WHEN 4 THEN 'succeeded' WHEN 5 THEN 'failed' WHEN 6 THEN 'cancelled' END AS status,
       r.priority, r.attempt, coalesce(r.max_attempts, w.max_attempts) AS max_attempts, r.version, r.revision,
       CASE WHEN r.status = 1 THEN
            strftime('%Y-%m-%dT%H:%M:%S', r.due_at / 1000000, 'unixepoch') || printf('.%06dZ', r.due_at % 1000000)
            ELSE strftime('%Y-%m-%dT%H:%M:%S', r.run_at / 1000000, 'unixepoch')
                || printf('.%06dZ', r.run_at % 1000000) END AS run_at,
       r.leased_by,
       CASE WHEN r.status = 1 THEN
            strftime('%Y-%m-%dT%H:%M:%S', r.run_at / 1000000, 'unixepoch')
                || printf('.%06dZ', r.run_at % 1000000) END AS lease_until,
       r.pause_requested, r.input, r.state, r.result, r.error, r.error_code, r.last_error, r.current_step,
       r.waiting_kind, r.waiting_token,
       strftime('%Y-%m-%dT%H:%M:%S', r.waiting_until / 1000000, 'unixepoch')
           || printf('.%06dZ', r.waiting_until % 1000000) AS waiting_until,
       r.wait_count, r.last_worker, r.last_signal, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor,
       CASE WHEN r.parent IS NOT NULL THEN
            lower(substr(hex(r.parent), 1, 8) || '-' || substr(hex(r.parent), 9, 4)
            || '-' || substr(hex(r.parent), 13, 4) || '-'
             || substr(hex(r.parent), 17, 4) || '-' || substr(hex(r.parent), 21)) END AS parent,
       CASE WHEN r.root IS NOT NULL THEN
            lower(substr(hex(r.root), 1, 8) || '-' || substr(hex(r.root), 9, 4)
            || '-' || substr(hex(r.root), 13, 4) || '-'
             || substr(hex(r.root), 17, 4) || '-' || substr(hex(r.root), 21)) END AS root,
       strftime('%Y-%m-%dT%H:%M:%S', r.timeout_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.timeout_at % 1000000) AS timeout_at,
       strftime('%Y-%m-%dT%H:%M:%S', r.created_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.created_at % 1000000) AS created_at,
       strftime('%Y-%m-%dT%H:%M:%S', r.started_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.started_at % 1000000) AS started_at,
       strftime('%Y-%m-%dT%H:%M:%S', r.updated_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.updated_at % 1000000) AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%S', r.paused_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.paused_at % 1000000) AS paused_at,
       strftime('%Y-%m-%dT%H:%M:%S', r.finished_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.finished_at % 1000000) AS finished_at,
       strftime('%Y-%m-%dT%H:%M:%S', r.deleted_at / 1000000, 'unixepoch')
           || printf('.%06dZ', r.deleted_at % 1000000) AS deleted_at,
       r.delete_reason
  FROM run r
  JOIN workflow w ON w.id = r.workflow_id
  JOIN tenant t ON t.id = r.tenant_id;

CREATE VIEW events AS
SELECT lower(substr(hex(e.run_id), 1, 8) || '-' || substr(hex(e.run_id), 9, 4) || '-' || substr(hex(e.run_id), 13, 4) || '-'
             || substr(hex(e.run_id), 17, 4) || '-' || substr(hex(e.run_id), 21)) AS run,
       e.seq,
       strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch') || printf('.%06dZ', e.at % 1000000) AS at,
       CASE e.kind WHEN 0 THEN 'lifecycle' WHEN 1 THEN 'domain' WHEN 2 THEN 'step'
            WHEN 3 THEN 'task' WHEN 4 THEN 'signal' END AS kind,
       e.name, e.actor, e.step, e.data, e.version, e.position, t.name AS tenant
  FROM event e
  JOIN tenant t ON t.id = e.tenant_id;

CREATE VIEW steps AS
SELECT lower(substr(hex(e.run_id), 1, 8) || '-' || substr(hex(e.run_id), 9, 4) || '-' || substr(hex(e.run_id), 13, 4) || '-'
             || substr(hex(e.run_id), 17, 4) || '-' || substr(hex(e.run_id), 21)) AS run,
       e.seq, e.step, e.name AS status,
       strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch') || printf('.%06dZ', e.at % 1000000) AS at,
       e.actor AS worker, e.data, t.name AS tenant
  FROM event e
  JOIN tenant t ON t.id = e.tenant_id
 WHERE e.kind = 2;

CREATE VIEW signals AS
SELECT lower(substr(hex(s.run_id), 1, 8) || '-' || substr(hex(s.run_id), 9, 4) || '-' || substr(hex(s.run_id), 13, 4) || '-'
             || substr(hex(s.run_id), 17, 4) || '-' || substr(hex(s.run_id), 21)) AS run,
       s.id, s.position, s.type, s.name, s.payload, s.token, s.timer_key, s.sender, s.attempts,
       strftime('%Y-%m-%dT%H:%M:%S', s.occurred_at / 1000000, 'unixepoch')
           || printf('.%06dZ', s.occurred_at % 1000000) AS occurred_at,
       strftime('%Y-%m-%dT%H:%M:%S', s.visible_at / 1000000, 'unixepoch')
           || printf('.%06dZ', s.visible_at % 1000000) AS visible_at,
       strftime('%Y-%m-%dT%H:%M:%S', s.consumed_at / 1000000, 'unixepoch')
           || printf('.%06dZ', s.consumed_at % 1000000) AS consumed_at,
       t.name AS tenant
  FROM signal s
  JOIN tenant t ON t.id = s.tenant_id;

CREATE VIEW workflows AS
SELECT t.name AS tenant, w.name, w.paused, w.max_attempts,
       w.retry_base / 1000000.0 AS retry_base_seconds,
       w.retry_cap / 1000000.0 AS retry_cap_seconds,
       w.lease / 1000000.0 AS lease_seconds,
       w.timeout / 1000000.0 AS timeout_seconds,
       w.retention / 1000000.0 AS retention_seconds,
       w.dead_letter, w.definition,
       strftime('%Y-%m-%dT%H:%M:%S', w.created_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.created_at % 1000000) AS created_at,
       strftime('%Y-%m-%dT%H:%M:%S', w.updated_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.updated_at % 1000000) AS updated_at,
       (SELECT count(*) FROM run r
         WHERE r.lane = w.lane AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2)
           AND r.run_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) AS due,
       (SELECT count(*) FROM run r
         WHERE r.lane = w.lane AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2)
           AND r.run_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) AS delayed,
       (SELECT count(*) FROM run r
         WHERE r.lane = w.lane AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status = 1) AS leased,
       (SELECT count(*) FROM run r WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL) AS failed
  FROM workflow w
  JOIN tenant t ON t.id = w.tenant_id;

CREATE VIEW workers AS
SELECT w.name, w.host, w.pid, w.program, w.tenants, w.serves, w.threads, w.running,
       w.expires_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) AS live,
       w.idle, w.draining,
       strftime('%Y-%m-%dT%H:%M:%S', w.started_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.started_at % 1000000) AS started_at,
       strftime('%Y-%m-%dT%H:%M:%S', w.seen_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.seen_at % 1000000) AS seen_at,
       strftime('%Y-%m-%dT%H:%M:%S', w.expires_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.expires_at % 1000000) AS expires_at
  FROM worker w;
