-- Seals. The "place" of an event is what blocks are cut by: its position here, the number of its transaction in
-- PostgreSQL.

-- name: seal_head
-- The last seal. Serves: sealing, audit head.
-- takes: nothing
-- gives: (block bigint, hi bigint, hash text, created_at bigint)
SELECT block, hi_position, hash, created_at FROM seal ORDER BY block DESC LIMIT 1;

-- name: seal_horizon
-- What could be sealed from a place on: the first event, whether one is not the sealer's own, the place of the event
-- after the first so many, and the place below which nothing can come any more: there is one writer, so all that is
-- written. `behind` cannot be.
-- Served by the primary key of event. Serves: sealing.
-- takes: one (lo bigint, most int, sealer uuid)
-- gives: (first bigint, foreign bool, cut bigint, top bigint, behind bool, now bigint)
SELECT (SELECT e.position FROM event e WHERE e.position >= ?1 ORDER BY e.position LIMIT 1),
       EXISTS (SELECT 1 FROM event e WHERE e.position >= ?1 AND e.run_id IS NOT ?3 ORDER BY e.position LIMIT 1),
       (SELECT e.position FROM event e WHERE e.position >= ?1 ORDER BY e.position LIMIT 1 OFFSET ?2),
       coalesce((SELECT e.position + 1 FROM event e ORDER BY e.position DESC LIMIT 1), 0), 0,
       holdfast_now();

-- name: seal_order
-- The end of a block as it was given: with one writer, positions follow each run's own order. Serves: sealing.
-- takes: one (lo bigint, hi bigint)
-- gives: (hi bigint)
SELECT ?2;

-- name: block_events
-- The next page of a block's events, from a place on and there after a position: so many, or as many as hold no more than so
-- many bytes if each has 20,000. `live`: their run is there, if that is asked. `last`: none of the block follows. Served by
-- the primary key of event. Serves: sealing, audit verify.
-- takes: one (lo bigint, hi bigint, after bigint, most int, bytes bigint, asks_live bool)
-- gives: (place bigint, position bigint, tenant int, run uuid, seq bigint, version bigint, at bigint, kind int, format
--   int, name text, actor text, step text, data text, live bool, last bool)
SELECT e.position, e.position, e.tenant_id, e.run_id, e.seq, e.version, e.at, e.kind, e.format, e.name, e.actor, e.step,
       e.data,
       CASE WHEN ?6 THEN EXISTS (SELECT 1 FROM run r WHERE r.tenant_id = e.tenant_id AND r.id = e.run_id) ELSE 0 END,
       NOT EXISTS (SELECT 1 FROM event n WHERE n.position > e.position AND n.position < ?2)
  FROM event e
 WHERE e.position >= max(?1, ?3 + 1) AND e.position < ?2
 ORDER BY e.position LIMIT min(?4, max(?5 / 20000, 1));

-- name: insert_seal
-- Closes a block. Nothing given back: somebody else has closed it. Serves: sealing.
-- takes: one (block bigint, lo bigint, hi bigint, events bigint, hash text, previous text, runs text, created_at bigint)
-- gives: (block bigint)
INSERT INTO seal (block, lo_position, hi_position, events, hash, previous, runs, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING
RETURNING block;

-- name: next_seal
-- The seal after a block. Serves: audit verify.
-- takes: one (after bigint)
-- gives: (block bigint, lo bigint, hi bigint, events bigint, hash text, previous text, runs text, created_at bigint)
SELECT block, lo_position, hi_position, events, hash, previous, runs, created_at
  FROM seal WHERE block > ?1 ORDER BY block LIMIT 1;

-- name: count_unsealed
-- Events from a place on. Served by the primary key of event. Serves: audit verify.
-- takes: one (lo bigint)
-- gives: (events bigint)
SELECT count(*) FROM event WHERE position >= ?1;

-- name: seal_wanted
-- The block that should be closed next, if there are events after the last one other than those of sealing runs, and no sealing
-- run of the tenant is under way: that one goes on until all is sealed. Served by the primary key of event, the unique index
-- of workflow and run_claim. Serves: workers, with their heartbeat.
-- takes: one (tenant int)
-- gives: (block bigint)
SELECT coalesce((SELECT max(block) FROM seal), 0) + 1
 WHERE NOT EXISTS (SELECT 1 FROM workflow w JOIN run r INDEXED BY run_claim ON r.lane = w.lane
                    WHERE w.tenant_id = ?1 AND w.name = 'holdfast.seal'
                      AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL)
   AND EXISTS (SELECT 1 FROM event e
                WHERE e.position >= coalesce((SELECT s.hi_position FROM seal s ORDER BY s.block DESC LIMIT 1), 0)
                  AND NOT EXISTS (SELECT 1 FROM run r JOIN workflow w ON w.id = r.workflow_id
                                   WHERE r.tenant_id = e.tenant_id AND r.id = e.run_id AND w.name = 'holdfast.seal')
                ORDER BY e.position LIMIT 1);
