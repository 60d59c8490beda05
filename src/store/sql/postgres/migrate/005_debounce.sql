-- Debounce: triggers with the same debounce key go into one run as long as it has not begun. What is done to a run
-- raises its version, so it is in the index only while it is as it was triggered: a claim leaves it, and whatever
-- comes later (a retry, a resume) does not come back. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
ALTER TABLE holdfast.run
    ADD COLUMN IF NOT EXISTS debounce_key   text,
    ADD COLUMN IF NOT EXISTS debounce_until bigint; -- its start is put off no longer than to here; null: no limit
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_debounce;
;;
CREATE UNIQUE INDEX CONCURRENTLY run_debounce ON holdfast.run (workflow_id, debounce_key)
    WHERE debounce_key IS NOT NULL AND status = 0 AND version = 1 AND deleted_at IS NULL;
;;
-- The flow keys that have a weight of their own.
CREATE INDEX IF NOT EXISTS lane_weight ON holdfast.lane (workflow_id, weight DESC, id) WHERE weight <> 1;
