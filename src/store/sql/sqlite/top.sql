-- name: journal_end
-- The place of the newest line of all journals, or a later one that is being written. Serves: top.
-- takes: nothing
-- gives: (position bigint)
SELECT coalesce(max(position), 0) FROM event;

-- name: count_lines
-- What happened to a tenant's runs between two places in the journal, by workflow. Served by the primary key of event.
-- Serves: top.
-- takes: one (tenant int, after bigint, upto bigint)
-- gives: (workflow text, name text, count bigint)
SELECT w.name, e.name, count(*)
  FROM event e
 CROSS JOIN run r ON r.tenant_id = e.tenant_id AND r.id = e.run_id
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE e.position > ?2 AND e.position <= ?3 AND e.tenant_id = ?1 AND e.kind = 0
   AND e.name IN ('created', 'started', 'succeeded', 'failed', 'retried', 'cancelled')
 GROUP BY w.name, e.name;
