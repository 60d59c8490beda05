-- Reading the journal by position, for live views. The index of positions is small because it is of a kind that only
-- bitmap scans can read, which the engine's sessions are forbidden, so that no other plan falls to them; the function
-- allows them for itself.

ALTER INDEX holdfast.event_by_position SET (autosummarize = on);

CREATE FUNCTION holdfast.events_after(after bigint, upto bigint, most int)
    RETURNS TABLE (pos bigint, tenant int, run uuid, event_seq int, event_kind smallint, event_name text,
                   event_actor text, event_step text, event_at bigint)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = on AS $$
    SELECT e.position, e.tenant_id, e.run_id, e.seq, e.kind, e.name, e.actor, e.step, e.at
      FROM holdfast.event e WHERE e.position > $1 AND e.position <= $2 ORDER BY e.position LIMIT $3
$$;
