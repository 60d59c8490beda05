-- As for run_pkey: what is claimed and ended writes an entry into it each time, and no two are equal but for the versions of one
-- run.
ALTER INDEX holdfast.run_parent SET (deduplicate_items = off);
