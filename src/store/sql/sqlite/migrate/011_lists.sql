-- Lists of runs by any one filter, however many runs there are and however few match. Nothing of this is written by a
-- trigger.

-- Where runs stand, once they were claimed, by workflow. What is pending is found by run_claim. Which runs are in these
-- two is said in a form that only the lists use, so that nothing else is planned with them.
CREATE INDEX run_state ON run (workflow_id, status, id) WHERE status + 0 >= 1 AND deleted_at IS NULL;
CREATE INDEX run_deleted_id ON run (workflow_id, id) WHERE coalesce(deleted_at, 0) > 0;

-- Children in the order of lists.
DROP INDEX run_parent;
CREATE INDEX run_parent ON run (tenant_id, parent, id) WHERE parent IS NOT NULL;

-- A list by time looks where ids of that time are. Ids are made by the clock of whoever triggers, and some time before
-- the run is stored: one that is further from created_at than 0.1 s ahead or 1 s behind is marked, and looked for apart.
ALTER TABLE run ADD COLUMN odd_id INTEGER; -- null: the id agrees with created_at
UPDATE run SET odd_id = 1
 WHERE id < holdfast_id_at(created_at - 1000000) OR id >= holdfast_id_at(created_at + 101000);
CREATE INDEX run_odd ON run (tenant_id, id) WHERE odd_id IS NOT NULL;
