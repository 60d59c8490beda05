-- Lists of runs by any one filter, however many runs there are and however few match. Nothing of this is written by a
-- trigger. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
-- Where runs stand, once they were claimed, by workflow. What is pending is found by run_claim. Which runs are in these
-- two is said in a form that only the lists use, so that nothing else is planned with them.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_state;
;;
CREATE INDEX CONCURRENTLY run_state ON holdfast.run (workflow_id, status, id) WHERE status + 0 >= 1 AND deleted_at IS NULL;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_deleted_id;
;;
CREATE INDEX CONCURRENTLY run_deleted_id ON holdfast.run (workflow_id, id) WHERE coalesce(deleted_at, 0) > 0;
;;
-- Children in the order of lists. It keeps its name: once renamed, a second try makes it again, and no harm is done.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_parent_id;
;;
CREATE INDEX CONCURRENTLY run_parent_id ON holdfast.run (tenant_id, parent, id) WHERE parent IS NOT NULL;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_parent;
;;
ALTER INDEX holdfast.run_parent_id RENAME TO run_parent;
