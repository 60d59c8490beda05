-- A cancel by SQL tells the worker that holds the run, as the library's does, and those who wait for its slot.
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
           r.lane, r.slot, w.name AS workflow
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
           updated_at = now, rest_step = r.current_step
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
    IF target.status = 1 THEN
        PERFORM pg_notify('holdfast_wake', CASE WHEN target.slot IS NULL THEN '' ELSE (-target.lane)::text END || '!leases');
    END IF;
    IF target.watched >= 1 THEN
        PERFORM holdfast.wake_watchers(run);
    END IF;
END $$;
