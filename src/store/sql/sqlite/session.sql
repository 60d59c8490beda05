-- What the SQLite driver says for itself: settings of a connection, and the frame of a transaction.

-- name: sqlite_session
-- Settings that last as long as a connection. Serves: every connection, once, right after it was opened.
-- only: sqlite
-- takes: nothing
-- gives: nothing
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16384;
PRAGMA secure_delete = FAST;

-- name: sqlite_use_wal
-- Makes readers and the writer independent of each other; stays in the file. Serves: opening a store.
-- only: sqlite
-- takes: nothing
-- gives: (mode text)
PRAGMA journal_mode = WAL;

-- name: sqlite_whose
-- Whether the file is a store, or nothing yet. Serves: opening a store, before anything is written.
-- only: sqlite
-- takes: nothing
-- gives: (ours bool)
SELECT EXISTS (SELECT 1 FROM pragma_table_info('schema_version') WHERE name = 'min_writer')
    OR (NOT EXISTS (SELECT 1 FROM sqlite_master)
        AND (SELECT application_id FROM pragma_application_id) = 0 AND (SELECT user_version FROM pragma_user_version) = 0);

-- name: sqlite_sync_later
-- From the next transaction on, a commit may be seen before it is on disk: whoever commits must see to that by himself. Serves:
-- a claim that may be handed out early.
-- only: sqlite
-- takes: nothing
-- gives: nothing
PRAGMA synchronous = NORMAL;

-- name: sqlite_sync_at_commit
-- As it is otherwise.
-- only: sqlite
-- takes: nothing
-- gives: nothing
PRAGMA synchronous = FULL;

-- name: sqlite_begin
-- Starts a transaction that may write; the writer's lock is held by the caller.
-- only: sqlite
-- takes: nothing
-- gives: nothing
BEGIN IMMEDIATE;

-- name: sqlite_begin_reading
-- One snapshot for a reading statement that is executed several times.
-- only: sqlite
-- takes: nothing
-- gives: nothing
BEGIN DEFERRED;

-- name: sqlite_commit
-- only: sqlite
-- takes: nothing
-- gives: nothing
COMMIT;

-- name: sqlite_rollback
-- only: sqlite
-- takes: nothing
-- gives: nothing
ROLLBACK;

-- name: sqlite_rows
-- The columns of holdfast_rows, which shows a statement the rows that it takes. It is no table of the store. Serves: every
-- connection.
-- only: sqlite
-- takes: nothing
-- gives: nothing
CREATE TABLE holdfast_rows (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20);
