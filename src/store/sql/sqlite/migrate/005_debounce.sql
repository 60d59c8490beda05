-- Debounce: triggers with the same debounce key go into one run as long as it has not begun. What is done to a run
-- raises its version, so it is in the index only while it is as it was triggered: a claim leaves it, and whatever
-- comes later (a retry, a resume) does not come back.

ALTER TABLE run ADD COLUMN debounce_key TEXT;
ALTER TABLE run ADD COLUMN debounce_until INTEGER; -- its start is put off no longer than to here; null: no limit

CREATE UNIQUE INDEX run_debounce ON run (workflow_id, debounce_key)
    WHERE debounce_key IS NOT NULL AND status = 0 AND version = 1 AND deleted_at IS NULL;

-- As before, and not over a run that waits to be debounced either.
DROP TRIGGER run_no_replace;
CREATE TRIGGER run_no_replace BEFORE INSERT ON run
WHEN EXISTS (SELECT 1 FROM run WHERE tenant_id = NEW.tenant_id AND id = NEW.id)
  OR (NEW.key IS NOT NULL AND EXISTS (SELECT 1 FROM run WHERE workflow_id = NEW.workflow_id AND key = NEW.key
                                          AND deleted_at IS NULL))
  OR (NEW.debounce_key IS NOT NULL AND EXISTS (SELECT 1 FROM run WHERE workflow_id = NEW.workflow_id
                                                   AND debounce_key = NEW.debounce_key AND status = 0 AND version = 1
                                                   AND deleted_at IS NULL)) BEGIN
    SELECT RAISE(IGNORE);
END;

-- The flow keys that have a weight of their own.
CREATE INDEX lane_weight ON lane (workflow_id, weight DESC, id) WHERE weight <> 1;
