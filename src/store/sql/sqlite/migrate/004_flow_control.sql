-- Flow control: how many runs of a workflow and of a flow key are held at once, and how many start in a time. Every
-- workflow with a limit of any kind has max_running; 2147483647 where there is none for all its keys together. So a
-- claim sees by one column whether it has to count.

ALTER TABLE workflow ADD COLUMN rate_burst INTEGER;
ALTER TABLE workflow ADD COLUMN rate_next INTEGER; -- when the starts so far are paid for; may lie ahead by the burst
ALTER TABLE workflow ADD COLUMN key_max_running INTEGER; -- the same for each flow key by itself
ALTER TABLE workflow ADD COLUMN key_rate_count INTEGER;
ALTER TABLE workflow ADD COLUMN key_rate_interval INTEGER;
ALTER TABLE workflow ADD COLUMN key_rate_burst INTEGER;
ALTER TABLE lane ADD COLUMN rate_next INTEGER;
ALTER TABLE run ADD COLUMN slot INTEGER; -- the workflow whose slot its last claim took; null: none

-- What is counted: nothing of workflows without limits is ever in it.
CREATE INDEX run_slot ON run (slot, lane, run_at) WHERE slot IS NOT NULL AND status = 1;

-- Runs of all keys are counted, and the limits shown.
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
       w.key_rate_interval / 1000000.0 AS key_rate_interval_seconds, w.key_rate_burst
  FROM workflow w
  JOIN tenant t ON t.id = w.tenant_id;
