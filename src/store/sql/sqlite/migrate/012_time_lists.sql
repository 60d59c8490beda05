-- Lists of runs by time and by flow key. Where clocks are right and there are no flow keys, nothing of this is written.

-- Ids are made by the clock of whoever triggers, some time before the run is stored. A list by time looks where the ids of
-- that time are; those that are more than 0.1 s ahead of created_at or 1 s behind it, in milliseconds, are in here.
CREATE INDEX run_odd ON run (tenant_id, id, created_at)
    WHERE hex(id) NOT BETWEEN printf('%012X', created_at / 1000 - 1000) AND printf('%012X', created_at / 1000 + 101);

-- Runs with a flow key. The lane of those that have none has the number of its workflow, unless other lanes were made
-- before it: such are in here as well.
CREATE INDEX run_flow ON run (lane, id) WHERE lane <> workflow_id;
