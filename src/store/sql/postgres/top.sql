-- name: journal_end
-- The place of the newest line of all journals, or a later one that is being written. Serves: top.
-- takes: nothing
-- gives: (position bigint)
SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM holdfast.event_position s;

-- name: allow_bitmaps
-- The index of positions can be read by bitmap scans alone, which the engine's sessions are forbidden: allows them until
-- the transaction ends. Serves: top, before count_lines.
-- only: postgres
-- takes: nothing
-- gives: (value text)
SELECT set_config('enable_bitmapscan', 'on', true);

-- name: count_lines
-- What happened to a tenant's runs between two places in the journal, by workflow. Served by event_by_position. Serves:
-- top.
-- takes: one (tenant int, after bigint, upto bigint)
-- gives: (workflow text, name text, count bigint)
SELECT w.name, e.name, count(*)
  FROM holdfast.event e
 CROSS JOIN LATERAL (
    SELECT x.workflow_id FROM holdfast.run x WHERE x.tenant_id = e.tenant_id AND x.id = e.run_id OFFSET 0) r
 CROSS JOIN LATERAL (SELECT x.name FROM holdfast.workflow x WHERE x.id = r.workflow_id OFFSET 0) w
 WHERE e.position > $2 AND e.position <= $3 AND e.tenant_id = $1 AND e.kind = 0
   AND e.name IN ('created', 'started', 'succeeded', 'failed', 'retried', 'cancelled')
 GROUP BY w.name, e.name;
