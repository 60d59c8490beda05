-- name: insert_runs
-- New runs with their first journal line. One that is not given back was refused: explain_refused tells why. A
-- disabled tenant gets new runs only for what runs already (always).
-- Conflicts with the key or the id do nothing, so sending a batch again does no harm. Served by the unique indexes of
-- workflow and run. A workflow that does not exist or may not be used is null, which a required column ignores; so is the
-- id of a journal line whose run was not inserted. Serves: trigger, children, starts.
-- takes: rows (tenant int, id uuid, workflow text, key text, status int, priority int, run_at bigint, delay bigint,
--   timeout_at bigint, timeout bigint, max_attempts int, input text, state text, subject text, reference text,
--   tags text, partition text, trace text, actor text, parent uuid, root uuid, waiting_kind text, waiting_token text,
--   waiting_until bigint, wait_count int, has_mail bool, events int, no_wake bool, always bool,
--   wake_on_failure bool)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
INSERT OR IGNORE INTO run (tenant_id, id, workflow_id, lane, key, status, priority, run_at, timeout_at,
    max_attempts, input, state, subject, reference, tags, partition, trace, actor, parent, root, waiting_kind,
    waiting_token, waiting_until, wait_count, has_mail, event_seq, created_at, updated_at, definition_hash,
    wake_on_failure)
VALUES (?1, ?2, (SELECT w.id FROM workflow w WHERE w.tenant_id = ?1 AND w.name = ?3
                     AND (?29 OR NOT EXISTS (SELECT 1 FROM tenant t WHERE t.id = ?1 AND t.disabled))),
    (SELECT w.lane FROM workflow w WHERE w.tenant_id = ?1 AND w.name = ?3), ?4, ?5, ?6,
    nullif(min(
        CASE WHEN ?28 THEN coalesce(?7, 9223372036854775807) ELSE coalesce(?7, holdfast_now() + ?8) END,
        coalesce(?9, holdfast_now() + ?10, holdfast_now() + (
            SELECT w.timeout FROM workflow w WHERE w.tenant_id = ?1 AND w.name = ?3), 9223372036854775807)),
        9223372036854775807),
    coalesce(?9, holdfast_now() + ?10, holdfast_now() + (
        SELECT w.timeout FROM workflow w WHERE w.tenant_id = ?1 AND w.name = ?3)),
    ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, 1 + ?27, holdfast_now(),
    holdfast_now(), (SELECT w.definition_hash FROM workflow w WHERE w.tenant_id = ?1 AND w.name = ?3), ?30);
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
VALUES (CASE WHEN changes() = 1 THEN ?2 END, 1, 1, ?1, holdfast_now(), 0, 'created', ?19);
SELECT id, lane, run_at, created_at FROM run WHERE changes() = 1 AND tenant_id = ?1 AND id = ?2;

-- name: insert_tags
-- The tags of new runs, for the filter. Those whose run was refused are left out. Serves: trigger.
-- takes: rows (tenant int, tag text, run uuid)
-- gives: nothing
INSERT INTO run_tag (tenant_id, tag, run_id)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?3)
ON CONFLICT DO NOTHING;

-- name: explain_refused
-- Why runs were not inserted: no such workflow, the key is taken, the tenant is disabled, or the id is there already
-- (sent again).
-- Serves: trigger, after insert_runs.
-- takes: rows (tenant int, id uuid, workflow text, key text)
-- gives: (id uuid, workflow_id int, same_id bool, existing uuid, existing_input text, disabled bool)
SELECT ?2, w.id, s.id IS NOT NULL, k.id, k.input, coalesce(t.disabled, 0)
  FROM (SELECT 1)
  LEFT JOIN tenant t ON t.id = ?1
  LEFT JOIN workflow w ON w.tenant_id = ?1 AND w.name = ?3
  LEFT JOIN run s ON s.tenant_id = ?1 AND s.id = ?2
  LEFT JOIN run k ON k.workflow_id = w.id AND k.key = ?4 AND k.key IS NOT NULL AND k.deleted_at IS NULL;

-- name: live_patterns
-- What live workers serve, to tell a trigger that nobody could run it. The worker table is small. Serves: trigger.
-- takes: nothing
-- gives: (tenants text, serves text)
SELECT DISTINCT tenants, serves FROM worker WHERE expires_at > holdfast_now() AND NOT draining;
