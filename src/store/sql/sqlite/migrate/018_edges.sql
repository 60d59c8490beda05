-- ---- What a holder sends twice is written once ----

ALTER TABLE event ADD COLUMN request TEXT; -- the first line that it wrote bears its id
ALTER TABLE event ADD COLUMN answer TEXT;  -- to it: the children that were started, ids with spaces between

-- Ids of requests are unique within a claim.
CREATE UNIQUE INDEX event_request ON event (run_id, version, request) WHERE request IS NOT NULL;

-- What was cancelled a moment ago, for those who held it: said in a form that only they use, so that nothing else is planned with it.
CREATE INDEX run_cancelled ON run (tenant_id, finished_at) WHERE status + 0 = 6;

ALTER TABLE worker ADD COLUMN stuck INTEGER NOT NULL DEFAULT 0; -- threads whose run is gone and that do not come back

-- ---- Runs that wait for a worker whose code fits their history ----

ALTER TABLE run ADD COLUMN unfit_since INTEGER; -- since when no worker's code has fitted; null: the last one's did
ALTER TABLE run ADD COLUMN unfit_pause INTEGER; -- us: the last pause before another worker looked at it
CREATE INDEX run_unfit ON run (workflow_id, unfit_since) WHERE unfit_since IS NOT NULL AND status = 2;

-- How long a run may wait for such a worker before it fails.
ALTER TABLE workflow ADD COLUMN fit_within INTEGER NOT NULL DEFAULT 86400000000;

-- ---- Runs keep their place in the order when their lease ends ----

-- What is held, by the end of its lease: said in a form that only they use who look for it, so that nothing else is planned with
-- it.
CREATE INDEX run_leased ON run (run_at) WHERE status + 0 = 1;

-- ---- What follows from an end ----

-- What follows from the end of a run: a workflow that is started when one is cancelled, what becomes of children that are
-- still at work, and what is told of it.
ALTER TABLE workflow ADD COLUMN on_cancel TEXT; -- the workflow started when a run is cancelled
ALTER TABLE workflow ADD COLUMN children TEXT;  -- cancel, fail; null: leave
ALTER TABLE run ADD COLUMN has_children INTEGER; -- it has started children; null: it has not

DROP VIEW workflows;
CREATE VIEW workflows AS
SELECT t.name AS tenant, w.name, w.paused, w.max_attempts,
       w.retry_base / 1000000.0 AS retry_base_seconds,
       w.retry_cap / 1000000.0 AS retry_cap_seconds,
       w.lease / 1000000.0 AS lease_seconds,
       w.timeout / 1000000.0 AS timeout_seconds,
       w.retention / 1000000.0 AS retention_seconds,
       w.dead_letter, w.definition,
       strftime('%Y-%m-%dT%H:%M:%S', w.created_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.created_at % 1000000) AS created_at,
       strftime('%Y-%m-%dT%H:%M:%S', w.updated_at / 1000000, 'unixepoch')
           || printf('.%06dZ', w.updated_at % 1000000) AS updated_at,
       (SELECT count(*) FROM run r
         WHERE r.lane IN (SELECT l.id FROM lane l WHERE l.workflow_id = w.id)
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2)
           AND r.run_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) AS due,
       (SELECT count(*) FROM run r
         WHERE r.lane IN (SELECT l.id FROM lane l WHERE l.workflow_id = w.id)
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status IN (0, 2)
           AND r.run_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) AS delayed,
       (SELECT count(*) FROM run r
         WHERE r.lane IN (SELECT l.id FROM lane l WHERE l.workflow_id = w.id)
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
           AND r.status = 1) AS leased,
       (SELECT count(*) FROM run r WHERE r.workflow_id = w.id AND r.status = 5 AND r.deleted_at IS NULL) AS failed,
       nullif(w.max_running, 2147483647) AS max_running, w.rate_count,
       w.rate_interval / 1000000.0 AS rate_interval_seconds, w.rate_burst, w.key_max_running, w.key_rate_count,
       w.key_rate_interval / 1000000.0 AS key_rate_interval_seconds, w.key_rate_burst,
       w.on_cancel, w.children
  FROM workflow w
  JOIN tenant t ON t.id = w.tenant_id;
