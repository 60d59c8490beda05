-- Lists of runs by time and by flow key. Where clocks are right and there are no flow keys, nothing of this is written.
-- Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
-- Ids are made by the clock of whoever triggers, some time before the run is stored. A list by time looks where the ids of
-- that time are; those that are more than 0.1 s ahead of created_at or 1 s behind it, in milliseconds, are in here. To find
-- that out costs as much as two other indexes, so who inserts a run says so where it is in time; a null says nothing: runs
-- from before, of a program that does not know of it, or that come one at a time.
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS in_time boolean;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_odd;
;;
CREATE INDEX CONCURRENTLY run_odd ON holdfast.run (tenant_id, id, created_at)
    WHERE in_time IS NULL
      AND uuid_send(id) NOT BETWEEN int8send((created_at / 1000 - 1000) << 16) AND int8send((created_at / 1000 + 101) << 16);
;;
-- Runs with a flow key: their lanes have odd numbers, as the next migration tells.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_flow;
;;
CREATE INDEX CONCURRENTLY run_flow ON holdfast.run (lane, id) WHERE lane & 1 = 1;
