-- Questions to people that can be listed and answered. A run that has asked is marked, so that its end cancels what is
-- still open.

CREATE INDEX task_newest ON task (tenant_id, id) WHERE status <= 1;
CREATE INDEX task_due ON task (tenant_id, coalesce(due_at, 9223372036854775807), id) WHERE status <= 1;
CREATE INDEX task_assigned ON task (tenant_id, assignee, id) WHERE status <= 1;
CREATE INDEX task_assigned_due ON task (tenant_id, assignee, coalesce(due_at, 9223372036854775807), id) WHERE status <= 1;
DROP INDEX task_open;

-- What is there was written before anybody could answer.
UPDATE run SET active_task = (SELECT t.id FROM task t WHERE t.run_id = run.id LIMIT 1)
 WHERE id IN (SELECT t.run_id FROM task t);
UPDATE task SET status = 3, version = version + 1, completed_at = updated_at
 WHERE status <= 1
   AND NOT EXISTS (SELECT 1 FROM run r WHERE r.tenant_id = task.tenant_id AND r.id = task.run_id AND r.status <= 3);
