-- Flow control: how many runs of a workflow and of a flow key are held at once, and how many start in a time. Every
-- workflow with a limit of any kind has max_running; 2147483647 where there is none for all its keys together. So a
-- claim sees by one column whether it has to count. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
ALTER TABLE holdfast.workflow
    ADD COLUMN IF NOT EXISTS rate_burst        int,
    ADD COLUMN IF NOT EXISTS rate_next         bigint, -- when the starts so far are paid for; may lie ahead by the burst
    ADD COLUMN IF NOT EXISTS key_max_running   int,    -- the same for each flow key by itself
    ADD COLUMN IF NOT EXISTS key_rate_count    int,
    ADD COLUMN IF NOT EXISTS key_rate_interval bigint,
    ADD COLUMN IF NOT EXISTS key_rate_burst    int;
;;
ALTER TABLE holdfast.lane ADD COLUMN IF NOT EXISTS rate_next bigint;
;;
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS slot int; -- the workflow whose slot its last claim took; null: none
;;
-- What is counted: nothing of workflows without limits is ever in it.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_slot;
;;
CREATE INDEX CONCURRENTLY run_slot ON holdfast.run (slot, lane, run_at)
    WHERE slot IS NOT NULL AND status = 1;
;;
-- The lanes of a workflow, for the view below: whoever reads it needs no right on the table, as before.
CREATE OR REPLACE FUNCTION holdfast.lanes_of(workflow int) RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS
$$ SELECT l.id FROM holdfast.lane l WHERE l.workflow_id = lanes_of.workflow $$;
;;
-- Runs of all keys are counted, and the limits shown.
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
       w.key_rate_burst
  FROM holdfast.workflow w
  JOIN holdfast.tenant t ON t.id = w.tenant_id;
