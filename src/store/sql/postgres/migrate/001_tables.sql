-- The tables of Holdfast. Times are bigint microseconds since the epoch, on the database's clock.

CREATE SCHEMA IF NOT EXISTS holdfast;

CREATE TABLE holdfast.schema_version (
    version    int    NOT NULL PRIMARY KEY,
    name       text   NOT NULL,
    min_writer int    NOT NULL, -- the oldest schema version a program must know to write here
    applied_at bigint NOT NULL
);

-- The store's clock. Everything that needs the time asks here, so that tests can own it.
CREATE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint $$;

CREATE TABLE holdfast.tenant (
    id         int     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text    NOT NULL UNIQUE,
    disabled   boolean NOT NULL DEFAULT false,
    created_at bigint  NOT NULL DEFAULT holdfast.now()
);
INSERT INTO holdfast.tenant (name) VALUES ('default');

CREATE SEQUENCE holdfast.lane_id AS int;

CREATE TABLE holdfast.workflow (
    id              int     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       int     NOT NULL,
    name            text    NOT NULL COLLATE "C",
    lane            int     NOT NULL DEFAULT nextval('holdfast.lane_id'), -- the lane of runs without a flow key
    paused          boolean NOT NULL DEFAULT false,
    max_attempts    int     NOT NULL DEFAULT 3,
    retry_base      bigint  NOT NULL DEFAULT 1000000,
    retry_cap       bigint  NOT NULL DEFAULT 300000000,
    lease           bigint  NOT NULL DEFAULT 30000000,
    timeout         bigint,
    retention       bigint,
    dead_letter     text,
    definition      text,
    definition_hash text,
    max_running     int,    -- flow control: runs leased at once; null: no limit
    rate_count      int,    -- starts per rate_interval
    rate_interval   bigint,
    created_at      bigint  NOT NULL DEFAULT holdfast.now(),
    updated_at      bigint  NOT NULL DEFAULT holdfast.now(),
    UNIQUE (tenant_id, name)
);

-- A lane is what is claimed from: a workflow of a tenant, or a workflow and a flow key.
CREATE TABLE holdfast.lane (
    id          int    NOT NULL PRIMARY KEY,
    tenant_id   int    NOT NULL,
    workflow_id int    NOT NULL,
    flow_key    text,
    weight      int    NOT NULL DEFAULT 1,
    created_at  bigint NOT NULL DEFAULT holdfast.now()
);
CREATE UNIQUE INDEX lane_key ON holdfast.lane (workflow_id, coalesce(flow_key, ''));

CREATE TABLE holdfast.run (
    tenant_id       int      NOT NULL,
    id              uuid     NOT NULL,
    workflow_id     int      NOT NULL,
    lane            int      NOT NULL,
    status          smallint NOT NULL DEFAULT 0, -- 0 pending 1 leased 2 waiting 3 paused 4 succeeded 5 failed 6 cancelled
    claimed_from    smallint NOT NULL DEFAULT 0, -- the status before the last claim; 1: its lease had expired
    watched         smallint NOT NULL DEFAULT 0, -- 1: tell when it finishes, 2: tell of every event
    pause_requested boolean  NOT NULL DEFAULT false,
    wake_on_failure boolean  NOT NULL DEFAULT false, -- a child that failed wakes it before wait_count is 0
    has_mail        boolean  NOT NULL DEFAULT false, -- a signal or timer has ever arrived
    has_steps       boolean  NOT NULL DEFAULT false, -- a step has ever been recorded
    priority        int      NOT NULL DEFAULT 0,
    attempt         int      NOT NULL DEFAULT 0,
    version         int      NOT NULL DEFAULT 1,
    revision        int      NOT NULL DEFAULT 1,
    event_seq       int      NOT NULL DEFAULT 0,
    wait_count      int      NOT NULL DEFAULT 0,
    max_attempts    int,                         -- null: the workflow's
    run_at          bigint,                      -- wants attention next; leased: end of the lease; null: on a signal only
    created_at      bigint   NOT NULL,
    updated_at      bigint   NOT NULL,
    started_at      bigint,
    finished_at     bigint,
    paused_at       bigint,
    due_at          bigint,                      -- run_at as it was before the claim or the pause
    timeout_at      bigint,
    waiting_until   bigint,
    deleted_at      bigint,
    parent          uuid,
    root            uuid,
    active_task     uuid,
    key             text COLLATE "C",
    leased_by       text,
    last_worker     text,
    input           text,
    state           text,
    result          text,
    error           text,
    error_code      text,
    last_error      text,
    current_step    text,
    waiting_kind    text,
    waiting_token   text,
    last_signal     text,
    subject         text,
    reference       text,
    tags            text,                        -- JSON array of strings
    partition       text,
    trace           text,
    actor           text,
    definition_hash text,
    delete_reason   text,
    PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 75,
        autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_vacuum_cost_delay = 0);

-- The one index of the claim: unfinished runs that want attention at a known time.
CREATE INDEX run_claim ON holdfast.run (lane, priority DESC, run_at)
    WHERE status <= 3 AND deleted_at IS NULL AND run_at IS NOT NULL;
CREATE UNIQUE INDEX run_key ON holdfast.run (workflow_id, key)
    WHERE key IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX run_failed ON holdfast.run (workflow_id, id) WHERE status = 5 AND deleted_at IS NULL;
CREATE INDEX run_parent ON holdfast.run (tenant_id, parent) WHERE parent IS NOT NULL;
CREATE INDEX run_subject ON holdfast.run (tenant_id, subject, id) WHERE subject IS NOT NULL;
CREATE INDEX run_reference ON holdfast.run (tenant_id, reference, id) WHERE reference IS NOT NULL;

CREATE TABLE holdfast.run_tag (
    tenant_id int  NOT NULL,
    tag       text NOT NULL COLLATE "C",
    run_id    uuid NOT NULL,
    PRIMARY KEY (tenant_id, tag, run_id)
);

CREATE SEQUENCE holdfast.event_position;

CREATE TABLE holdfast.event (
    run_id    uuid     NOT NULL,
    seq       int      NOT NULL,
    version   int      NOT NULL, -- the run's version after the change
    tenant_id int      NOT NULL,
    position  bigint   NOT NULL DEFAULT nextval('holdfast.event_position'),
    xid       xid8     NOT NULL DEFAULT pg_current_xact_id(),
    at        bigint   NOT NULL,
    kind      smallint NOT NULL, -- 0 lifecycle 1 domain 2 step 3 task 4 signal
    format    smallint NOT NULL DEFAULT 1,
    name      text     NOT NULL,
    actor     text,
    step      text,
    data      text,
    PRIMARY KEY (run_id, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX event_by_position ON holdfast.event USING brin (position);

CREATE SEQUENCE holdfast.signal_position;

CREATE TABLE holdfast.signal (
    tenant_id         int      NOT NULL,
    run_id            uuid     NOT NULL,
    id                text     NOT NULL COLLATE "C",
    position          bigint   NOT NULL DEFAULT nextval('holdfast.signal_position'),
    type              text     NOT NULL, -- external, timer, child, task, retry, continue
    name              text     NOT NULL,
    payload           text,
    token             text,
    timer_key         text COLLATE "C",
    sender            text,
    expected_revision int,
    attempts          int      NOT NULL DEFAULT 0,
    failed_child      boolean  NOT NULL DEFAULT false,
    occurred_at       bigint   NOT NULL,
    visible_at        bigint   NOT NULL,
    consumed_at       bigint,
    PRIMARY KEY (run_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX signal_mailbox ON holdfast.signal (run_id, visible_at, position) WHERE consumed_at IS NULL;
CREATE UNIQUE INDEX signal_timer ON holdfast.signal (run_id, timer_key)
    WHERE timer_key IS NOT NULL AND consumed_at IS NULL;

CREATE TABLE holdfast.task (
    tenant_id    int    NOT NULL,
    id           uuid   NOT NULL,
    run_id       uuid   NOT NULL,
    name         text   NOT NULL,
    status       smallint NOT NULL DEFAULT 0, -- 0 open 1 claimed 2 completed 3 cancelled
    version      int    NOT NULL DEFAULT 1,
    assignee     text,
    roles        text,
    payload      text,
    form         text,
    token        text,
    outcome      text,
    result       text,
    due_at       bigint,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    completed_at bigint,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX task_run ON holdfast.task (run_id);
CREATE INDEX task_open ON holdfast.task (tenant_id, assignee, due_at) WHERE status <= 1;

CREATE TABLE holdfast.outbox (
    id           uuid   NOT NULL PRIMARY KEY,
    position     bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id    int    NOT NULL,
    run_id       uuid   NOT NULL,
    seq          int    NOT NULL, -- order within the run
    type         text   NOT NULL,
    payload      text,
    created_at   bigint NOT NULL,
    published_at bigint,
    attempts     int    NOT NULL DEFAULT 0,
    last_error   text
);
CREATE INDEX outbox_unpublished ON holdfast.outbox (position) WHERE published_at IS NULL;
CREATE INDEX outbox_run ON holdfast.outbox (run_id);

CREATE TABLE holdfast.subscription (
    id         uuid    NOT NULL PRIMARY KEY,
    tenant_id  int     NOT NULL,
    name       text    NOT NULL,
    url        text    NOT NULL,
    filter     text,
    secret     text,
    position   bigint  NOT NULL DEFAULT 0, -- delivered up to here
    parked     boolean NOT NULL DEFAULT false,
    attempts   int     NOT NULL DEFAULT 0,
    last_error text,
    created_at bigint  NOT NULL,
    updated_at bigint  NOT NULL,
    UNIQUE (tenant_id, name)
);

CREATE TABLE holdfast.dead_letter (
    tenant_id  int    NOT NULL,
    id         uuid   NOT NULL DEFAULT gen_random_uuid(),
    run_id     uuid,
    reason     text   NOT NULL,
    envelope   text   NOT NULL, -- JSON
    node       text,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX dead_letter_run ON holdfast.dead_letter (run_id);

CREATE TABLE holdfast.worker (
    name       text    NOT NULL PRIMARY KEY,
    tenants    text    NOT NULL, -- JSON array of names; ["*"]: all
    serves     text    NOT NULL, -- JSON array of patterns
    host       text    NOT NULL,
    pid        int     NOT NULL,
    program    text    NOT NULL,
    threads    int     NOT NULL,
    running    int     NOT NULL DEFAULT 0,
    idle       boolean NOT NULL DEFAULT false, -- asleep: wants to be notified
    draining   boolean NOT NULL DEFAULT false,
    started_at bigint  NOT NULL,
    seen_at    bigint  NOT NULL,
    expires_at bigint  NOT NULL -- dead when this has passed
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE TABLE holdfast.schedule (
    tenant_id   int     NOT NULL,
    name        text    NOT NULL,
    workflow_id int     NOT NULL,
    spec        text    NOT NULL,
    timezone    text    NOT NULL DEFAULT 'UTC',
    input       text,
    overlap     text    NOT NULL DEFAULT 'skip',
    catch_up    text    NOT NULL DEFAULT 'one',
    paused      boolean NOT NULL DEFAULT false,
    run_id      uuid,
    next_at     bigint,
    last_at     bigint,
    created_at  bigint  NOT NULL,
    updated_at  bigint  NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE holdfast.projection (
    tenant_id  int    NOT NULL,
    name       text   NOT NULL,
    block      bigint NOT NULL DEFAULT 0,
    position   bigint NOT NULL DEFAULT 0,
    state      text,
    parked     text,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE holdfast.seal (
    block      bigint NOT NULL PRIMARY KEY,
    lo_xid     xid8   NOT NULL,
    hi_xid     xid8   NOT NULL,
    events     bigint NOT NULL,
    hash       bytea  NOT NULL,
    previous   bytea,
    runs       text,   -- per-run hashes
    created_at bigint NOT NULL
);

CREATE TABLE holdfast.host_lock (
    tenant_id int    NOT NULL,
    name      text   NOT NULL,
    holder    text,
    token     bigint NOT NULL DEFAULT 0, -- rises with every new holder
    until     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE holdfast.api_token (
    id         uuid   NOT NULL PRIMARY KEY,
    tenant_id  int    NOT NULL,
    name       text   NOT NULL,
    hash       bytea  NOT NULL UNIQUE,
    roles      text   NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

-- The journal is append-only. Events go only after their run is gone, and a run only when it is finished or deleted.
CREATE FUNCTION holdfast.refuse_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF NOT EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = OLD.tenant_id AND r.id = OLD.run_id) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the journal is append-only: % of holdfast.event is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege', HINT = 'Purge finished runs with: holdfast purge';
END $$;
CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE ON holdfast.event
    FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_event_change();
CREATE TRIGGER event_no_truncate BEFORE TRUNCATE ON holdfast.event
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_event_change();

CREATE FUNCTION holdfast.refuse_run_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.status >= 4 OR OLD.deleted_at IS NOT NULL THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'a run that is not finished cannot be removed'
        USING ERRCODE = 'insufficient_privilege', HINT = 'Cancel it first, or delete it softly with: holdfast delete';
END $$;
CREATE TRIGGER run_removal BEFORE DELETE ON holdfast.run
    FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_run_removal();
CREATE TRIGGER run_no_truncate BEFORE TRUNCATE ON holdfast.run
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_run_removal();
