-- holdfast.trigger with flow keys, debounce and require_worker, and its trace checked as the library does; the view of runs
-- with their keys. A function with more arguments is another function, so the old ones go. Where something of the user's
-- depends on one, such as the default of a column, it stays under another name and calls the new one.

-- ---- Checks ----

-- A W3C traceparent of version 00. Null means that there is none.
CREATE FUNCTION holdfast.check_trace(trace text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF trace !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' OR trace ~ '^00-0{32}' OR trace ~ '-0{16}-..$' THEN
        PERFORM holdfast.refuse('HF001', 'the trace is not a W3C traceparent of version 00',
                                'As in 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 (lower-case hex).');
    END IF;
END $$;

CREATE FUNCTION holdfast.check_debounce(key text, wait interval, at_most interval, other_time boolean) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF key IS NULL AND (wait <> interval '0' OR at_most <> interval '0') THEN
        PERFORM holdfast.refuse('HF001', 'a debounce needs a key', 'Give debounce_key.');
    ELSIF key IS NULL THEN
        RETURN;
    END IF;
    PERFORM holdfast.check_label('debounce key', key, 200);
    IF wait IS NULL OR wait <= interval '0' OR wait > interval '365 days' THEN
        PERFORM holdfast.refuse('HF001', format('debounce_for is %s', coalesce(wait::text, 'null')),
                                'Give more than 0, at most 365 days.');
    ELSIF at_most <> interval '0' AND (at_most < wait OR at_most > interval '365 days') THEN
        PERFORM holdfast.refuse('HF001', format('debounce_at_most is %s', at_most),
                                'Give at least debounce_for, at most 365 days.');
    ELSIF other_time THEN
        PERFORM holdfast.refuse('HF001', 'a debounced run starts debounce_for after the last trigger',
                                'Leave run_at and delay away.');
    END IF;
END $$;

-- Refuses a workflow that no live worker serves. A pattern ends with * or with a dot where it means what begins so.
CREATE FUNCTION holdfast.check_worker(workflow text, tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM holdfast.worker w
                WHERE w.expires_at > holdfast.now() AND NOT w.draining
                  AND w.tenants::jsonb ?| ARRAY['*', tenant]
                  AND EXISTS (SELECT 1 FROM jsonb_array_elements_text(w.serves::jsonb) AS s(pattern)
                               WHERE s.pattern = workflow OR (s.pattern ~ '[*.]$'
                                 AND starts_with(workflow, regexp_replace(s.pattern, '[*]$', ''))))) THEN
        RETURN;
    END IF;
    PERFORM holdfast.refuse('HF006', format('no live worker serves "%s"', workflow),
                            'Start one, or trigger without require_worker to have it wait.');
END $$;

-- ---- What trigger does ----

-- The lane of a flow key, which its first run makes.
CREATE FUNCTION holdfast.ensure_lane(tenant_id int, workflow_id int, flow_key text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    found int;
BEGIN
    LOOP
        SELECT l.id INTO found FROM holdfast.lane l
         WHERE l.workflow_id = ensure_lane.workflow_id AND coalesce(l.flow_key, '') = ensure_lane.flow_key;
        EXIT WHEN found IS NOT NULL;
        INSERT INTO holdfast.lane (id, tenant_id, workflow_id, flow_key)
        VALUES (nextval('holdfast.lane_id'), ensure_lane.tenant_id, ensure_lane.workflow_id, ensure_lane.flow_key)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found;
END $$;

-- Gives the input to the run that waits under the debounce key, as src/kernel/flush_debounce.c does, and its id; null if
-- there is none.
CREATE FUNCTION holdfast.debounce(workflow_id int, debounce_key text, wait bigint, at_most bigint, input text, new_run uuid)
    RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    target record;
    now    bigint := holdfast.now();
    until  bigint;
    due    bigint;
BEGIN
    SELECT r.tenant_id, r.id, r.lane, r.run_at, r.timeout_at, r.created_at, r.debounce_until, r.event_seq, r.watched,
           coalesce(r.input, 'null') AS input INTO target
      FROM holdfast.run r
     WHERE r.workflow_id = debounce.workflow_id AND r.debounce_key = debounce.debounce_key AND r.debounce_key IS NOT NULL
       AND r.status = 0 AND r.version = 1 AND r.deleted_at IS NULL
       FOR NO KEY UPDATE;
    IF target.id IS NULL THEN
        RETURN NULL;
    END IF;
    until := least(target.debounce_until, target.created_at + nullif(at_most, 0));
    due := least(now + wait, until, target.timeout_at);
    UPDATE holdfast.run r
       SET input = debounce.input, run_at = due, debounce_until = until, revision = r.revision + 1,
           event_seq = r.event_seq + 1, updated_at = now
     WHERE r.tenant_id = target.tenant_id AND r.id = target.id;
    PERFORM holdfast.journal(target.tenant_id, target.id, target.event_seq + 1, 1, 0, 'debounced', session_user,
        '{"trigger":"' || new_run || '","input":' || coalesce(input, 'null')
        || CASE WHEN holdfast.same_json(target.input, coalesce(input, 'null')) THEN ''
                ELSE ',"replaced":' || target.input END || '}');
    IF due < target.run_at THEN
        PERFORM holdfast.wake_lane(target.lane, due);
    END IF;
    IF target.watched >= 2 THEN
        PERFORM holdfast.wake_watchers(target.id);
    END IF;
    RETURN target.id;
END $$;

-- ---- The old functions go ----

-- Who may execute them is remembered for the new ones.
SELECT pg_catalog.set_config('holdfast.trigger_grants', coalesce((
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
               'input', p.proargtypes[1]::pg_catalog.regtype, 'grantable', a.is_grantable,
               'grantee', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::text END))::text
      FROM pg_catalog.pg_proc p CROSS JOIN pg_catalog.aclexplode(p.proacl) a
     WHERE p.pronamespace = 'holdfast'::pg_catalog.regnamespace AND p.proname = 'trigger' AND a.grantee <> p.proowner),
    '[]'), true);

DO $do$
DECLARE
    kind text;
BEGIN
    FOREACH kind IN ARRAY ARRAY['jsonb', 'json', 'text'] LOOP
        BEGIN
            EXECUTE pg_catalog.format('DROP FUNCTION holdfast.trigger(text, %s, text, int, timestamptz, interval, '
                'interval, timestamptz, int, text, text, text[], text, text, text)', kind);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            EXECUTE pg_catalog.format('ALTER FUNCTION holdfast.trigger(text, %s, text, int, timestamptz, interval, '
                'interval, timestamptz, int, text, text, text[], text, text, text) RENAME TO trigger_before_006', kind);
            EXECUTE pg_catalog.format($sql$
                CREATE OR REPLACE FUNCTION holdfast.trigger_before_006(
                    workflow text, input %1$s%2$s, key text DEFAULT NULL, priority int DEFAULT 0,
                    run_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL, timeout interval DEFAULT NULL,
                    timeout_at timestamptz DEFAULT NULL, max_attempts int DEFAULT NULL, subject text DEFAULT NULL,
                    reference text DEFAULT NULL, tags text[] DEFAULT NULL, partition text DEFAULT NULL,
                    trace text DEFAULT NULL, tenant text DEFAULT 'default'
                ) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
                BEGIN
                    RETURN holdfast.trigger(workflow, input, key, priority, run_at, delay, timeout, timeout_at,
                                            max_attempts, subject, reference, tags, partition, trace, tenant);
                END $$ $sql$, kind, CASE kind WHEN 'text' THEN $d$ DEFAULT 'null'$d$ END);
        END;
    END LOOP;
END $do$;

-- ---- trigger ----

-- Starts a run when the caller's transaction commits, and gives its id. With a key that a run of this workflow has
-- already, gives that run's id if its input is the same, and is refused otherwise. With a debounce key, gives the id of
-- the run that has the input now.
CREATE FUNCTION holdfast.trigger(
    workflow     text,
    input        text        DEFAULT 'null', -- JSON
    key          text        DEFAULT NULL,   -- the caller's identity for it
    priority     int         DEFAULT 0,      -- -1000 to 1000, higher is more urgent
    run_at       timestamptz DEFAULT NULL,   -- not before
    delay        interval    DEFAULT NULL,   -- from now; used when run_at is null
    timeout      interval    DEFAULT NULL,   -- from now to its deadline
    timeout_at   timestamptz DEFAULT NULL,   -- its deadline; null: by timeout, else the workflow's
    max_attempts int         DEFAULT NULL,   -- null: the workflow's
    subject      text        DEFAULT NULL,
    reference    text        DEFAULT NULL,
    tags         text[]      DEFAULT NULL,
    partition    text        DEFAULT NULL,
    trace        text        DEFAULT NULL,   -- W3C traceparent
    tenant       text        DEFAULT 'default',
    flow_key     text        DEFAULT NULL,   -- limits and fair shares go by it
    debounce_key text        DEFAULT NULL,   -- goes into the run that waits under this key, if there is one
    debounce_for interval    DEFAULT NULL,   -- from now to its start
    debounce_at_most interval DEFAULT NULL,  -- from the first trigger to its start
    require_worker boolean   DEFAULT false   -- refused when no live worker could run it
) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS $$
DECLARE
    tenant_no int;
    labels    text;
    flow      record;
    made      record;
    taken     record;
    new_run   uuid := holdfast.new_id();
    now       bigint := holdfast.now();
    deadline  bigint;
    into_run  uuid;
BEGIN
    PERFORM holdfast.check_name('workflow name', workflow);
    IF starts_with(workflow, 'holdfast.') THEN
        PERFORM holdfast.refuse('HF001', 'names that begin with "holdfast." are the engine''s own', 'Use another name.');
    END IF;
    PERFORM holdfast.check_json('input', input);
    PERFORM holdfast.check_label('key', key);
    PERFORM holdfast.check_label('flow key', flow_key, 200);
    PERFORM holdfast.check_label('subject', subject);
    PERFORM holdfast.check_label('reference', reference);
    PERFORM holdfast.check_label('partition', partition);
    PERFORM holdfast.check_trace(trace);
    PERFORM holdfast.check_range('priority', priority, -1000, 1000);
    PERFORM holdfast.check_range('max_attempts', max_attempts, 0, 1000000);
    PERFORM holdfast.check_time('run_at', run_at);
    PERFORM holdfast.check_time('timeout_at', timeout_at);
    PERFORM holdfast.check_duration('delay', delay);
    PERFORM holdfast.check_duration('timeout', timeout);
    PERFORM holdfast.check_debounce(debounce_key, debounce_for, debounce_at_most,
                                    run_at IS NOT NULL OR coalesce(delay, interval '0') <> interval '0');
    labels := holdfast.tags_json(tags);
    IF require_worker THEN
        PERFORM holdfast.check_worker(workflow, tenant);
    END IF;
    tenant_no := holdfast.find_tenant(tenant, false);

    SELECT w.id, w.lane, w.timeout, w.definition_hash INTO flow
      FROM holdfast.workflow w WHERE w.tenant_id = tenant_no AND w.name = trigger.workflow;
    IF flow.id IS NULL THEN
        PERFORM holdfast.refuse('HF005', format('no workflow is named "%s"', workflow),
            format('Create it (holdfast workflow create %s) or start a worker that registers it.', workflow));
    END IF;
    IF flow_key IS NOT NULL THEN
        flow.lane := holdfast.ensure_lane(tenant_no, flow.id, flow_key);
    END IF;
    deadline := coalesce(holdfast.as_us(timeout_at), now + nullif(holdfast.as_us(timeout), 0), now + flow.timeout);

    LOOP
        IF debounce_key IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM holdfast.run r
             WHERE r.workflow_id = flow.id AND r.key = trigger.key AND r.key IS NOT NULL AND r.deleted_at IS NULL) THEN
            into_run := holdfast.debounce(flow.id, debounce_key, holdfast.as_us(debounce_for),
                                          holdfast.as_us(debounce_at_most), input, new_run);
            IF into_run IS NOT NULL THEN
                RETURN into_run;
            END IF;
        END IF;
        INSERT INTO holdfast.run AS r (tenant_id, id, workflow_id, lane, key, priority, run_at, timeout_at, max_attempts,
            input, subject, reference, tags, partition, trace, actor, event_seq, created_at, updated_at, definition_hash,
            debounce_key, debounce_until)
        VALUES (tenant_no, new_run, flow.id, flow.lane, trigger.key, coalesce(trigger.priority, 0),
            least(coalesce(holdfast.as_us(trigger.run_at), now + coalesce(holdfast.as_us(debounce_for), holdfast.as_us(delay), 0)),
                  deadline), deadline,
            nullif(trigger.max_attempts, 0), trigger.input, trigger.subject, trigger.reference, labels, trigger.partition,
            trigger.trace, session_user, 1, now, now, flow.definition_hash, trigger.debounce_key,
            CASE WHEN trigger.debounce_key IS NOT NULL THEN now + nullif(holdfast.as_us(debounce_at_most), 0) END)
        ON CONFLICT DO NOTHING
        RETURNING r.lane, r.run_at INTO made;
        EXIT WHEN made.lane IS NOT NULL;

        SELECT r.id, r.input INTO taken FROM holdfast.run r
         WHERE r.workflow_id = flow.id AND r.key = trigger.key AND r.key IS NOT NULL AND r.deleted_at IS NULL;
        IF taken.id IS NULL THEN
            CONTINUE; -- whoever had the key is gone since, or one waits under the debounce key now
        ELSIF holdfast.same_json(coalesce(taken.input, 'null'), coalesce(input, 'null')) THEN
            RETURN taken.id;
        END IF;
        PERFORM holdfast.refuse('HF004',
            format('the key "%s" belongs to run %s, which has another input', key, taken.id),
            'Use another key, or delete that run first.');
    END LOOP;

    PERFORM holdfast.journal(tenant_no, new_run, 1, 1, 0, 'created', session_user, NULL);
    INSERT INTO holdfast.run_tag (tenant_id, tag, run_id)
    SELECT tenant_no, t.tag, new_run FROM unnest(trigger.tags) AS t(tag)
    ON CONFLICT DO NOTHING;
    PERFORM holdfast.wake_lane(made.lane, made.run_at);
    RETURN new_run;
END $$;

-- The same for a document that is at hand as json or jsonb. Only the one above may be called without an input, since
-- calls would otherwise fit all three.
CREATE FUNCTION holdfast.trigger(
    workflow text, input jsonb, key text DEFAULT NULL, priority int DEFAULT 0, run_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, timeout interval DEFAULT NULL, timeout_at timestamptz DEFAULT NULL,
    max_attempts int DEFAULT NULL, subject text DEFAULT NULL, reference text DEFAULT NULL, tags text[] DEFAULT NULL,
    partition text DEFAULT NULL, trace text DEFAULT NULL, tenant text DEFAULT 'default', flow_key text DEFAULT NULL,
    debounce_key text DEFAULT NULL, debounce_for interval DEFAULT NULL, debounce_at_most interval DEFAULT NULL,
    require_worker boolean DEFAULT false
) RETURNS uuid LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT holdfast.trigger(workflow, input::text, key, priority, run_at, delay, timeout, timeout_at, max_attempts,
                            subject, reference, tags, partition, trace, tenant, flow_key, debounce_key, debounce_for,
                            debounce_at_most, require_worker);
END;

CREATE FUNCTION holdfast.trigger(
    workflow text, input json, key text DEFAULT NULL, priority int DEFAULT 0, run_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, timeout interval DEFAULT NULL, timeout_at timestamptz DEFAULT NULL,
    max_attempts int DEFAULT NULL, subject text DEFAULT NULL, reference text DEFAULT NULL, tags text[] DEFAULT NULL,
    partition text DEFAULT NULL, trace text DEFAULT NULL, tenant text DEFAULT 'default', flow_key text DEFAULT NULL,
    debounce_key text DEFAULT NULL, debounce_for interval DEFAULT NULL, debounce_at_most interval DEFAULT NULL,
    require_worker boolean DEFAULT false
) RETURNS uuid LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT holdfast.trigger(workflow, input::text, key, priority, run_at, delay, timeout, timeout_at, max_attempts,
                            subject, reference, tags, partition, trace, tenant, flow_key, debounce_key, debounce_for,
                            debounce_at_most, require_worker);
END;

-- Those who could execute the old ones, and nobody else.
DO $do$
DECLARE
    made  record;
    given record;
BEGIN
    FOR made IN SELECT p.oid::pg_catalog.regprocedure AS name, p.proargtypes[1]::pg_catalog.regtype::text AS input
                  FROM pg_catalog.pg_proc p
                 WHERE p.pronamespace = 'holdfast'::pg_catalog.regnamespace AND p.proname = 'trigger' LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made.name);
        FOR given IN SELECT g.* FROM pg_catalog.json_to_recordset(
                         pg_catalog.current_setting('holdfast.trigger_grants')::json)
                         AS g(input text, grantable boolean, grantee text)
                      WHERE g.input = made.input LOOP
            EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %s%s', made.name, given.grantee,
                                      CASE WHEN given.grantable THEN ' WITH GRANT OPTION' END);
        END LOOP;
    END LOOP;
END $do$;

-- ---- The view of runs ----

-- Whoever reads the view needs no right on the table of lanes.
CREATE FUNCTION holdfast.flow_key_of(lane int) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS
$$ SELECT l.flow_key FROM holdfast.lane l WHERE l.id = flow_key_of.lane $$;

CREATE OR REPLACE VIEW holdfast.runs WITH (security_invoker = true) AS
SELECT r.id, t.name AS tenant, w.name AS workflow, r.key, holdfast.status_name(r.status) AS status, r.priority, r.attempt,
       coalesce(r.max_attempts, w.max_attempts) AS max_attempts, r.version, r.revision,
       holdfast.as_time(CASE WHEN r.status = 1 THEN r.due_at ELSE r.run_at END) AS run_at, r.leased_by,
       holdfast.as_time(CASE WHEN r.status = 1 THEN r.run_at END) AS lease_until, r.pause_requested,
       holdfast.as_jsonb(r.input) AS input, holdfast.as_jsonb(r.state) AS state, holdfast.as_jsonb(r.result) AS result,
       holdfast.as_jsonb(r.error) AS error, r.error_code, r.last_error, r.current_step, r.waiting_kind, r.waiting_token,
       holdfast.as_time(r.waiting_until) AS waiting_until, r.wait_count, r.last_worker, r.last_signal, r.subject,
       r.reference, holdfast.as_jsonb(r.tags) AS tags, r.partition, r.trace, r.actor, r.parent, r.root,
       holdfast.as_time(r.timeout_at) AS timeout_at, holdfast.as_time(r.created_at) AS created_at,
       holdfast.as_time(r.started_at) AS started_at, holdfast.as_time(r.updated_at) AS updated_at,
       holdfast.as_time(r.paused_at) AS paused_at, holdfast.as_time(r.finished_at) AS finished_at,
       holdfast.as_time(r.deleted_at) AS deleted_at, r.delete_reason,
       holdfast.flow_key_of(r.lane) AS flow_key, r.debounce_key
  FROM holdfast.run r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
  JOIN holdfast.tenant t ON t.id = r.tenant_id;
