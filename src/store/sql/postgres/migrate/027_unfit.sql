-- Runs that wait for a worker whose code fits their history. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS unfit_since bigint; -- since when no worker's code has fitted; null: the last one's did
;;
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS unfit_pause bigint; -- us: the last pause before another worker looked at it
;;
-- How long a run may wait for such a worker before it fails.
ALTER TABLE holdfast.workflow ADD COLUMN IF NOT EXISTS fit_within bigint NOT NULL DEFAULT 86400000000;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_unfit;
;;
CREATE INDEX CONCURRENTLY run_unfit ON holdfast.run (workflow_id, unfit_since) WHERE unfit_since IS NOT NULL AND status = 2;
