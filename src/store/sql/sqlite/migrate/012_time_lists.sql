-- Lists of runs by time and by flow key. Where clocks are right and there are no flow keys, nothing of this is written.

-- Ids are made by the clock of whoever triggers, some time before the run is stored. A list by time looks where the ids of
-- that time are; those that are more than 0.1 s ahead of created_at or 1 s behind it, in milliseconds, are in here. To find
-- that out costs as much as two other indexes, so who inserts a run says so where it is in time; a null says nothing: runs
-- from before, or of a program that does not know of it.
ALTER TABLE run ADD COLUMN in_time INTEGER;
CREATE INDEX run_odd ON run (tenant_id, id, created_at)
    WHERE in_time IS NULL
      AND hex(id) NOT BETWEEN printf('%012X', created_at / 1000 - 1000) AND printf('%012X', created_at / 1000 + 101);

-- Runs with a flow key: their lanes have odd numbers, as the next migration tells.
CREATE INDEX run_flow ON run (lane, id) WHERE lane & 1 = 1;
