-- The tables of Holdfast. Times are microseconds since the epoch. Ids are UUIDs in 16 bytes.

CREATE TABLE schema_version (
    version         INTEGER NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    min_writer      INTEGER NOT NULL, -- the oldest schema version a program must know to write here
    applied_at      INTEGER NOT NULL
);

CREATE TABLE tenant (
    id              INTEGER PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    disabled        INTEGER NOT NULL DEFAULT 0,
    created_at      INTEGER NOT NULL
);
INSERT INTO tenant (name, created_at)
    VALUES ('default', CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));

CREATE TABLE workflow (
    id              INTEGER PRIMARY KEY,
    tenant_id       INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    lane            INTEGER NOT NULL, -- the lane of runs without a flow key
    paused          INTEGER NOT NULL DEFAULT 0,
    max_attempts    INTEGER NOT NULL DEFAULT 3,
    retry_base      INTEGER NOT NULL DEFAULT 1000000,
    retry_cap       INTEGER NOT NULL DEFAULT 300000000,
    lease           INTEGER NOT NULL DEFAULT 30000000,
    timeout         INTEGER,
    retention       INTEGER,
    dead_letter     TEXT,
    definition      TEXT,
    definition_hash TEXT,
    max_running     INTEGER,    -- flow control: runs leased at once; null: no limit
    rate_count      INTEGER,    -- starts per rate_interval
    rate_interval   INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (tenant_id, name)
);

-- A lane is what is claimed from: a workflow of a tenant, or a workflow and a flow key.
CREATE TABLE lane (
    id              INTEGER NOT NULL PRIMARY KEY,
    tenant_id       INTEGER NOT NULL,
    workflow_id     INTEGER NOT NULL,
    flow_key        TEXT,
    weight          INTEGER NOT NULL DEFAULT 1,
    created_at      INTEGER NOT NULL
);
CREATE UNIQUE INDEX lane_key ON lane (workflow_id, coalesce(flow_key, ''));

CREATE TABLE run (
    tenant_id       INTEGER NOT NULL,
    id              BLOB    NOT NULL,
    workflow_id     INTEGER NOT NULL,
    lane            INTEGER NOT NULL,
    status          INTEGER NOT NULL DEFAULT 0, -- 0 pending 1 leased 2 waiting 3 paused 4 succeeded 5 failed 6 cancelled
    claimed_from    INTEGER NOT NULL DEFAULT 0, -- the status before the last claim; 1: its lease had expired
    watched         INTEGER NOT NULL DEFAULT 0, -- 1: tell when it finishes, 2: tell of every event
    pause_requested INTEGER NOT NULL DEFAULT 0,
    wake_on_failure INTEGER NOT NULL DEFAULT 0, -- a child that failed wakes it before wait_count is 0
    has_mail        INTEGER NOT NULL DEFAULT 0, -- a signal or timer has ever arrived
    has_steps       INTEGER NOT NULL DEFAULT 0, -- a step has ever been recorded
    priority        INTEGER NOT NULL DEFAULT 0,
    attempt         INTEGER NOT NULL DEFAULT 0,
    version         INTEGER NOT NULL DEFAULT 1,
    revision        INTEGER NOT NULL DEFAULT 1,
    event_seq       INTEGER NOT NULL DEFAULT 0,
    wait_count      INTEGER NOT NULL DEFAULT 0,
    max_attempts    INTEGER, -- null: the workflow's
    run_at          INTEGER, -- wants attention next; leased: end of the lease; null: on a signal only
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    started_at      INTEGER,
    finished_at     INTEGER,
    paused_at       INTEGER,
    due_at          INTEGER, -- run_at as it was before the claim or the pause
    timeout_at      INTEGER,
    waiting_until   INTEGER,
    deleted_at      INTEGER,
    parent          BLOB,
    root            BLOB,
    active_task     BLOB,
    key             TEXT,
    leased_by       TEXT,
    last_worker     TEXT,
    input           TEXT,
    state           TEXT,
    result          TEXT,
    error           TEXT,
    error_code      TEXT,
    last_error      TEXT,
    current_step    TEXT,
    waiting_kind    TEXT,
    waiting_token   TEXT,
    last_signal     TEXT,
    subject         TEXT,
    reference       TEXT,
    tags            TEXT, -- JSON array of strings
    partition       TEXT,
    trace           TEXT,
    actor           TEXT,
    definition_hash TEXT,
    delete_reason   TEXT,
    PRIMARY KEY (tenant_id, id)
);

-- The one index of the claim: unfinished runs that want attention at a known time.
CREATE INDEX run_claim ON run (lane, priority DESC, run_at)
    WHERE status <= 3 AND deleted_at IS NULL AND run_at IS NOT NULL;
CREATE UNIQUE INDEX run_key ON run (workflow_id, key)
    WHERE key IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX run_failed ON run (workflow_id, id) WHERE status = 5 AND deleted_at IS NULL;
CREATE INDEX run_parent ON run (tenant_id, parent) WHERE parent IS NOT NULL;
CREATE INDEX run_subject ON run (tenant_id, subject, id) WHERE subject IS NOT NULL;
CREATE INDEX run_reference ON run (tenant_id, reference, id) WHERE reference IS NOT NULL;

CREATE TABLE run_tag (
    tenant_id       INTEGER NOT NULL,
    tag             TEXT    NOT NULL,
    run_id          BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, tag, run_id)
) WITHOUT ROWID;

CREATE TABLE event (
    run_id          BLOB    NOT NULL,
    seq             INTEGER NOT NULL,
    version         INTEGER NOT NULL, -- the run's version after the change
    tenant_id       INTEGER NOT NULL,
    position        INTEGER PRIMARY KEY AUTOINCREMENT, -- place among all events
    at              INTEGER NOT NULL,
    kind            INTEGER NOT NULL, -- 0 lifecycle 1 domain 2 step 3 task 4 signal
    format          INTEGER NOT NULL DEFAULT 1,
    name            TEXT    NOT NULL,
    actor           TEXT,
    step            TEXT,
    data            TEXT,
    UNIQUE (run_id, seq)
);

CREATE TABLE signal (
    tenant_id       INTEGER NOT NULL,
    run_id          BLOB    NOT NULL,
    id              TEXT    NOT NULL,
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    type            TEXT    NOT NULL, -- external, timer, child, task, retry, continue
    name            TEXT    NOT NULL,
    payload         TEXT,
    token           TEXT,
    timer_key       TEXT,
    sender          TEXT,
    expected_revision INTEGER,
    attempts        INTEGER NOT NULL DEFAULT 0,
    failed_child    INTEGER NOT NULL DEFAULT 0,
    occurred_at     INTEGER NOT NULL,
    visible_at      INTEGER NOT NULL,
    consumed_at     INTEGER,
    UNIQUE (run_id, id)
);
CREATE INDEX signal_mailbox ON signal (run_id, visible_at, position) WHERE consumed_at IS NULL;
CREATE UNIQUE INDEX signal_timer ON signal (run_id, timer_key)
    WHERE timer_key IS NOT NULL AND consumed_at IS NULL;

CREATE TABLE task (
    tenant_id       INTEGER NOT NULL,
    id              BLOB    NOT NULL,
    run_id          BLOB    NOT NULL,
    name            TEXT    NOT NULL,
    status          INTEGER NOT NULL DEFAULT 0, -- 0 open 1 claimed 2 completed 3 cancelled
    version         INTEGER NOT NULL DEFAULT 1,
    assignee        TEXT,
    roles           TEXT,
    payload         TEXT,
    form            TEXT,
    token           TEXT,
    outcome         TEXT,
    result          TEXT,
    due_at          INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    completed_at    INTEGER,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX task_run ON task (run_id);
CREATE INDEX task_open ON task (tenant_id, assignee, due_at) WHERE status <= 1;

CREATE TABLE outbox (
    id              BLOB    NOT NULL UNIQUE,
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id       INTEGER NOT NULL,
    run_id          BLOB    NOT NULL,
    seq             INTEGER NOT NULL, -- order within the run
    type            TEXT    NOT NULL,
    payload         TEXT,
    created_at      INTEGER NOT NULL,
    published_at    INTEGER,
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT
);
CREATE INDEX outbox_unpublished ON outbox (position) WHERE published_at IS NULL;
CREATE INDEX outbox_run ON outbox (run_id);

CREATE TABLE subscription (
    id              BLOB    NOT NULL PRIMARY KEY,
    tenant_id       INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    url             TEXT    NOT NULL,
    filter          TEXT,
    secret          TEXT,
    position        INTEGER NOT NULL DEFAULT 0, -- delivered up to here
    parked          INTEGER NOT NULL DEFAULT 0,
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (tenant_id, name)
);

CREATE TABLE dead_letter (
    tenant_id       INTEGER NOT NULL,
    id              BLOB    NOT NULL,
    run_id          BLOB,
    reason          TEXT    NOT NULL,
    envelope        TEXT    NOT NULL, -- JSON
    node            TEXT,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX dead_letter_run ON dead_letter (run_id);

CREATE TABLE worker (
    name            TEXT    NOT NULL PRIMARY KEY,
    tenants         TEXT    NOT NULL, -- JSON array of names; ["*"]: all
    serves          TEXT    NOT NULL, -- JSON array of patterns
    host            TEXT    NOT NULL,
    pid             INTEGER NOT NULL,
    program         TEXT    NOT NULL,
    threads         INTEGER NOT NULL,
    running         INTEGER NOT NULL DEFAULT 0,
    idle            INTEGER NOT NULL DEFAULT 0, -- asleep: wants to be notified
    draining        INTEGER NOT NULL DEFAULT 0,
    started_at      INTEGER NOT NULL,
    seen_at         INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL -- dead when this has passed
);

CREATE TABLE schedule (
    tenant_id       INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    workflow_id     INTEGER NOT NULL,
    spec            TEXT    NOT NULL,
    timezone        TEXT    NOT NULL DEFAULT 'UTC',
    input           TEXT,
    overlap         TEXT    NOT NULL DEFAULT 'skip',
    catch_up        TEXT    NOT NULL DEFAULT 'one',
    paused          INTEGER NOT NULL DEFAULT 0,
    run_id          BLOB,
    next_at         INTEGER,
    last_at         INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE projection (
    tenant_id       INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    block           INTEGER NOT NULL DEFAULT 0,
    position        INTEGER NOT NULL DEFAULT 0,
    state           TEXT,
    parked          TEXT,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE seal (
    block           INTEGER NOT NULL PRIMARY KEY,
    lo_position     INTEGER NOT NULL,
    hi_position     INTEGER NOT NULL,
    events          INTEGER NOT NULL,
    hash            BLOB    NOT NULL,
    previous        BLOB,
    runs            TEXT,   -- per-run hashes
    created_at      INTEGER NOT NULL
);

CREATE TABLE host_lock (
    tenant_id       INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    holder          TEXT,
    token           INTEGER NOT NULL DEFAULT 0, -- rises with every new holder
    until           INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE api_token (
    id              BLOB    NOT NULL PRIMARY KEY,
    tenant_id       INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    hash            BLOB    NOT NULL UNIQUE,
    roles           TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER,
    revoked_at      INTEGER
);

-- The journal is append-only. Events go only after their run is gone, and a run only when it is finished or deleted.
-- REPLACE deletes without a trigger, so an insert over an existing row is refused before it can.
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only: UPDATE of event is refused');
END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
WHEN EXISTS (SELECT 1 FROM run WHERE tenant_id = OLD.tenant_id AND id = OLD.run_id) BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only: DELETE of event is refused while its run exists');
END;
CREATE TRIGGER event_no_replace BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE run_id = NEW.run_id AND seq = NEW.seq)
  OR EXISTS (SELECT 1 FROM event WHERE position = NEW.position) BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only: REPLACE of event is refused');
END;
CREATE TRIGGER run_removal BEFORE DELETE ON run
WHEN OLD.status < 4 AND OLD.deleted_at IS NULL BEGIN
    SELECT RAISE(ABORT, 'a run that is not finished cannot be removed');
END;
CREATE TRIGGER run_no_replace BEFORE INSERT ON run
WHEN EXISTS (SELECT 1 FROM run WHERE tenant_id = NEW.tenant_id AND id = NEW.id)
  OR (NEW.key IS NOT NULL AND EXISTS (SELECT 1 FROM run WHERE workflow_id = NEW.workflow_id AND key = NEW.key
                                          AND deleted_at IS NULL)) BEGIN
    SELECT RAISE(IGNORE);
END;
