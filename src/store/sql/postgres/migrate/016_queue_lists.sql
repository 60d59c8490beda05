-- Lists of what is pending or overdue, however large the backlog is and wherever it lies. Nothing of this is written by a
-- trigger without a delay and without a flow key: such runs are due when they were made, so that run_claim has them in the
-- order in which they were made. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
-- Who inserts a run says so where its id tells the time: to find that out costs as much as two other indexes. A null says
-- nothing: runs from before, or of a program that does not know of it.
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS in_time bool;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_odd_new;
;;
CREATE INDEX CONCURRENTLY run_odd_new ON holdfast.run (tenant_id, id, created_at)
    WHERE in_time IS NULL
      AND uuid_send(id) NOT BETWEEN int8send((created_at / 1000 - 1000) << 16) AND int8send((created_at / 1000 + 101) << 16);
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_odd;
;;
ALTER INDEX holdfast.run_odd_new RENAME TO run_odd;
;;
-- Runs with a flow key: their lanes have odd numbers.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_flow_new;
;;
CREATE INDEX CONCURRENTLY run_flow_new ON holdfast.run (lane, id) WHERE lane & 1 = 1;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_flow;
;;
ALTER INDEX holdfast.run_flow_new RENAME TO run_flow;
;;
-- Where runs stand, by workflow: also those that are pending and were delayed or tried again.
-- The old one serves until the new one is there.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_state_new;
;;
CREATE INDEX CONCURRENTLY run_state_new ON holdfast.run (workflow_id, status, id)
    WHERE deleted_at IS NULL AND (status + 0 >= 1 OR run_at <> created_at);
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_state;
;;
ALTER INDEX holdfast.run_state_new RENAME TO run_state;
;;
-- What is pending without a delay in lanes of flow keys, of which there are too many to look into each, or with an id that
-- tells another time.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_keyed;
;;
CREATE INDEX CONCURRENTLY run_keyed ON holdfast.run (workflow_id, id)
    WHERE status = 0 AND deleted_at IS NULL AND run_at = created_at
      AND (lane & 1 = 1 OR in_time IS NULL AND uuid_send(id) NOT BETWEEN int8send((created_at / 1000 - 1000) << 16)
                                                                    AND int8send((created_at / 1000 + 101) << 16));
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.lane_even;
;;
CREATE INDEX CONCURRENTLY lane_even ON holdfast.lane (workflow_id) WHERE id & 1 = 0;
;;
-- What was delayed or waits, by the time at which it is due.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_timed;
;;
CREATE INDEX CONCURRENTLY run_timed ON holdfast.run (workflow_id, run_at)
    WHERE run_at IS NOT NULL AND (status + 0 >= 1 OR run_at <> created_at) AND status <> 1 AND status <= 3
      AND deleted_at IS NULL;
;;
-- What run_flow has as well.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_lane;
