-- What seals and retention look for. Seals are never changed: who could write them anew could write the journal anew.
-- Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
DROP INDEX CONCURRENTLY IF EXISTS holdfast.event_xid;
;;
CREATE INDEX CONCURRENTLY event_xid ON holdfast.event (xid);
;;
-- Ended runs by their end.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_finished;
;;
CREATE INDEX CONCURRENTLY run_finished ON holdfast.run (workflow_id, finished_at) WHERE status >= 4;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_deleted;
;;
CREATE INDEX CONCURRENTLY run_deleted ON holdfast.run (deleted_at) WHERE deleted_at IS NOT NULL;
;;
CREATE OR REPLACE FUNCTION holdfast.refuse_seal_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'seals are never changed: % of holdfast.seal is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
;;
CREATE OR REPLACE TRIGGER seal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON holdfast.seal
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_seal_change();
