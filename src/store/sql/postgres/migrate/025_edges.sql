-- ---- Mail of the engine's own ----

-- What others send must not look like it: who could send mail of these types could answer for a person, and who took one of
-- these ids first would have the engine's mail dropped.
CREATE OR REPLACE FUNCTION holdfast.check_sender(type text, id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF type IN ('child', 'continue', 'retry', 'task', 'timer') THEN
        PERFORM holdfast.refuse('HF001', format('signals of type "%s" are the engine''s own', type),
                                'Leave the type away, or choose another; a task is answered by completing it.');
    ELSIF id ~ '^(child|requeue|timer):' THEN
        PERFORM holdfast.refuse('HF001', format('signal ids that begin with "%s:" are the engine''s own', split_part(id, ':', 1)),
                                'Choose another id.');
    END IF;
END $$;

-- Puts one more input into a run's mailbox and wakes the run. False: a signal with this id arrived before, and
-- nothing was done.
CREATE OR REPLACE FUNCTION holdfast.signal(
    run               uuid,
    name              text,
    payload           text     DEFAULT 'null',     -- JSON
    id                text     DEFAULT NULL,       -- dropped if the run has seen it; null: a new one is made
    token             text     DEFAULT NULL,       -- ignored as stale unless the run waits with this token
    delay             interval DEFAULT NULL,       -- until the run sees it
    expected_revision bigint   DEFAULT NULL,       -- refused if the run has another one
    type              text     DEFAULT 'external',
    tenant            text     DEFAULT 'default'
) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS $$
DECLARE
    tenant_no int;
    target    record;
    now       bigint := holdfast.now();
    visible   bigint;
    unfit     boolean;
    stale     boolean;
    earlier   boolean;
BEGIN
    PERFORM holdfast.check_label('signal name', coalesce(name, ''));
    PERFORM holdfast.check_label('signal id', id);
    PERFORM holdfast.check_name('signal type', type);
    PERFORM holdfast.check_sender(type, id);
    PERFORM holdfast.check_label('token', token);
    PERFORM holdfast.check_json('payload', payload);
    PERFORM holdfast.check_range('expected_revision', expected_revision, 0, 2147483647);
    PERFORM holdfast.check_duration('delay', delay);
    tenant_no := holdfast.find_tenant(tenant, true);
    id := coalesce(id, holdfast.new_id()::text);

    SELECT r.lane, r.status, r.watched, r.version, r.revision, r.event_seq, r.run_at, r.due_at, r.waiting_kind,
           r.waiting_token, r.deleted_at, w.name AS workflow
      INTO target
      FROM holdfast.run r JOIN holdfast.workflow w ON w.id = r.workflow_id
     WHERE r.tenant_id = tenant_no AND r.id = signal.run
       FOR NO KEY UPDATE OF r;
    IF target.lane IS NULL OR target.deleted_at IS NOT NULL THEN
        PERFORM holdfast.refuse('HF003', format('there is no run %s: it does not exist or was deleted', run),
                                'Look for it in holdfast.runs; a run of another tenant is named with tenant =>.');
    ELSIF EXISTS (SELECT 1 FROM holdfast.signal s WHERE s.run_id = signal.run AND s.id = signal.id) THEN
        RETURN false;
    ELSIF starts_with(target.workflow, 'holdfast.') THEN
        PERFORM holdfast.refuse('HF007', format('the run is the engine''s own (%s)', target.workflow),
                                'Change the schedule or the subscription instead.');
    ELSIF nullif(expected_revision, 0) <> target.revision THEN
        PERFORM holdfast.refuse('HF009', format('the run is at revision %s, not %s', target.revision, expected_revision),
                                'Read it again.');
    ELSIF target.status >= 4 THEN
        PERFORM holdfast.refuse('HF007', format('the run has finished (%s)', holdfast.status_name(target.status)),
                                'A finished run takes no more signals.');
    END IF;

    visible := now + coalesce(holdfast.as_us(delay), 0);
    unfit := target.waiting_kind IS NOT DISTINCT FROM 'worker'; -- it waits for other code, which knows its tokens
    stale := token IS NOT NULL AND token IS DISTINCT FROM target.waiting_token AND NOT unfit
             AND (target.status = 2 OR (target.status = 3 AND target.waiting_kind IS NOT NULL));
    earlier := NOT stale AND NOT unfit
               AND ((target.status IN (0, 2) AND (target.run_at IS NULL OR visible < target.run_at))
                    OR (target.status = 3 AND (target.due_at IS NULL OR visible < target.due_at)));
    UPDATE holdfast.run r
       SET event_seq = r.event_seq + 1, updated_at = now, has_mail = r.has_mail OR NOT stale,
           run_at = CASE WHEN earlier AND r.status <> 3 THEN visible ELSE r.run_at END,
           due_at = CASE WHEN earlier AND r.status = 3 THEN visible ELSE r.due_at END
     WHERE r.tenant_id = tenant_no AND r.id = signal.run;
    PERFORM holdfast.journal(tenant_no, run, target.event_seq + 1, target.version, 4, name, session_user,
                             format('{"id":%s,"type":"%s"%s}', to_json(id), type,
                                    CASE WHEN stale THEN ',"stale":true' ELSE '' END));
    IF NOT stale THEN
        INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, payload, token, sender, expected_revision,
                                     occurred_at, visible_at)
        VALUES (tenant_no, signal.run, signal.id, signal.type, signal.name, signal.payload, signal.token,
                session_user, nullif(signal.expected_revision, 0), now, visible);
    END IF;
    IF earlier AND target.status <> 3 THEN
        PERFORM holdfast.wake_lane(target.lane, visible);
    END IF;
    IF target.watched >= 2 THEN
        PERFORM holdfast.wake_watchers(run);
    END IF;
    RETURN true;
END $$;

-- ---- Locks of the engine's own ----

-- What operations lock to wait for each other: rows of a table on which no client has rights. Locks by number (pg_advisory_lock)
-- belong to everybody. Rows are locked and never changed. There are so many for good: two workflows, or tenants, that share a
-- place wait for each other now and then, and that is all.
CREATE TABLE IF NOT EXISTS holdfast.engine_lock (
    kind  int NOT NULL, -- 1: claims from a workflow with limits; 2: events of a tenant that are being written
    place int NOT NULL, -- kind 1: the workflow's number modulo 1024; kind 2: the tenant's modulo 128
    seat  int NOT NULL, -- kind 1: 0; kind 2: 0 to 7, of which who writes takes any one, and who wants quiet all
    PRIMARY KEY (kind, place, seat)
);
INSERT INTO holdfast.engine_lock (kind, place, seat)
SELECT 1, p, 0 FROM generate_series(0, 1023) p
UNION ALL
SELECT 2, p, s FROM generate_series(0, 127) p, generate_series(0, 7) s
ON CONFLICT DO NOTHING;

-- Engines that do not own the tables.
DO $$
DECLARE
    engine regrole;
BEGIN
    FOR engine IN SELECT a.grantee FROM pg_class c, aclexplode(c.relacl) a
                   WHERE c.oid = 'holdfast.run'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0 LOOP
        EXECUTE format('GRANT SELECT, UPDATE ON holdfast.engine_lock TO %s', engine);
    END LOOP;
END $$;

-- ---- What follows from an end ----

-- What follows from the end of a run: a workflow that is started when one is cancelled, what becomes of children that are
-- still at work, and what is told of it.
ALTER TABLE holdfast.workflow ADD COLUMN IF NOT EXISTS on_cancel text; -- the workflow started when a run is cancelled
ALTER TABLE holdfast.workflow ADD COLUMN IF NOT EXISTS children text;  -- cancel, fail; null: leave
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS has_children boolean; -- it has started children; null: it has not

CREATE OR REPLACE VIEW holdfast.workflows WITH (security_invoker = true) AS
SELECT t.name AS tenant, w.name, w.paused, w.max_attempts, holdfast.as_interval(w.retry_base) AS retry_base,
       holdfast.as_interval(w.retry_cap) AS retry_cap, holdfast.as_interval(w.lease) AS lease,
       holdfast.as_interval(w.timeout) AS timeout, holdfast.as_interval(w.retention) AS retention, w.dead_letter,
       w.definition, holdfast.as_time(w.created_at) AS created_at, holdfast.as_time(w.updated_at) AS updated_at,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.lane IN (SELECT holdfast.lanes_of(w.id))
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2) AND r.run_at <= holdfast.now()) AS due,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.lane IN (SELECT holdfast.lanes_of(w.id))
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2) AND r.run_at > holdfast.now()) AS delayed,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.lane IN (SELECT holdfast.lanes_of(w.id))
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status = 1) AS leased,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL) AS failed,
       nullif(w.max_running, 2147483647) AS max_running, w.rate_count, holdfast.as_interval(w.rate_interval) AS rate_interval,
       w.rate_burst, w.key_max_running, w.key_rate_count, holdfast.as_interval(w.key_rate_interval) AS key_rate_interval,
       w.key_rate_burst, w.on_cancel, w.children
  FROM holdfast.workflow w
  JOIN holdfast.tenant t ON t.id = w.tenant_id;

-- A journal line of a step as those are told of it who learn how its run ended; null: it is no step of the handler's, but a
-- wait or the like. What JSON allows and PostgreSQL's text does not, \u0000, is replaced.
CREATE OR REPLACE FUNCTION holdfast.step_told(step text, status text, data text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parsed json;
BEGIN
    BEGIN
        parsed := coalesce(data, '{}')::json;
        PERFORM parsed->>'op', parsed->'output';
    EXCEPTION WHEN others THEN
        BEGIN
            parsed := replace(data, '\u0000', '\ufffd')::json;
            PERFORM parsed->>'op', parsed->'output';
        EXCEPTION WHEN others THEN
            parsed := '{}';
        END;
    END;
    IF coalesce(parsed->>'op', 'step') <> 'step' THEN
        RETURN NULL;
    END IF;
    RETURN '{"name":' || to_json(step) || ',"status":' || to_json(status) || ',"output":'
           || coalesce((parsed->'output')::text, 'null') || '}';
END $$;

-- Members of a JSON object that tell what a run was and which steps it has done. With its input they take about `room` bytes at
-- most: of the steps the first that fit are told, and steps_cut says that there are more.
CREATE OR REPLACE FUNCTION holdfast.run_told(tenant_no int, told uuid, room bigint) RETURNS text LANGUAGE sql STABLE AS $$
SELECT '"workflow":' || to_json(w.name) || ',"key":' || coalesce(to_json(r.key)::text, 'null')
       || ',"subject":' || coalesce(to_json(r.subject)::text, 'null') || ',"input":' || coalesce(r.input, 'null')
       || ',"steps":[' || coalesce(s.steps, '') || ']' || CASE WHEN s.cut THEN ',"steps_cut":true' ELSE '' END
  FROM holdfast.run r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
 CROSS JOIN LATERAL (
    SELECT string_agg(f.step, ',' ORDER BY f.seq) FILTER (WHERE f.so_far <= $3 - coalesce(octet_length(r.input), 0)) AS steps,
           bool_or(f.so_far > $3 - coalesce(octet_length(r.input), 0)) AS cut
      FROM (SELECT d.seq, d.step, sum(octet_length(d.step) + 1) OVER (ORDER BY d.seq) AS so_far
              FROM (SELECT e.seq, holdfast.step_told(e.step, e.name, e.data) AS step
                      FROM holdfast.event e
                     WHERE e.run_id = r.id AND e.tenant_id = r.tenant_id AND e.kind = 2 AND e.name = 'succeeded') d
             WHERE d.step IS NOT NULL) f) s
 WHERE r.tenant_id = $1 AND r.id = $2
$$;

-- Starts the chore that cancels the children of a run, and tells subscriptions of its cancel: then `told` is the status that the
-- run had.
CREATE OR REPLACE FUNCTION holdfast.start_cancel_children(tenant_no int, cancelled uuid, told text) RETURNS void
    LANGUAGE plpgsql AS $$
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
            format('{"run":"%s"%s}', cancelled, ',"tell":' || to_json(told)), session_user, 1, now, now, flow.definition_hash);
    PERFORM holdfast.journal(tenant_no, new_run, 1, 1, 0, 'created', session_user, NULL);
    PERFORM holdfast.wake_lane(flow.lane, now, '!workflows');
END $$;

-- Starts the workflow that is told of cancelled runs, where there is one: never for its own, which would not end.
CREATE OR REPLACE FUNCTION holdfast.start_on_cancel(tenant_no int, cancelled uuid, status text, reason text)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    flow    record;
    now     bigint := holdfast.now();
    new_run uuid := holdfast.new_id();
BEGIN
    SELECT f.id, f.lane, f.timeout, f.definition_hash, r.version, r.trace INTO flow
      FROM holdfast.run r
      JOIN holdfast.workflow w ON w.id = r.workflow_id AND w.on_cancel <> w.name
      JOIN holdfast.workflow f ON f.tenant_id = tenant_no AND f.name = w.on_cancel
     WHERE r.tenant_id = tenant_no AND r.id = cancelled;
    IF flow.id IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, key, run_at, timeout_at, input, trace, actor, event_seq,
                              created_at, updated_at, definition_hash)
    VALUES (tenant_no, new_run, flow.id, flow.lane, format('on-cancel:%s:%s', cancelled, flow.version), now,
            now + flow.timeout,
            format('{"run":"%s","status":"%s","reason":%s,', cancelled, status, coalesce(to_json(reason)::text, 'null'))
                || holdfast.run_told(tenant_no, cancelled, 1048576 - 4096) || '}',
            flow.trace, session_user, 1, now, now, flow.definition_hash)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN -- somebody has taken its key
        RETURN;
    END IF;
    PERFORM holdfast.journal(tenant_no, new_run, 1, 1, 0, 'created', session_user, NULL);
    PERFORM holdfast.wake_lane(flow.lane, now);
END $$;

-- ---- Runs of the engine's own ----

-- Schedules and subscriptions are ended by calls of their own, which a client role has not.
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
    wanted    boolean;
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
    ELSIF starts_with(target.workflow, 'holdfast.') THEN
        PERFORM holdfast.refuse('HF007', format('cancel is not possible: the run is the engine''s own (%s)', target.workflow),
                                'Change the schedule or the subscription instead.');
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
    PERFORM holdfast.start_on_cancel(tenant_no, run, holdfast.status_name(target.status), reason);
    wanted := EXISTS (SELECT 1 FROM holdfast.subscription s
                       WHERE s.tenant_id = tenant_no AND holdfast.event_wanted(s.filter, 'holdfast.run.cancelled'));
    IF wanted OR EXISTS (SELECT 1 FROM holdfast.run c WHERE c.tenant_id = tenant_no AND c.parent = cancel.run
                            AND c.parent IS NOT NULL AND c.status <= 3) THEN
        PERFORM holdfast.start_cancel_children(tenant_no, run, CASE WHEN wanted THEN holdfast.status_name(target.status) END);
    END IF;
    IF target.status = 1 THEN
        PERFORM pg_notify('holdfast_wake', CASE WHEN target.slot IS NULL THEN '' ELSE (-target.lane)::text END || '!leases');
    END IF;
    IF target.watched >= 1 THEN
        PERFORM holdfast.wake_watchers(run);
    END IF;
END $$;

-- ---- Workers of the caller's tenant ----

-- Refuses a workflow that no live worker serves for the caller: of other tenants, and of their workers, it learns nothing.
-- A pattern ends with * or with a dot where it means what begins so.
CREATE OR REPLACE FUNCTION holdfast.check_worker(workflow text, tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted text := holdfast.tenant_for_caller(tenant);
BEGIN
    IF EXISTS (SELECT 1 FROM holdfast.worker w
                WHERE w.expires_at > holdfast.now() AND NOT w.draining
                  AND w.tenants::jsonb ?| ARRAY['*', wanted]
                  AND EXISTS (SELECT 1 FROM jsonb_array_elements_text(w.serves::jsonb) AS s(pattern)
                               WHERE s.pattern = workflow OR (s.pattern ~ '[*.]$'
                                 AND starts_with(workflow, regexp_replace(s.pattern, '[*]$', ''))))) THEN
        RETURN;
    END IF;
    PERFORM holdfast.refuse('HF006', format('no live worker serves "%s"', workflow),
                            'Start one, or trigger without require_worker to have it wait.');
END $$;
