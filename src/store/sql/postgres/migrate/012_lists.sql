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
;;
-- The lowest id that is made at a time; of null, the lowest of all. Neither strict nor with settings of its own, so that it
-- is written into the statements that call it: each batch of triggers does.
CREATE OR REPLACE FUNCTION holdfast.id_at(us bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (lpad(to_hex(greatest(us, 0) / 1000), 12, '0') || '00000000000000000000')::uuid;
;;
-- A list by time looks where ids of that time are. Ids are made by the clock of whoever triggers, and some time before
-- the run is stored: one that is further from created_at than 0.1 s ahead or 1 s behind is marked, and looked for apart.
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS odd_id boolean; -- null: the id agrees with created_at
;;
-- Whoever does not compare, as programs of the version before and the functions of the SQL API.
ALTER TABLE holdfast.run ALTER COLUMN odd_id SET DEFAULT true;
;;
UPDATE holdfast.run SET odd_id = true
 WHERE odd_id IS NULL
   AND (id < holdfast.id_at(created_at - 1000000) OR id >= holdfast.id_at(created_at + 101000));
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_odd;
;;
CREATE INDEX CONCURRENTLY run_odd ON holdfast.run (odd_id, tenant_id, id) WHERE odd_id;
