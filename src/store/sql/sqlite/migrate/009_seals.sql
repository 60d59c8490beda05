-- What retention looks for: ended runs by their end, and deleted ones. Seals are found by positions, which is the order
-- of the journal here. They are never changed: who could write them anew could write the journal anew. `hash` and
-- `previous` hold hexadecimal text.
CREATE INDEX run_finished ON run (workflow_id, finished_at) WHERE status >= 4;
CREATE INDEX run_deleted ON run (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE TRIGGER seal_no_update BEFORE UPDATE ON seal BEGIN
    SELECT RAISE(ABORT, 'seals are never changed: UPDATE of seal is refused');
END;
CREATE TRIGGER seal_no_delete BEFORE DELETE ON seal BEGIN
    SELECT RAISE(ABORT, 'seals are never changed: DELETE of seal is refused');
END;
CREATE TRIGGER seal_no_replace BEFORE INSERT ON seal WHEN EXISTS (SELECT 1 FROM seal WHERE block = NEW.block) BEGIN
    SELECT RAISE(ABORT, 'seals are never changed: REPLACE of seal is refused');
END;
