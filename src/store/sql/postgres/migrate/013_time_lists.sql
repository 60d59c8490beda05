-- Lists of runs by time and by flow key. Where clocks are right and there are no flow keys, nothing of this is written.
-- Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
-- Ids are made by the clock of whoever triggers, some time before the run is stored. A list by time looks where the ids of
-- that time are; those that are more than 0.1 s ahead of created_at or 1 s behind it, in milliseconds, are in here.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_odd;
;;
CREATE INDEX CONCURRENTLY run_odd ON holdfast.run (tenant_id, id, created_at)
    WHERE uuid_send(id) NOT BETWEEN int8send((created_at / 1000 - 1000) << 16) AND int8send((created_at / 1000 + 101) << 16);
;;
-- Runs with a flow key. The lane of those that have none has the number of its workflow, unless other lanes were made
-- before it: such are in here as well.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_flow;
;;
CREATE INDEX CONCURRENTLY run_flow ON holdfast.run (lane, id) WHERE lane <> workflow_id;
