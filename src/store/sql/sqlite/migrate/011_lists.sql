-- Lists of runs by any one filter, however many runs there are and however few match. Nothing of this is written by a
-- trigger.

-- Where runs stand, once they were claimed, by workflow. What is pending is found by run_claim. Which runs are in these
-- two is said in a form that only the lists use, so that nothing else is planned with them.
CREATE INDEX run_state ON run (workflow_id, status, id) WHERE status + 0 >= 1 AND deleted_at IS NULL;
CREATE INDEX run_deleted_id ON run (workflow_id, id) WHERE coalesce(deleted_at, 0) > 0;

-- Children in the order of lists.
DROP INDEX run_parent;
CREATE INDEX run_parent ON run (tenant_id, parent, id) WHERE parent IS NOT NULL;
