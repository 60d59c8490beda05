-- Lists of runs by their last step. Steps do not write what the index has: a change of an indexed column writes an entry in
-- every index of its run, which costs a fifth of all steps a second. Runs without steps are not in it. Statements can be
-- repeated: a try may break off between them.
-- holdfast: no transaction
-- The current step of a run, written by whatever ends a holder's turn. While somebody holds the run it may be an older one.
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS rest_step text COLLATE "C";
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
    IF target.watched >= 1 THEN
        PERFORM holdfast.wake_watchers(run);
    END IF;
END $$;
;;
-- Writes rest_step where it is missing or old: in runs from before, and in those that a program which does not know of it
-- left. A thousand runs at a time, each thousand in its own transaction; what somebody has locked is waited for while nothing
-- is held.
CREATE OR REPLACE PROCEDURE holdfast.fill_rest_steps() LANGUAGE plpgsql AS $$
DECLARE
    tenant_no int;
    after     uuid;
    upto      uuid;
    wrong     uuid[];
BEGIN
    FOR tenant_no IN SELECT t.id FROM holdfast.tenant t LOOP
        after := '00000000-0000-0000-0000-000000000000';
        WHILE after IS NOT NULL LOOP
            upto := (SELECT r.id FROM holdfast.run r WHERE r.tenant_id = tenant_no AND r.id > after
                      ORDER BY r.id LIMIT 1 OFFSET 999);
            wrong := ARRAY(SELECT r.id FROM holdfast.run r
                            WHERE r.tenant_id = tenant_no AND r.id > after
                              AND r.id <= coalesce(upto, 'ffffffff-ffff-ffff-ffff-ffffffffffff') AND r.status <> 1
                              AND r.rest_step IS DISTINCT FROM r.current_step COLLATE "C");
            WHILE cardinality(wrong) > 0 LOOP
                UPDATE holdfast.run u SET rest_step = u.current_step
                 WHERE u.ctid = ANY (ARRAY(SELECT r.ctid FROM holdfast.run r
                                            WHERE r.tenant_id = tenant_no AND r.id = ANY (wrong) AND r.status <> 1
                                              FOR NO KEY UPDATE SKIP LOCKED));
                COMMIT;
                wrong := ARRAY(SELECT r.id FROM holdfast.run r
                                WHERE r.tenant_id = tenant_no AND r.id = ANY (wrong) AND r.status <> 1
                                  AND r.rest_step IS DISTINCT FROM r.current_step COLLATE "C");
                PERFORM pg_sleep(0.05) WHERE cardinality(wrong) > 0;
            END LOOP;
            after := upto;
        END LOOP;
    END LOOP;
END $$;
;;
REVOKE ALL ON PROCEDURE holdfast.fill_rest_steps FROM PUBLIC;
;;
-- Before there is an index, which would be written for each.
CALL holdfast.fill_rest_steps();
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_step;
;;
CREATE INDEX CONCURRENTLY run_step ON holdfast.run (tenant_id, rest_step, id) WHERE rest_step IS NOT NULL;
