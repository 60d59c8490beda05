-- name: insert_tasks
-- Questions to people. Their run is marked, so that its end looks for those that are still open. Serves: commit, trigger
-- with an initial transition.
-- takes: rows (tenant int, id uuid, run uuid, name text, assignee text, roles text, payload text, form text, token
--   text, due_at bigint)
-- gives: nothing
WITH marked AS (
    UPDATE holdfast.run r SET active_task = n.id
      FROM unnest($1::int[], $2::uuid[], $3::uuid[]) AS n(tenant, id, run)
     WHERE r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.run AND r.active_task IS NULL
)
INSERT INTO holdfast.task (tenant_id, id, run_id, name, assignee, roles, payload, form, token, due_at, created_at, updated_at)
SELECT n.tenant, n.id, n.run, n.name, n.assignee, n.roles, n.payload, n.form, n.token, n.due_at, holdfast.now(),
       holdfast.now()
  FROM unnest($1::int[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
              $10::bigint[]) AS n(tenant, id, run, name, assignee, roles, payload, form, token, due_at)
 WHERE EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = n.tenant AND r.id = n.run OFFSET 0)
ON CONFLICT DO NOTHING;

-- name: find_tasks
-- Tasks as they are under the lock of their run. Served by the primary key of task. Serves: changes of tasks.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid, run uuid, name text, status int, version bigint, assignee text, token text, outcome text, result text)
SELECT t.id, t.run_id, t.name, t.status, t.version, t.assignee, t.token, t.outcome, t.result
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id)
  JOIN holdfast.task t ON t.tenant_id = ANY (ARRAY[n.tenant]) AND t.id = n.id;

-- name: update_tasks
-- Writes what was decided about tasks whose run is locked. Served by the primary key of task. Serves: changes of tasks.
-- takes: rows (tenant int, id uuid, status int, assignee text, outcome text, result text)
-- gives: nothing
UPDATE holdfast.task t
   SET status = n.status, version = t.version + 1, assignee = n.assignee, outcome = n.outcome, result = n.result,
       updated_at = holdfast.now(), completed_at = CASE WHEN n.status >= 2 THEN holdfast.now() END
  FROM unnest($1::int[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[])
       AS n(tenant, id, status, assignee, outcome, result)
 WHERE t.tenant_id = ANY (ARRAY[n.tenant]) AND t.id = n.id;

-- name: cancel_tasks
-- Nobody waits for an answer any more: the run is over. Served by task_run. Serves: the end of a run that has asked.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
UPDATE holdfast.task t
   SET status = 3, version = t.version + 1, updated_at = holdfast.now(), completed_at = holdfast.now()
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 WHERE t.run_id = ANY (ARRAY[n.run]) AND t.tenant_id + 0 = n.tenant AND t.status + 0 <= 1;

-- name: withdraw_tasks
-- The run does not want the answer any more. Unlike those that end with their run, they stay cancelled when it is
-- retried. Served by task_run. Serves: commit.
-- takes: rows (tenant int, run uuid, token text)
-- gives: nothing
UPDATE holdfast.task t
   SET status = 3, outcome = 'withdrawn', version = t.version + 1, updated_at = holdfast.now(),
       completed_at = holdfast.now()
  FROM unnest($1::int[], $2::uuid[], $3::text[]) AS n(tenant, run, token)
 WHERE t.run_id = ANY (ARRAY[n.run]) AND t.tenant_id + 0 = n.tenant AND t.status + 0 <= 1 AND t.token = n.token;

-- name: reopen_tasks
-- What was cancelled with the run is asked again. Served by task_run. Serves: retry of a run that has asked.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
UPDATE holdfast.task t
   SET status = 0, version = t.version + 1, updated_at = holdfast.now(), completed_at = NULL
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 WHERE t.run_id = ANY (ARRAY[n.run]) AND t.tenant_id + 0 = n.tenant AND t.status = 3 AND t.outcome IS NULL;

-- name: get_task
-- One task by id, whatever became of its run. Served by the primary key of task. Serves: hf_task_get, and every change.
-- takes: one (tenant int, id uuid)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint)
SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
       t.due_at, t.created_at, t.updated_at, t.completed_at
  FROM (SELECT k.* FROM holdfast.task k WHERE k.tenant_id = $1 AND k.id = $2 OFFSET 0) t
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id
  JOIN holdfast.workflow w ON w.id = r.workflow_id;

-- name: list_tasks
-- Tasks of a tenant in any status, newest first, after a cursor; not those of deleted runs. Ends with the one with
-- which they hold more than `bytes`; total is what they hold so far. Served by the primary key of task, read
-- backwards. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT * FROM (
    SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
           t.due_at, t.created_at, t.updated_at, t.completed_at,
           s.own, sum(s.own) OVER (ORDER BY t.id DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.task t
      JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id AND r.deleted_at IS NULL
      JOIN holdfast.workflow w ON w.id = r.workflow_id
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(t.payload), 0) + coalesce(octet_length(t.form), 0)
                            + coalesce(octet_length(t.result), 0) AS own) s
     WHERE t.tenant_id = $1 AND t.id < $3 AND (1 << t.status) & $5 <> 0 AND ($6::text IS NULL OR t.assignee = $6)
       AND ($7::text IS NULL OR strpos(t.roles, $7) > 0) AND ($8::uuid IS NULL OR t.run_id = $8)
       AND ($9::text IS NULL OR t.name = $9) AND (NOT $10 OR t.due_at < holdfast.now()) AND ($2::bigint IS NULL OR true)
     ORDER BY t.id DESC LIMIT $4) p
 WHERE p.total - p.own <= $11 ORDER BY p.id DESC;

-- name: list_open_tasks
-- The same, of those that are not answered. Ends with the one with which they hold more than `bytes`; total is what
-- they hold so far. Served by task_newest. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT * FROM (
    SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
           t.due_at, t.created_at, t.updated_at, t.completed_at,
           s.own, sum(s.own) OVER (ORDER BY t.id DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.task t
      JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id AND r.deleted_at IS NULL
      JOIN holdfast.workflow w ON w.id = r.workflow_id
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(t.payload), 0) + coalesce(octet_length(t.form), 0)
                            + coalesce(octet_length(t.result), 0) AS own) s
     WHERE t.tenant_id = $1 AND t.id < $3 AND t.status <= 1 AND (1 << t.status) & $5 <> 0
       AND ($6::text IS NULL OR t.assignee = $6) AND ($7::text IS NULL OR strpos(t.roles, $7) > 0)
       AND ($8::uuid IS NULL OR t.run_id = $8) AND ($9::text IS NULL OR t.name = $9)
       AND (NOT $10 OR t.due_at < holdfast.now()) AND ($2::bigint IS NULL OR true)
     ORDER BY t.id DESC LIMIT $4) p
 WHERE p.total - p.own <= $11 ORDER BY p.id DESC;

-- name: list_due_tasks
-- The same, by the time when they are due; those without one come last. Ends with the one with which they hold more
-- than `bytes`; total is what they hold so far. Served by task_due. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, due bigint, own int, total bigint)
SELECT * FROM (
    SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
           t.due_at, t.created_at, t.updated_at, t.completed_at,
           coalesce(t.due_at, 9223372036854775807) AS due, s.own,
           sum(s.own) OVER (ORDER BY coalesce(t.due_at, 9223372036854775807), t.id ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.task t
      JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id AND r.deleted_at IS NULL
      JOIN holdfast.workflow w ON w.id = r.workflow_id
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(t.payload), 0) + coalesce(octet_length(t.form), 0)
                            + coalesce(octet_length(t.result), 0) AS own) s
     WHERE t.tenant_id = $1 AND (coalesce(t.due_at, 9223372036854775807), t.id) > ($2::bigint, $3::uuid) AND t.status <= 1
       AND (1 << t.status) & $5 <> 0 AND ($6::text IS NULL OR t.assignee = $6)
       AND ($7::text IS NULL OR strpos(t.roles, $7) > 0) AND ($8::uuid IS NULL OR t.run_id = $8)
       AND ($9::text IS NULL OR t.name = $9) AND (NOT $10 OR t.due_at < holdfast.now())
     ORDER BY coalesce(t.due_at, 9223372036854775807), t.id LIMIT $4) p
 WHERE p.total - p.own <= $11 ORDER BY p.due, p.id;

-- name: list_assigned_tasks
-- Unanswered tasks of one assignee, newest first. Ends with the one with which they hold more than `bytes`; total is
-- what they hold so far. Served by task_assigned. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT * FROM (
    SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
           t.due_at, t.created_at, t.updated_at, t.completed_at,
           s.own, sum(s.own) OVER (ORDER BY t.id DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.task t
      JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id AND r.deleted_at IS NULL
      JOIN holdfast.workflow w ON w.id = r.workflow_id
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(t.payload), 0) + coalesce(octet_length(t.form), 0)
                            + coalesce(octet_length(t.result), 0) AS own) s
     WHERE t.tenant_id = $1 AND t.assignee = $6 AND t.id < $3 AND t.status <= 1 AND (1 << t.status) & $5 <> 0
       AND ($7::text IS NULL OR strpos(t.roles, $7) > 0) AND ($8::uuid IS NULL OR t.run_id = $8)
       AND ($9::text IS NULL OR t.name = $9) AND (NOT $10 OR t.due_at < holdfast.now()) AND ($2::bigint IS NULL OR true)
     ORDER BY t.id DESC LIMIT $4) p
 WHERE p.total - p.own <= $11 ORDER BY p.id DESC;

-- name: list_assigned_due_tasks
-- The same, by the time when they are due. Ends with the one with which they hold more than `bytes`; total is what
-- they hold so far. Served by task_assigned_due. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, due bigint, own int, total bigint)
SELECT * FROM (
    SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
           t.due_at, t.created_at, t.updated_at, t.completed_at,
           coalesce(t.due_at, 9223372036854775807) AS due, s.own,
           sum(s.own) OVER (ORDER BY coalesce(t.due_at, 9223372036854775807), t.id ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.task t
      JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id AND r.deleted_at IS NULL
      JOIN holdfast.workflow w ON w.id = r.workflow_id
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(t.payload), 0) + coalesce(octet_length(t.form), 0)
                            + coalesce(octet_length(t.result), 0) AS own) s
     WHERE t.tenant_id = $1 AND t.assignee = $6 AND (coalesce(t.due_at, 9223372036854775807), t.id) > ($2::bigint, $3::uuid)
       AND t.status <= 1 AND (1 << t.status) & $5 <> 0 AND ($7::text IS NULL OR strpos(t.roles, $7) > 0)
       AND ($8::uuid IS NULL OR t.run_id = $8) AND ($9::text IS NULL OR t.name = $9)
       AND (NOT $10 OR t.due_at < holdfast.now())
     ORDER BY coalesce(t.due_at, 9223372036854775807), t.id LIMIT $4) p
 WHERE p.total - p.own <= $11 ORDER BY p.due, p.id;

-- name: list_run_tasks
-- Tasks of one run, newest first. Ends with the one with which they hold more than `bytes`; total is what they hold
-- so far. Served by task_run. Serves: hf_task_list.
-- takes: one (tenant int, cursor_due bigint, cursor uuid, most int, statuses int, assignee text, role text, run uuid,
--   name text, overdue bool, bytes bigint)
-- gives: (id uuid, run uuid, workflow text, name text, status int, version bigint, assignee text, roles text, payload
--   text, form text, outcome text, result text, due_at bigint, created_at bigint, updated_at bigint, completed_at
--   bigint, own int, total bigint)
SELECT * FROM (
    SELECT t.id, t.run_id, w.name, t.name, t.status, t.version, t.assignee, t.roles, t.payload, t.form, t.outcome, t.result,
           t.due_at, t.created_at, t.updated_at, t.completed_at,
           s.own, sum(s.own) OVER (ORDER BY t.id DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM (SELECT k.* FROM holdfast.task k WHERE k.run_id = $8 AND k.tenant_id + 0 = $1 OFFSET 0) t
      JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[t.tenant_id]) AND r.id = t.run_id AND r.deleted_at IS NULL
      JOIN holdfast.workflow w ON w.id = r.workflow_id
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(t.payload), 0) + coalesce(octet_length(t.form), 0)
                            + coalesce(octet_length(t.result), 0) AS own) s
     WHERE t.id < $3 AND (1 << t.status) & $5 <> 0 AND ($6::text IS NULL OR t.assignee = $6)
       AND ($7::text IS NULL OR strpos(t.roles, $7) > 0) AND ($9::text IS NULL OR t.name = $9)
       AND (NOT $10 OR t.due_at < holdfast.now()) AND ($2::bigint IS NULL OR true)
     ORDER BY t.id DESC LIMIT $4) p
 WHERE p.total - p.own <= $11 ORDER BY p.id DESC;
