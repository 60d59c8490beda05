-- Lists of what is pending or overdue, however large the backlog is and wherever it lies. Nothing of this is written by a
-- trigger without a delay and without a flow key: such runs are due when they were made, so that run_claim has them in the
-- order in which they were made.

-- Where runs stand, by workflow: also those that are pending and were delayed or tried again.
DROP INDEX run_state;
CREATE INDEX run_state ON run (workflow_id, status, id)
    WHERE deleted_at IS NULL AND (status + 0 >= 1 OR run_at <> created_at);

-- What is pending without a delay in lanes of flow keys, of which there are too many to look into each, or with an id that
-- tells another time.
CREATE INDEX run_keyed ON run (workflow_id, id)
    WHERE status = 0 AND deleted_at IS NULL AND run_at = created_at
      AND (lane & 1 = 1 OR in_time IS NULL AND hex(id) NOT BETWEEN printf('%012X', created_at / 1000 - 1000)
                                                              AND printf('%012X', created_at / 1000 + 101));
CREATE INDEX lane_even ON lane (workflow_id) WHERE id & 1 = 0;

-- What was delayed or waits, by the time at which it is due.
CREATE INDEX run_timed ON run (workflow_id, run_at)
    WHERE run_at IS NOT NULL AND (status + 0 >= 1 OR run_at <> created_at) AND status <> 1 AND status <= 3
      AND deleted_at IS NULL;

-- Runs by their last step, while nobody holds them: steps do not write it, and runs without steps are not in it.
CREATE INDEX run_step ON run (tenant_id, current_step, id) WHERE current_step IS NOT NULL AND status <> 1;
