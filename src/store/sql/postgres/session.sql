-- name: apply_settings
-- Settings of the engine's sessions, or (local) of the transaction at hand: plans must not fall to scans of whole
-- tables on the statistics of an empty or tiny one, and nothing that others put into a search path is ever found.
-- What settings cannot keep from a plan, a whole index read in place of some rows looked up, the statements do by
-- their form: a sub-select with OFFSET 0 is performed for each row of parameters, and tenant_id = ANY (ARRAY[...])
-- can be looked up in an index, but is no reason to read it in order. A lock that somebody else's transaction holds
-- is not waited for longer than lock_timeout, so that one run that is locked does not hold up all others; no other limit
-- of time, meant for other users of the database, ends a statement of many operations.
-- A commit is answered when it is durable, whatever the server's default. Serves: every connection.
-- only: postgres
-- takes: one (local bool)
-- gives: nothing
SELECT pg_catalog.set_config(s.name, s.value, $1)
  FROM (VALUES ('jit', 'off'),
               ('plan_cache_mode', 'force_generic_plan'),
               ('enable_seqscan', 'off'),
               ('enable_hashjoin', 'off'),
               ('enable_mergejoin', 'off'),
               ('enable_bitmapscan', 'off'),
               ('standard_conforming_strings', 'on'),
               ('idle_in_transaction_session_timeout', '60s'),
               ('lock_timeout', '300ms'),
               ('statement_timeout', '0'),
               ('synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                      ELSE pg_catalog.current_setting('synchronous_commit') END),
               ('search_path', 'pg_catalog, pg_temp')) AS s (name, value);

-- name: begin
-- Begins a transaction. Serves: every flush.
-- only: postgres
-- takes: nothing
-- gives: nothing
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: commit
-- Ends a transaction. Serves: every flush.
-- only: postgres
-- takes: nothing
-- gives: nothing
COMMIT;

-- name: defer_flush
-- Lets the transaction at hand be seen by others as soon as it commits, before it is on disk; make_durable must follow. Where
-- the disk is not all that a commit waits for, it stays as it is. Serves: a lone trigger whose run says so (deferred), and whose
-- worker is woken meanwhile.
-- only: postgres
-- takes: nothing
-- gives: nothing
SELECT pg_catalog.set_config('synchronous_commit', 'off', true)
 WHERE pg_catalog.current_setting('synchronous_standby_names') = '';

-- name: make_durable
-- Only a commit that has something of its own to write waits for the disk, and then for all before it, too. The lock on a row that
-- nobody ever changes is such a thing: it keeps nobody out, and no user of the journal or of logical replication sees it. Served
-- by the primary key of schema_version. Serves: what was committed after defer_flush, and triggers that may have been.
-- only: postgres
-- takes: nothing
-- gives: nothing
SELECT v.version FROM holdfast.schema_version v WHERE v.version = 1 FOR KEY SHARE;

-- name: is_at_work
-- Whether a session works on what it was asked: not one that waits for its client to send, or to read. A pooler tells its
-- clients numbers that are no session's, as seen by the number that it told who asks: then that it is answered is the
-- answer. Serves: a connection that was silent for too long.
-- only: postgres
-- takes: one (pid int, own_pid int)
-- gives: (works bool)
SELECT $2::int <> pg_catalog.pg_backend_pid()
       OR EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
                   WHERE a.pid = $1 AND a.state NOT LIKE 'idle%'
                     AND a.wait_event_type IS DISTINCT FROM 'Client') AS works;

-- name: end_session
-- Ends a session that was at work for too long. Not behind a pooler, as above: the number might be somebody else's. Serves: a
-- connection that is given up.
-- only: postgres
-- takes: one (pid int, own_pid int)
-- gives: (ended bool)
SELECT CASE WHEN $2::int = pg_catalog.pg_backend_pid() THEN pg_catalog.pg_terminate_backend($1::int) ELSE false END AS ended;

-- name: try_migrate_lock
-- One migration at a time; the lock ends with the transaction. Nobody without rights on the table can take it, and it keeps nobody
-- from reading what version there is, or from adding one. An error if somebody has it. Serves: migrations.
-- only: postgres
-- takes: nothing
-- gives: nothing
LOCK TABLE holdfast.schema_version IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
