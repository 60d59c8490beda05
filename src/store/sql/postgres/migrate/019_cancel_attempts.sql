-- The chore that cancels the children of a cancelled run is not given up because its store was away, or because those who
-- did it died.
CREATE OR REPLACE FUNCTION holdfast.start_cancel_children(tenant_no int, cancelled uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    chore CONSTANT text := 'holdfast.cancel_children';
    flow    record;
    now     bigint := holdfast.now();
    new_run uuid := holdfast.new_id();
BEGIN
    WITH made AS (
        INSERT INTO holdfast.workflow AS w (tenant_id, name) VALUES (tenant_no, chore)
        ON CONFLICT (tenant_id, name) DO NOTHING
        RETURNING w.id, w.tenant_id, w.lane
    )
    INSERT INTO holdfast.lane (id, tenant_id, workflow_id) SELECT m.lane, m.tenant_id, m.id FROM made m;
    SELECT w.id, w.lane, w.timeout, w.definition_hash INTO flow
      FROM holdfast.workflow w WHERE w.tenant_id = tenant_no AND w.name = chore;
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, run_at, timeout_at, max_attempts, input, actor, event_seq,
                              created_at, updated_at, definition_hash)
    VALUES (tenant_no, new_run, flow.id, flow.lane, now, now + flow.timeout, 1000000,
            format('{"run":"%s"}', cancelled), session_user, 1, now, now, flow.definition_hash);
    PERFORM holdfast.journal(tenant_no, new_run, 1, 1, 0, 'created', session_user, NULL);
    PERFORM holdfast.wake_lane(flow.lane, now, '!workflows');
END $$;
