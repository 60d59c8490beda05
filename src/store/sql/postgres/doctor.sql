-- name: find_dead_holders
-- Workers that are dead and hold runs, with the end of the last of these leases. At most `most` unfinished runs are looked
-- at. Served by run_claim. Serves: doctor.
-- takes: one (most int)
-- gives: (worker text, runs bigint, until bigint)
SELECT w.name, count(*), max(h.run_at)
  FROM (SELECT r.status, r.leased_by, r.run_at
          FROM holdfast.lane l
         CROSS JOIN LATERAL (
            SELECT x.status, x.leased_by, x.run_at FROM holdfast.run x
             WHERE x.lane = l.id AND x.status <= 3 AND x.deleted_at IS NULL AND x.run_at IS NOT NULL OFFSET 0) r
         LIMIT $1) h
  JOIN holdfast.worker w ON w.name = h.leased_by
 WHERE h.status = 1 AND w.expires_at <= holdfast.now()
 GROUP BY w.name ORDER BY w.name;

-- name: find_stuck
-- Live workers whose threads are all stuck. Serves: doctor.
-- takes: nothing
-- gives: (worker text, stuck int, threads int)
SELECT w.name, w.stuck, w.threads FROM holdfast.worker w
 WHERE w.stuck > 0 AND w.stuck >= w.threads AND w.expires_at > holdfast.now()
 ORDER BY w.name LIMIT 1000;

-- name: missing_guards
-- Triggers that keep the journal append-only and are not there, or are switched off. Serves: doctor.
-- takes: nothing
-- gives: (name text)
SELECT g.name
  FROM (VALUES ('holdfast.event', 'event_append_only'), ('holdfast.event', 'event_no_truncate'),
               ('holdfast.run', 'run_removal'), ('holdfast.run', 'run_no_truncate'),
               ('holdfast.seal', 'seal_append_only')) g(place, name)
 WHERE NOT EXISTS (SELECT 1 FROM pg_trigger t
                    WHERE t.tgrelid = g.place::regclass AND t.tgname = g.name AND t.tgenabled IN ('O', 'A'));

-- name: find_unfit
-- Runs that wait for a worker whose code fits, by workflow: how many of them, since when, and one that has waited longest.
-- At most `most` are looked at. Served by run_unfit and the primary keys. Serves: doctor.
-- takes: one (most int)
-- gives: (tenant text, workflow text, runs bigint, since bigint, run uuid, last_error text, now bigint)
SELECT t.name, w.name, g.runs, o.unfit_since, o.id, o.last_error, holdfast.now()
  FROM (SELECT u.workflow_id, count(*) AS runs
          FROM (SELECT r.workflow_id, r.waiting_kind, r.deleted_at FROM holdfast.run r
                 WHERE r.unfit_since IS NOT NULL AND r.status = 2 LIMIT $1) u
         WHERE u.waiting_kind = 'worker' AND u.deleted_at IS NULL
         GROUP BY u.workflow_id) g
  JOIN holdfast.workflow w ON w.id = g.workflow_id
  JOIN holdfast.tenant t ON t.id = w.tenant_id
 CROSS JOIN LATERAL (
    SELECT r.id, r.unfit_since, r.last_error FROM holdfast.run r
     WHERE r.workflow_id = g.workflow_id AND r.unfit_since IS NOT NULL AND r.status = 2
       AND r.waiting_kind = 'worker' AND r.deleted_at IS NULL
     ORDER BY r.unfit_since LIMIT 1) o
 ORDER BY t.name, w.name LIMIT 1000;

-- name: find_parked
-- Subscriptions that nothing is delivered to: the run that delivers is paused, or waits for somebody to resume it. Serves:
-- doctor.
-- takes: nothing
-- gives: (tenant text, name text, last_error text)
SELECT t.name, s.name, r.state::json ->> 'error'
  FROM holdfast.subscription s
  JOIN holdfast.tenant t ON t.id = s.tenant_id
 CROSS JOIN LATERAL (
    SELECT x.status, x.pause_requested, x.waiting_kind, x.state FROM holdfast.run x
     WHERE x.tenant_id = s.tenant_id AND x.id = s.run_id OFFSET 0) r
 WHERE r.status = 3 OR r.pause_requested OR (r.status = 2 AND r.waiting_kind = 'parked')
 ORDER BY t.name, s.name LIMIT 1000;

-- name: server_settings
-- Settings of the server that keep data safe or clean, as they are without the engine's own. Serves: doctor.
-- only: postgres
-- takes: nothing
-- gives: (name text, value text)
SELECT s.name, s.reset_val FROM pg_settings s
 WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts')
 ORDER BY s.name;

-- name: server_connections
-- How many connections there are, and how many there may be. Serves: doctor.
-- only: postgres
-- takes: nothing
-- gives: (used int, most int)
SELECT (SELECT count(*)::int FROM pg_stat_activity a WHERE a.backend_type = 'client backend'),
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int;

-- name: server_place
-- Where the server keeps its data, if this role may know; whether it runs on the client's machine, as far as the server can
-- tell; the size of the database. Serves: doctor.
-- only: postgres
-- takes: nothing
-- gives: (directory text, local bool, bytes bigint)
SELECT (SELECT s.setting FROM pg_settings s WHERE s.name = 'data_directory'),
       inet_client_addr() IS NULL OR host(inet_client_addr()) IN ('127.0.0.1', '::1')
          OR inet_client_addr() = inet_server_addr(),
       pg_database_size(current_database());

-- name: long_transactions
-- Transactions of this database that are as old as this (us), prepared ones among them, and those that others wait for;
-- the oldest first. Serves: doctor.
-- only: postgres
-- takes: one (age bigint)
-- gives: (pid int, who text, program text, state text, age bigint, waiting bigint)
SELECT x.pid, x.who, x.program, x.state, x.age, x.waiting
  FROM (SELECT a.pid, a.usename::text AS who, a.application_name AS program, a.state,
               (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint AS age,
               (SELECT count(*) FROM pg_stat_activity b
                 WHERE b.wait_event_type = 'Lock' AND a.pid = ANY (pg_blocking_pids(b.pid))) AS waiting
          FROM pg_stat_activity a
         WHERE a.datname = current_database() AND a.xact_start IS NOT NULL AND a.pid <> pg_backend_pid()
           AND a.backend_type = 'client backend'
        UNION ALL
        SELECT 0, p.owner::text, p.gid, 'prepared',
               (extract(epoch FROM clock_timestamp() - p.prepared) * 1000000)::bigint, 0
          FROM pg_prepared_xacts p WHERE p.database = current_database()) x
 WHERE x.age >= $1 OR x.waiting > 0
 ORDER BY x.age DESC LIMIT 20;

-- name: table_locks
-- Locks on whole tables of the engine that keep it from writing. Serves: doctor.
-- only: postgres
-- takes: nothing
-- gives: (pid int, who text, program text, relation text, mode text, age bigint)
SELECT a.pid, a.usename::text, a.application_name, c.relname::text, l.mode,
       (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint
  FROM pg_locks l
  JOIN pg_class c ON c.oid = l.relation
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'holdfast'
  JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()
 WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
   AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
 ORDER BY a.xact_start, c.relname LIMIT 20;

-- name: table_health
-- The engine's tables: rows that live and rows that are to be cleaned up, when that was last done, whether it is done
-- by itself. Serves: doctor.
-- only: postgres
-- takes: nothing
-- gives: (name text, live bigint, dead bigint, vacuumed_at bigint, autovacuum bool, bytes bigint)
SELECT s.relname::text, s.n_live_tup, s.n_dead_tup,
       (extract(epoch FROM greatest(s.last_vacuum, s.last_autovacuum)) * 1000000)::bigint,
       NOT EXISTS (SELECT 1 FROM pg_options_to_table(c.reloptions) o
                    WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean),
       pg_total_relation_size(c.oid)
  FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
 WHERE s.schemaname = 'holdfast' ORDER BY s.relname;
