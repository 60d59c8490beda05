-- Questions to people that can be listed and answered. A run that has asked is marked, so that its end cancels what is
-- still open. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
DROP INDEX CONCURRENTLY IF EXISTS holdfast.task_newest;
;;
CREATE INDEX CONCURRENTLY task_newest ON holdfast.task (tenant_id, id) WHERE status <= 1;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.task_due;
;;
CREATE INDEX CONCURRENTLY task_due ON holdfast.task (tenant_id, coalesce(due_at, 9223372036854775807), id)
    WHERE status <= 1;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.task_assigned;
;;
CREATE INDEX CONCURRENTLY task_assigned ON holdfast.task (tenant_id, assignee, id) WHERE status <= 1;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.task_assigned_due;
;;
CREATE INDEX CONCURRENTLY task_assigned_due ON holdfast.task (tenant_id, assignee, coalesce(due_at, 9223372036854775807), id)
    WHERE status <= 1;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.task_open;
;;
-- What is there was written before anybody could answer.
UPDATE holdfast.run r SET active_task = t.id
  FROM holdfast.task t
 WHERE r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.active_task IS NULL;
;;
UPDATE holdfast.task t SET status = 3, version = t.version + 1, completed_at = t.updated_at
 WHERE t.status <= 1
   AND NOT EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.status <= 3);
;;
-- Cancels a run that is not finished, its children and what it asked of people. Its holder, if it has one,
-- finds out at its next sign of life.
CREATE OR REPLACE FUNCTION holdfast.cancel(
    run               uuid,
    reason            text   DEFAULT NULL,
    expected_revision bigint DEFAULT NULL, -- refused if the run has another one
    tenant            text   DEFAULT 'default'
) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS $$
DECLARE
    tenant_no int;
    target    record;
    now       bigint := holdfast.now();
BEGIN
    PERFORM holdfast.check_label('reason', reason, 2000);
    PERFORM holdfast.check_range('expected_revision', expected_revision, 0, 2147483647);
    tenant_no := holdfast.find_tenant(tenant, true);

    SELECT r.status, r.watched, r.version, r.revision, r.event_seq, r.deleted_at, r.parent, r.key, r.active_task,
           w.name AS workflow
      INTO target
      FROM holdfast.run r JOIN holdfast.workflow w ON w.id = r.workflow_id
     WHERE r.tenant_id = tenant_no AND r.id = cancel.run
       FOR NO KEY UPDATE OF r;
    IF target.status IS NULL THEN
        PERFORM holdfast.refuse('HF003', format('there is no run %s', run),
                                'Look for it in holdfast.runs; a run of another tenant is named with tenant =>.');
    ELSIF nullif(expected_revision, 0) <> target.revision THEN
        PERFORM holdfast.refuse('HF009', format('the run is at revision %s, not %s', target.revision, expected_revision),
                                'Read it again.');
    ELSIF target.status >= 4 THEN
        PERFORM holdfast.refuse('HF007', format('cancel is not possible: the run is %s%s',
                                                holdfast.status_name(target.status),
                                                CASE WHEN target.deleted_at IS NULL THEN '' ELSE ' and deleted' END),
                                'Only a run that is not finished can be cancelled.');
    END IF;

    UPDATE holdfast.run r
       SET status = 6, version = r.version + 1, revision = r.revision + 1, event_seq = r.event_seq + 1, run_at = NULL,
           last_worker = coalesce(r.leased_by, r.last_worker), leased_by = NULL, pause_requested = false, wait_count = 0,
           wake_on_failure = false, waiting_kind = NULL, waiting_token = NULL, waiting_until = NULL, result = NULL,
           error = NULL, error_code = 'cancelled', last_error = coalesce(reason, 'cancelled'), finished_at = now,
           updated_at = now
     WHERE r.tenant_id = tenant_no AND r.id = cancel.run;
    PERFORM holdfast.journal(tenant_no, run, target.event_seq + 1, target.version + 1, 0, 'cancelled', session_user,
                             '{"reason":' || to_json(reason) || '}');
    IF target.active_task IS NOT NULL THEN
        UPDATE holdfast.task t SET status = 3, version = t.version + 1, updated_at = now, completed_at = now
         WHERE t.run_id = cancel.run AND t.tenant_id + 0 = tenant_no AND t.status <= 1;
    END IF;
    IF target.parent IS NOT NULL THEN
        PERFORM holdfast.mail_parent_of_cancelled(tenant_no, run, target.workflow, target.key, target.parent);
    END IF;
    IF EXISTS (SELECT 1 FROM holdfast.run c WHERE c.tenant_id = tenant_no AND c.parent = cancel.run
                  AND c.parent IS NOT NULL AND c.status <= 3) THEN
        PERFORM holdfast.start_cancel_children(tenant_no, run);
    END IF;
    IF target.watched >= 1 THEN
        PERFORM holdfast.wake_watchers(run);
    END IF;
END $$;
