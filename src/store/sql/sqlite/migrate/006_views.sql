-- The view of runs, with their flow key and their debounce key.

DROP VIEW runs;
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
       r.delete_reason, l.flow_key, r.debounce_key
  FROM run r
  JOIN workflow w ON w.id = r.workflow_id
  JOIN tenant t ON t.id = r.tenant_id
  JOIN lane l ON l.id = r.lane;
