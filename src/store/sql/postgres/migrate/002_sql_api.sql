-- Holdfast for those who speak SQL: trigger, signal and cancel inside the caller's own transaction, and views for
-- people.
--
-- The three functions do what the C library does (src/kernel/flush_trigger.c, flush_signal.c, flush_change.c), row by
-- row and line by line of the journal. They run with their owner's rights and a search path that nobody else can
-- write to; whoever may execute them needs no right on any table. Refusals have SQLSTATEs of the class HF: HF001
-- invalid, HF002 too large, HF003 not found, HF004 conflict, HF005 unknown workflow, HF007 not allowed, HF009 another
-- revision, HF012 disabled tenant; the digits are those of the library's error codes. Those who wake workers do so
-- with the caller's commit: a worker that looks before sees nothing, so whether one sleeps cannot be known yet.

-- Helpers have no search path of their own, which would cost more than they do: the three functions call them under
-- theirs, and what views call names everything in full, or was read when it was defined.

-- ---- Values ----

-- The store's clock, as before, but with its operators fixed: views call it under their reader's search path.
CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql STABLE
    RETURN (extract(epoch FROM statement_timestamp()) * 1000000)::bigint;

-- A new UUID of version 7, as src/util/id.c makes them. By the wall clock, so that ids made by one statement are in
-- order.
CREATE FUNCTION holdfast.new_id() RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    RETURN (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4096 / 1000), 3, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 17))::uuid;
END $$;

-- The store's microseconds as people read them, and back.
CREATE FUNCTION holdfast.as_time(us bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN to_timestamp((us / 1000000.0)::float8);
CREATE FUNCTION holdfast.as_interval(us bigint) RETURNS interval LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN us * interval '1 microsecond';
CREATE FUNCTION holdfast.as_us(value timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (extract(epoch FROM value) * 1000000)::bigint;
CREATE FUNCTION holdfast.as_us(value interval) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (extract(epoch FROM value) * 1000000)::bigint;

CREATE FUNCTION holdfast.status_name(status smallint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (ARRAY['pending', 'leased', 'waiting', 'paused', 'succeeded', 'failed', 'cancelled'])[status + 1];
CREATE FUNCTION holdfast.kind_name(kind smallint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (ARRAY['lifecycle', 'domain', 'step', 'task', 'signal'])[kind + 1];

-- Null for what jsonb cannot hold: \u0000, lone surrogates, exponents beyond reason.
CREATE FUNCTION holdfast.as_jsonb(value text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN value::pg_catalog.jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$;

-- Whether two documents say the same; numbers by their value, members in any order.
CREATE FUNCTION holdfast.same_json(a text, b text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    outside_strings CONSTANT text := '("(?:\\.|[^"\\])*")|[ \t\n\r]+';
    left_side jsonb;
    right_side jsonb;
BEGIN
    IF a = b THEN
        RETURN true;
    END IF;
    left_side := holdfast.as_jsonb(a);
    right_side := holdfast.as_jsonb(b);
    IF left_side IS NULL OR right_side IS NULL THEN
        RETURN regexp_replace(a, outside_strings, '\1', 'g') = regexp_replace(b, outside_strings, '\1', 'g');
    END IF;
    RETURN left_side = right_side;
END $$;

-- ---- Checks: what the library checks before it asks the store ----

CREATE FUNCTION holdfast.refuse(code text, message text, hint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, HINT = hint;
END $$;

-- Names that the engine gives meaning to. Null is refused.
CREATE FUNCTION holdfast.check_name(what text, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]*$' AND name !~ '\.\.|\.$' AND octet_length(name) <= 200 THEN
        RETURN;
    ELSIF octet_length(name) > 200 THEN
        PERFORM holdfast.refuse('HF002', format('the %s "%s..." is too long', what, left(name, 40)),
                                'Give at most 200 bytes.');
    END IF;
    PERFORM holdfast.refuse('HF001', format('the %s %s is not usable', what, coalesce(quote_ident(name), 'null')),
                            'Use letters, digits and _ . : - only, a letter or digit first, no ".." and no dot at the end.');
END $$;

-- Free text of the caller. Null means that there is none.
CREATE FUNCTION holdfast.check_label(what text, label text, most int DEFAULT 512) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF label = '' THEN
        PERFORM holdfast.refuse('HF001', format('the %s is empty', what), format('Give 1 to %s bytes, or null.', most));
    ELSIF octet_length(label) > most THEN
        PERFORM holdfast.refuse('HF002', format('the %s "%s..." is too long', what, left(label, 40)),
                                format('Give at most %s bytes.', most));
    ELSIF label ~ '[\u0001-\u001f\u007f-\u009f]' THEN
        PERFORM holdfast.refuse('HF001', format('the %s has a control character', what), 'Remove it.');
    END IF;
END $$;

-- Brackets of a document that are nested deeper than 128 levels. Each round takes the innermost level away.
CREATE FUNCTION holdfast.is_too_deep(value text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    brackets text;
BEGIN
    IF length(value) - length(translate(value, '[{', '')) <= 128 THEN
        RETURN false;
    END IF;
    brackets := regexp_replace(regexp_replace(value, '"(?:\\.|[^"\\])*"', '', 'g'), '[^][{}]', '', 'g');
    FOR level IN 1..128 LOOP
        brackets := regexp_replace(brackets, '\[\]|\{\}', '', 'g');
        EXIT WHEN brackets = '';
    END LOOP;
    RETURN brackets <> '';
END $$;

-- Halves of surrogate pairs, which no parser that works with UTF-8 can keep.
CREATE FUNCTION holdfast.has_lone_surrogate(value text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF strpos(value, '\u') = 0 OR value !~* '\\ud[89a-f]' THEN
        RETURN false;
    END IF;
    value := replace(value, '\\', ' ');
    value := regexp_replace(value, '\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}', ' ', 'gi');
    RETURN value ~* '\\ud[89a-f]';
END $$;

-- Null means that there is none.
CREATE FUNCTION holdfast.check_json(what text, value text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fault text;
BEGIN
    IF octet_length(value) > 1048576 THEN
        PERFORM holdfast.refuse('HF002', format('the %s is larger than 1048576 bytes', what),
                                'Store large data elsewhere and pass a reference.');
    END IF;
    BEGIN
        PERFORM value::json;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        fault := SQLERRM;
    END;
    IF fault IS NULL AND holdfast.is_too_deep(value) THEN
        fault := 'more than 128 levels of nesting';
    ELSIF fault IS NULL AND holdfast.has_lone_surrogate(value) THEN
        fault := 'half of a surrogate pair';
    END IF;
    IF fault IS NOT NULL THEN
        PERFORM holdfast.refuse('HF001', format('the %s is not JSON: %s', what, fault),
                                'Texts are written in double quotes, as in ''"text"''; to_json() makes JSON of any value.');
    END IF;
END $$;

CREATE FUNCTION holdfast.check_range(what text, value bigint, low bigint, high bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF value NOT BETWEEN low AND high THEN
        PERFORM holdfast.refuse('HF001', format('%s is %s', what, value), format('Give %s to %s.', low, high));
    END IF;
END $$;

CREATE FUNCTION holdfast.check_time(what text, value timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF value < '1970-01-01 00:00:00+00' OR value > '9999-12-31 23:59:59+00' THEN
        PERFORM holdfast.refuse('HF001', format('%s is %s', what, value), 'Give a time between 1970 and 9999.');
    END IF;
END $$;

CREATE FUNCTION holdfast.check_duration(what text, value interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF value < interval '0' OR value > interval '36525 days' THEN
        PERFORM holdfast.refuse('HF001', format('%s is %s', what, value), 'Give 0 to 100 years.');
    END IF;
END $$;

-- ---- What the three functions share ----

-- The tenant's id.
CREATE FUNCTION holdfast.find_tenant(name text, allow_disabled boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    found record;
BEGIN
    SELECT t.id, t.disabled INTO found FROM holdfast.tenant t WHERE t.name = find_tenant.name;
    IF found.id IS NULL THEN
        PERFORM holdfast.refuse('HF003', format('there is no tenant %s', coalesce(quote_ident(name), 'null')),
                                'Create it with: holdfast tenant create');
    ELSIF found.disabled AND NOT allow_disabled THEN
        PERFORM holdfast.refuse('HF012', format('the tenant %s is disabled', quote_ident(name)),
                                'Enable it with: holdfast tenant enable');
    END IF;
    RETURN found.id;
END $$;

-- Wakes workers for a lane with the commit. What is due now is told without its time, so that the server drops
-- repetitions.
CREATE FUNCTION holdfast.wake_lane(lane int, run_at bigint, more text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('holdfast_wake',
                      lane || CASE WHEN run_at > holdfast.now() THEN '@' || run_at ELSE '' END || more);
END $$;

-- Tells those who wait for a run, or follow it.
CREATE FUNCTION holdfast.wake_watchers(run uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('holdfast_run', replace(run::text, '-', ''));
END $$;

-- One line of the journal of a run that the caller has locked, or just made.
CREATE FUNCTION holdfast.journal(tenant_id int, run uuid, seq int, version int, kind int, name text, actor text, data text)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.event (tenant_id, run_id, seq, version, at, kind, name, actor, data)
    VALUES (journal.tenant_id, run, journal.seq, journal.version, holdfast.now(), journal.kind, journal.name,
            journal.actor, journal.data);
END $$;

-- The tags as the library stores them. Null when there are none.
CREATE FUNCTION holdfast.tags_json(tags text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    tag text;
BEGIN
    IF cardinality(tags) > 32 THEN
        PERFORM holdfast.refuse('HF001', format('the run has %s tags', cardinality(tags)), 'Give at most 32.');
    END IF;
    FOREACH tag IN ARRAY coalesce(tags, '{}') LOOP
        PERFORM holdfast.check_label('tag', coalesce(tag, ''));
    END LOOP;
    RETURN (SELECT '[' || string_agg(to_json(t.tag)::text, ',' ORDER BY t.place) || ']'
              FROM unnest(tags) WITH ORDINALITY AS t(tag, place));
END $$;

-- ---- trigger ----

-- Starts a run when the caller's transaction commits, and gives its id. With a key that a run of this workflow has
-- already, gives that run's id if its input is the same, and is refused otherwise.
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
    tenant       text        DEFAULT 'default'
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
BEGIN
    PERFORM holdfast.check_name('workflow name', workflow);
    IF starts_with(workflow, 'holdfast.') THEN
        PERFORM holdfast.refuse('HF001', 'names that begin with "holdfast." are the engine''s own', 'Use another name.');
    END IF;
    PERFORM holdfast.check_json('input', input);
    PERFORM holdfast.check_label('key', key);
    PERFORM holdfast.check_label('subject', subject);
    PERFORM holdfast.check_label('reference', reference);
    PERFORM holdfast.check_label('partition', partition);
    PERFORM holdfast.check_label('trace', trace);
    PERFORM holdfast.check_range('priority', priority, -1000, 1000);
    PERFORM holdfast.check_range('max_attempts', max_attempts, 0, 1000000);
    PERFORM holdfast.check_time('run_at', run_at);
    PERFORM holdfast.check_time('timeout_at', timeout_at);
    PERFORM holdfast.check_duration('delay', delay);
    PERFORM holdfast.check_duration('timeout', timeout);
    labels := holdfast.tags_json(tags);
    tenant_no := holdfast.find_tenant(tenant, false);

    SELECT w.id, w.lane, w.timeout, w.definition_hash INTO flow
      FROM holdfast.workflow w WHERE w.tenant_id = tenant_no AND w.name = trigger.workflow;
    IF flow.id IS NULL THEN
        PERFORM holdfast.refuse('HF005', format('no workflow is named "%s"', workflow),
            format('Create it (holdfast workflow create %s) or start a worker that registers it.', workflow));
    END IF;
    deadline := coalesce(holdfast.as_us(timeout_at), now + nullif(holdfast.as_us(timeout), 0), now + flow.timeout);

    LOOP
        INSERT INTO holdfast.run AS r (tenant_id, id, workflow_id, lane, key, priority, run_at, timeout_at, max_attempts,
            input, subject, reference, tags, partition, trace, actor, event_seq, created_at, updated_at, definition_hash)
        VALUES (tenant_no, new_run, flow.id, flow.lane, trigger.key, coalesce(trigger.priority, 0),
            least(coalesce(holdfast.as_us(trigger.run_at), now + coalesce(holdfast.as_us(delay), 0)), deadline), deadline,
            nullif(trigger.max_attempts, 0), trigger.input, trigger.subject, trigger.reference, labels, trigger.partition,
            trigger.trace, session_user, 1, now, now, flow.definition_hash)
        ON CONFLICT DO NOTHING
        RETURNING r.lane, r.run_at INTO made;
        EXIT WHEN made.lane IS NOT NULL;

        SELECT r.id, r.input INTO taken FROM holdfast.run r
         WHERE r.workflow_id = flow.id AND r.key = trigger.key AND r.key IS NOT NULL AND r.deleted_at IS NULL;
        IF taken.id IS NULL THEN
            CONTINUE; -- whoever had the key is gone since
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
    partition text DEFAULT NULL, trace text DEFAULT NULL, tenant text DEFAULT 'default'
) RETURNS uuid LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT holdfast.trigger(workflow, input::text, key, priority, run_at, delay, timeout, timeout_at, max_attempts,
                            subject, reference, tags, partition, trace, tenant);
END;

CREATE FUNCTION holdfast.trigger(
    workflow text, input json, key text DEFAULT NULL, priority int DEFAULT 0, run_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, timeout interval DEFAULT NULL, timeout_at timestamptz DEFAULT NULL,
    max_attempts int DEFAULT NULL, subject text DEFAULT NULL, reference text DEFAULT NULL, tags text[] DEFAULT NULL,
    partition text DEFAULT NULL, trace text DEFAULT NULL, tenant text DEFAULT 'default'
) RETURNS uuid LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT holdfast.trigger(workflow, input::text, key, priority, run_at, delay, timeout, timeout_at, max_attempts,
                            subject, reference, tags, partition, trace, tenant);
END;

-- ---- signal ----

-- Puts one more input into a run's mailbox and wakes the run. False: a signal with this id arrived before, and
-- nothing was done.
CREATE FUNCTION holdfast.signal(
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
    stale     boolean;
    earlier   boolean;
BEGIN
    PERFORM holdfast.check_label('signal name', coalesce(name, ''));
    PERFORM holdfast.check_label('signal id', id);
    PERFORM holdfast.check_name('signal type', type);
    PERFORM holdfast.check_label('token', token);
    PERFORM holdfast.check_json('payload', payload);
    PERFORM holdfast.check_range('expected_revision', expected_revision, 0, 2147483647);
    PERFORM holdfast.check_duration('delay', delay);
    tenant_no := holdfast.find_tenant(tenant, true);
    id := coalesce(id, holdfast.new_id()::text);

    SELECT r.lane, r.status, r.watched, r.version, r.revision, r.event_seq, r.run_at, r.due_at, r.waiting_kind,
           r.waiting_token, r.deleted_at
      INTO target
      FROM holdfast.run r WHERE r.tenant_id = tenant_no AND r.id = signal.run
       FOR NO KEY UPDATE;
    IF target.lane IS NULL OR target.deleted_at IS NOT NULL THEN
        PERFORM holdfast.refuse('HF003', format('there is no run %s: it does not exist or was deleted', run),
                                'Look for it in holdfast.runs; a run of another tenant is named with tenant =>.');
    ELSIF EXISTS (SELECT 1 FROM holdfast.signal s WHERE s.run_id = signal.run AND s.id = signal.id) THEN
        RETURN false;
    ELSIF nullif(expected_revision, 0) <> target.revision THEN
        PERFORM holdfast.refuse('HF009', format('the run is at revision %s, not %s', target.revision, expected_revision),
                                'Read it again.');
    ELSIF target.status >= 4 THEN
        PERFORM holdfast.refuse('HF007', format('the run has finished (%s)', holdfast.status_name(target.status)),
                                'A finished run takes no more signals.');
    END IF;

    visible := now + coalesce(holdfast.as_us(delay), 0);
    stale := token IS NOT NULL AND token IS DISTINCT FROM target.waiting_token
             AND (target.status = 2 OR (target.status = 3 AND target.waiting_kind IS NOT NULL));
    earlier := NOT stale AND ((target.status IN (0, 2) AND (target.run_at IS NULL OR visible < target.run_at))
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

CREATE FUNCTION holdfast.signal(
    run uuid, name text, payload jsonb, id text DEFAULT NULL, token text DEFAULT NULL, delay interval DEFAULT NULL,
    expected_revision bigint DEFAULT NULL, type text DEFAULT 'external', tenant text DEFAULT 'default'
) RETURNS boolean LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT holdfast.signal(run, name, payload::text, id, token, delay, expected_revision, type, tenant);
END;

CREATE FUNCTION holdfast.signal(
    run uuid, name text, payload json, id text DEFAULT NULL, token text DEFAULT NULL, delay interval DEFAULT NULL,
    expected_revision bigint DEFAULT NULL, type text DEFAULT 'external', tenant text DEFAULT 'default'
) RETURNS boolean LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT holdfast.signal(run, name, payload::text, id, token, delay, expected_revision, type, tenant);
END;

-- ---- cancel ----

-- Tells a parent that a child was cancelled: mail, and a turn when it was the last one it waits for. A parent that
-- failed or was cancelled is told too, since it may be retried; one that knows of an earlier end is not told again.
-- After the child's lock.
CREATE FUNCTION holdfast.mail_parent_of_cancelled(tenant_no int, child uuid, flow text, child_key text, parent_run uuid)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    waiter record;
    now    bigint := holdfast.now();
    turn   boolean;
BEGIN
    SELECT r.lane, r.status, r.wait_count, r.wake_on_failure INTO waiter
      FROM holdfast.run r WHERE r.tenant_id = tenant_no AND r.id = parent_run
       FOR NO KEY UPDATE;
    IF waiter.lane IS NULL OR waiter.status = 4
       OR EXISTS (SELECT 1 FROM holdfast.signal s WHERE s.run_id = parent_run AND s.id = 'child:' || child) THEN
        RETURN;
    END IF;
    INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, payload, sender, failed_child, occurred_at, visible_at)
    VALUES (tenant_no, parent_run, 'child:' || child, 'child', coalesce(child_key, flow),
            format('{"run":"%s","workflow":"%s","status":"cancelled","key":%s,"result":null,"error":null}', child, flow,
                   coalesce(to_json(child_key)::text, 'null')), child, true, now, now)
    ON CONFLICT (run_id, id) DO NOTHING;
    turn := waiter.wait_count > 0 AND (waiter.wait_count = 1 OR waiter.wake_on_failure);
    UPDATE holdfast.run r
       SET has_mail = true, wait_count = greatest(r.wait_count - 1, 0), updated_at = now,
           run_at = CASE WHEN turn AND r.status = 2 THEN now ELSE r.run_at END,
           due_at = CASE WHEN turn AND r.status = 3 THEN now ELSE r.due_at END
     WHERE r.tenant_id = tenant_no AND r.id = parent_run;
    IF turn AND waiter.status = 2 THEN
        PERFORM holdfast.wake_lane(waiter.lane, now);
    END IF;
END $$;

-- Children are cancelled by a run of the engine's own.
CREATE FUNCTION holdfast.start_cancel_children(tenant_no int, cancelled uuid) RETURNS void LANGUAGE plpgsql AS $$
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
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, run_at, timeout_at, input, actor, event_seq, created_at,
                              updated_at, definition_hash)
    VALUES (tenant_no, new_run, flow.id, flow.lane, now, now + flow.timeout,
            format('{"run":"%s"}', cancelled), session_user, 1, now, now, flow.definition_hash);
    PERFORM holdfast.journal(tenant_no, new_run, 1, 1, 0, 'created', session_user, NULL);
    PERFORM holdfast.wake_lane(flow.lane, now, '!workflows');
END $$;

-- Cancels a run that is not finished, and its children. Its holder, if it has one, finds out at its next sign of
-- life.
CREATE FUNCTION holdfast.cancel(
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

    SELECT r.status, r.watched, r.version, r.revision, r.event_seq, r.deleted_at, r.parent, r.key, w.name AS workflow
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

-- Whoever may read views need not be allowed to change runs.
DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT p.oid FROM pg_catalog.pg_proc p
                     WHERE p.pronamespace = 'holdfast'::pg_catalog.regnamespace AND p.prosecdef LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', function);
    END LOOP;
END $$;

-- ---- Views for people ----

CREATE VIEW holdfast.runs WITH (security_invoker = true) AS
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
       holdfast.as_time(r.deleted_at) AS deleted_at, r.delete_reason
  FROM holdfast.run r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
  JOIN holdfast.tenant t ON t.id = r.tenant_id;

CREATE VIEW holdfast.events WITH (security_invoker = true) AS
SELECT e.run_id AS run, e.seq, holdfast.as_time(e.at) AS at, holdfast.kind_name(e.kind) AS kind, e.name, e.actor, e.step,
       holdfast.as_jsonb(e.data) AS data, e.version, e.position, t.name AS tenant
  FROM holdfast.event e
  JOIN holdfast.tenant t ON t.id = e.tenant_id;

CREATE VIEW holdfast.steps WITH (security_invoker = true) AS
SELECT e.run_id AS run, e.seq, e.step, e.name AS status, holdfast.as_time(e.at) AS at, e.actor AS worker,
       holdfast.as_jsonb(e.data) AS data, t.name AS tenant
  FROM holdfast.event e
  JOIN holdfast.tenant t ON t.id = e.tenant_id
 WHERE e.kind = 2;

CREATE VIEW holdfast.signals WITH (security_invoker = true) AS
SELECT s.run_id AS run, s.id, s.position, s.type, s.name, holdfast.as_jsonb(s.payload) AS payload, s.token, s.timer_key,
       s.sender, s.attempts, holdfast.as_time(s.occurred_at) AS occurred_at, holdfast.as_time(s.visible_at) AS visible_at,
       holdfast.as_time(s.consumed_at) AS consumed_at, t.name AS tenant
  FROM holdfast.signal s
  JOIN holdfast.tenant t ON t.id = s.tenant_id;

CREATE VIEW holdfast.workflows WITH (security_invoker = true) AS
SELECT t.name AS tenant, w.name, w.paused, w.max_attempts, holdfast.as_interval(w.retry_base) AS retry_base,
       holdfast.as_interval(w.retry_cap) AS retry_cap, holdfast.as_interval(w.lease) AS lease,
       holdfast.as_interval(w.timeout) AS timeout, holdfast.as_interval(w.retention) AS retention, w.dead_letter,
       w.definition, holdfast.as_time(w.created_at) AS created_at, holdfast.as_time(w.updated_at) AS updated_at,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.lane = w.lane AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2) AND r.run_at <= holdfast.now()) AS due,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.lane = w.lane AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2) AND r.run_at > holdfast.now()) AS delayed,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.lane = w.lane AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status = 1) AS leased,
       (SELECT count(*) FROM holdfast.run r
         WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL) AS failed
  FROM holdfast.workflow w
  JOIN holdfast.tenant t ON t.id = w.tenant_id;

CREATE VIEW holdfast.workers WITH (security_invoker = true) AS
SELECT w.name, w.host, w.pid, w.program, holdfast.as_jsonb(w.tenants) AS tenants, holdfast.as_jsonb(w.serves) AS serves,
       w.threads, w.running, w.expires_at > holdfast.now() AS live, w.idle, w.draining,
       holdfast.as_time(w.started_at) AS started_at, holdfast.as_time(w.seen_at) AS seen_at,
       holdfast.as_time(w.expires_at) AS expires_at
  FROM holdfast.worker w;
