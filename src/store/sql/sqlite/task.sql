-- name: insert_tasks
-- Questions to people. Their run is marked, so that its end looks for those that are still open. Serves: commit, trigger
-- with an initial transition.
-- takes: rows (tenant int, id uuid, run uuid, name text, assignee text, roles text, payload text, form text, token
--   text, due_at bigint)
-- gives: nothing
INSERT INTO task (tenant_id, id, run_id, name, assignee, roles, payload, form, token, due_at, created_at, updated_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, holdfast_now(), holdfast_now()
 WHERE EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?3)
ON CONFLICT DO NOTHING;
UPDATE run SET active_task = ?2 WHERE tenant_id = ?1 AND id = ?3 AND active_task IS NULL;

-- name: find_tasks
-- Tasks as they are under the lock of their run. Served by the primary key of task. Serves: changes of tasks.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid, run uuid, name text, status int, version bigint, assignee text, token text, outcome text, result text)
SELECT id, run_id, name, status, version, assignee, token, outcome, result FROM task WHERE tenant_id = ?1 AND id = ?2;

-- name: update_tasks
-- Writes what was decided about tasks whose run is locked. Served by the primary key of task. Serves: changes of tasks.
-- takes: rows (tenant int, id uuid, status int, assignee text, outcome text, result text)
-- gives: nothing
UPDATE task
   SET status = ?3, version = version + 1, assignee = ?4, outcome = ?5, result = ?6, updated_at = holdfast_now(),
       completed_at = CASE WHEN ?3 >= 2 THEN holdfast_now() END
 WHERE tenant_id = ?1 AND id = ?2;

-- name: cancel_tasks
-- Nobody waits for an answer any more: the run is over. Served by task_run. Serves: the end of a run that has asked.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
UPDATE task INDEXED BY task_run
   SET status = 3, version = version + 1, updated_at = holdfast_now(), completed_at = holdfast_now()
 WHERE run_id = ?2 AND tenant_id = ?1 AND status <= 1;

-- name: withdraw_tasks
-- The run does not want the answer any more. Unlike those that end with their run, they stay cancelled when it is
-- retried. Served by task_run. Serves: commit.
-- takes: rows (tenant int, run uuid, token text)
-- gives: nothing
UPDATE task INDEXED BY task_run
   SET status = 3, outcome = 'withdrawn', version = version + 1, updated_at = holdfast_now(),
       completed_at = holdfast_now()
 WHERE run_id = ?2 AND tenant_id = ?1 AND status <= 1 AND token = ?3;

-- name: reopen_tasks
-- What was cancelled with the run is asked again. Served by task_run. Serves: retry of a run that has asked.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
UPDATE task INDEXED BY task_run
   SET status = 0, version = version + 1, updated_at = holdfast_now(), completed_at = NULL
 WHERE run_id = ?2 AND tenant_id = ?1 AND status = 3 AND outcome IS NULL;

-- name: get_task
-- One task by id, whatever became of its run. Served by the primary key of task. Serves: hf_task_get, and every change.
-- takes: one (tenant int, id uuid)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at
  FROM task t
  CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id
  CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE t.tenant_id = ?1 AND t.id = ?2;

-- name: list_tasks
-- Tasks of a tenant in any status, newest first, after a cursor; not those of deleted runs. Ends with the one with
-- which they hold more than `bytes`; total is what they hold so far. Served by the primary key of task, read
-- backwards. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT t.rowid AS place, t.id AS id,
                   coalesce(length(CAST(t.payload AS BLOB)), 0) + coalesce(length(CAST(t.form AS BLOB)), 0)
                       + coalesce(length(CAST(t.result AS BLOB)), 0) AS own
              FROM task t
              CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
              CROSS JOIN workflow w ON w.id = r.workflow_id
             WHERE t.tenant_id = ?1 AND t.id < ?3 AND (1 << t.status) & ?5 <> 0 AND (?6 IS NULL OR t.assignee = ?6)
               AND (?7 IS NULL OR instr(t.roles, ?7) > 0) AND (?8 IS NULL OR t.run_id = ?8) AND (?9 IS NULL OR t.name = ?9)
               AND (NOT ?10 OR t.due_at < holdfast_now()) AND (?2 IS NULL OR true)
             ORDER BY t.id DESC LIMIT ?4) c) p
 CROSS JOIN task t ON t.rowid = p.place
 CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE p.total - p.own <= ?11 ORDER BY p.id DESC;

-- name: list_open_tasks
-- The same, of those that are not answered. Ends with the one with which they hold more than `bytes`; total is what
-- they hold so far. Served by task_newest. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT t.rowid AS place, t.id AS id,
                   coalesce(length(CAST(t.payload AS BLOB)), 0) + coalesce(length(CAST(t.form AS BLOB)), 0)
                       + coalesce(length(CAST(t.result AS BLOB)), 0) AS own
              FROM task t INDEXED BY task_newest
              CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
              CROSS JOIN workflow w ON w.id = r.workflow_id
             WHERE t.tenant_id = ?1 AND t.id < ?3 AND t.status <= 1 AND (1 << t.status) & ?5 <> 0
               AND (?6 IS NULL OR t.assignee = ?6) AND (?7 IS NULL OR instr(t.roles, ?7) > 0) AND (?8 IS NULL OR t.run_id = ?8)
               AND (?9 IS NULL OR t.name = ?9) AND (NOT ?10 OR t.due_at < holdfast_now()) AND (?2 IS NULL OR true)
             ORDER BY t.id DESC LIMIT ?4) c) p
 CROSS JOIN task t ON t.rowid = p.place
 CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE p.total - p.own <= ?11 ORDER BY p.id DESC;

-- name: list_due_tasks
-- The same, by the time when they are due; those without one come last. Ends with the one with which they hold more
-- than `bytes`; total is what they hold so far. Served by task_due. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, due bigint, own int, total bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at, p.due, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.due, c.id ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT t.rowid AS place, coalesce(t.due_at, 9223372036854775807) AS due, t.id AS id,
                   coalesce(length(CAST(t.payload AS BLOB)), 0) + coalesce(length(CAST(t.form AS BLOB)), 0)
                       + coalesce(length(CAST(t.result AS BLOB)), 0) AS own
              FROM task t INDEXED BY task_due
              CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
              CROSS JOIN workflow w ON w.id = r.workflow_id
             WHERE t.tenant_id = ?1 AND coalesce(t.due_at, 9223372036854775807) >= ?2
               AND (coalesce(t.due_at, 9223372036854775807), t.id) > (?2, ?3) AND t.status <= 1
               AND (1 << t.status) & ?5 <> 0 AND (?6 IS NULL OR t.assignee = ?6) AND (?7 IS NULL OR instr(t.roles, ?7) > 0)
               AND (?8 IS NULL OR t.run_id = ?8) AND (?9 IS NULL OR t.name = ?9) AND (NOT ?10 OR t.due_at < holdfast_now())
             ORDER BY coalesce(t.due_at, 9223372036854775807), t.id LIMIT ?4) c) p
 CROSS JOIN task t ON t.rowid = p.place
 CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE p.total - p.own <= ?11 ORDER BY p.due, p.id;

-- name: list_assigned_tasks
-- Unanswered tasks of one assignee, newest first. Ends with the one with which they hold more than `bytes`; total is
-- what they hold so far. Served by task_assigned. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT t.rowid AS place, t.id AS id,
                   coalesce(length(CAST(t.payload AS BLOB)), 0) + coalesce(length(CAST(t.form AS BLOB)), 0)
                       + coalesce(length(CAST(t.result AS BLOB)), 0) AS own
              FROM task t INDEXED BY task_assigned
              CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
              CROSS JOIN workflow w ON w.id = r.workflow_id
             WHERE t.tenant_id = ?1 AND t.assignee = ?6 AND t.id < ?3 AND t.status <= 1 AND (1 << t.status) & ?5 <> 0
               AND (?7 IS NULL OR instr(t.roles, ?7) > 0) AND (?8 IS NULL OR t.run_id = ?8) AND (?9 IS NULL OR t.name = ?9)
               AND (NOT ?10 OR t.due_at < holdfast_now()) AND (?2 IS NULL OR true)
             ORDER BY t.id DESC LIMIT ?4) c) p
 CROSS JOIN task t ON t.rowid = p.place
 CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE p.total - p.own <= ?11 ORDER BY p.id DESC;

-- name: list_assigned_due_tasks
-- The same, by the time when they are due. Ends with the one with which they hold more than `bytes`; total is what
-- they hold so far. Served by task_assigned_due. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, due bigint, own int, total bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at, p.due, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.due, c.id ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT t.rowid AS place, coalesce(t.due_at, 9223372036854775807) AS due, t.id AS id,
                   coalesce(length(CAST(t.payload AS BLOB)), 0) + coalesce(length(CAST(t.form AS BLOB)), 0)
                       + coalesce(length(CAST(t.result AS BLOB)), 0) AS own
              FROM task t INDEXED BY task_assigned_due
              CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
              CROSS JOIN workflow w ON w.id = r.workflow_id
             WHERE t.tenant_id = ?1 AND t.assignee = ?6 AND coalesce(t.due_at, 9223372036854775807) >= ?2
               AND (coalesce(t.due_at, 9223372036854775807), t.id) > (?2, ?3)
               AND t.status <= 1 AND (1 << t.status) & ?5 <> 0 AND (?7 IS NULL OR instr(t.roles, ?7) > 0)
               AND (?8 IS NULL OR t.run_id = ?8) AND (?9 IS NULL OR t.name = ?9) AND (NOT ?10 OR t.due_at < holdfast_now())
             ORDER BY coalesce(t.due_at, 9223372036854775807), t.id LIMIT ?4) c) p
 CROSS JOIN task t ON t.rowid = p.place
 CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE p.total - p.own <= ?11 ORDER BY p.due, p.id;

-- name: list_run_tasks
-- Tasks of one run, newest first. Ends with the one with which they hold more than `bytes`; total is what they hold
-- so far. Served by task_run. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT t.rowid AS place, t.id AS id,
                   coalesce(length(CAST(t.payload AS BLOB)), 0) + coalesce(length(CAST(t.form AS BLOB)), 0)
                       + coalesce(length(CAST(t.result AS BLOB)), 0) AS own
              FROM task t INDEXED BY task_run
              CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
              CROSS JOIN workflow w ON w.id = r.workflow_id
             WHERE t.tenant_id + 0 = ?1 AND t.run_id = ?8 AND t.id < ?3 AND (1 << t.status) & ?5 <> 0
               AND (?6 IS NULL OR t.assignee = ?6) AND (?7 IS NULL OR instr(t.roles, ?7) > 0) AND (?9 IS NULL OR t.name = ?9)
               AND (NOT ?10 OR t.due_at < holdfast_now()) AND (?2 IS NULL OR true)
             ORDER BY t.id DESC LIMIT ?4) c) p
 CROSS JOIN task t ON t.rowid = p.place
 CROSS JOIN run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id AND r.deleted_at IS NULL
 CROSS JOIN workflow w ON w.id = r.workflow_id
 WHERE p.total - p.own <= ?11 ORDER BY p.id DESC;
