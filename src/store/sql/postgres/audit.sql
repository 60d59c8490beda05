-- Seals. The "place" of an event is what blocks are cut by: the number of its transaction here, its position in SQLite.

-- name: seal_head
-- The last seal. Serves: sealing, audit head.
-- takes: nothing
-- gives: (block bigint, hi bigint, hash text, created_at bigint)
SELECT s.block, s.hi_xid::text::bigint, encode(s.hash, 'hex'), s.created_at
  FROM holdfast.seal s ORDER BY s.block DESC LIMIT 1;

-- name: seal_horizon
-- What could be sealed from a place on: the first event, whether one is not the sealer's own, the place of the event
-- after the first so many, and the place below which nothing can come any more: that of the oldest transaction that
-- still runs. `behind`: the server's transactions have smaller numbers than those that were sealed. Served by event_xid.
-- Serves: sealing.
-- takes: one (lo bigint, most int, sealer uuid)
-- gives: (first bigint, foreign bool, cut bigint, top bigint, behind bool, now bigint)
WITH h AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS top)
SELECT (SELECT e.xid::text::bigint FROM holdfast.event e
         WHERE e.xid >= $1::text::xid8 AND e.xid < h.top ORDER BY e.xid LIMIT 1),
       EXISTS (SELECT 1 FROM holdfast.event e
                WHERE e.xid >= $1::text::xid8 AND e.xid < h.top AND e.run_id IS DISTINCT FROM $3
                ORDER BY e.xid LIMIT 1),
       (SELECT e.xid::text::bigint FROM holdfast.event e
         WHERE e.xid >= $1::text::xid8 AND e.xid < h.top ORDER BY e.xid OFFSET $2 LIMIT 1),
       h.top::text::bigint, h.top < $1::text::xid8, holdfast.now()
  FROM h;

-- name: seal_order
-- Lowers the end of a block to before the first event whose forerunner in its run is not below that end: a transaction
-- can have the smaller number and write later. Then blocks follow each run's own order. The same end given back: it is
-- good. Served by event_xid and the primary key of event. Serves: sealing.
-- takes: one (lo bigint, hi bigint)
-- gives: (hi bigint)
SELECT coalesce((SELECT e.xid::text::bigint FROM holdfast.event e
                  WHERE e.xid >= $1::text::xid8 AND e.xid < $2::text::xid8
                    AND EXISTS (SELECT 1 FROM holdfast.event f
                                 WHERE f.run_id = e.run_id AND f.seq = e.seq - 1 AND f.xid >= $2::text::xid8 OFFSET 0)
                  ORDER BY e.xid LIMIT 1), $2);

-- name: block_events
-- The next page of a block's events, from a place on and there after a position: so many, or fewer if these hold more than so
-- many bytes, but one. `live`: their run is there, if that is asked. `last`: none of the block follows. The events of one
-- transaction are read again for each page that begins among them. Served by event_xid. Serves: sealing, audit verify.
-- takes: one (lo bigint, hi bigint, after bigint, most int, bytes bigint, asks_live bool)
-- gives: (place bigint, position bigint, tenant int, run uuid, seq bigint, version bigint, at bigint, kind int, format
--   int, name text, actor text, step text, data text, live bool, last bool)
SELECT p.xid::text::bigint, p.position, p.tenant_id, p.run_id, p.seq, p.version, p.at, p.kind, p.format, p.name, p.actor,
       p.step, p.data,
       CASE WHEN $6 THEN EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = p.tenant_id AND r.id = p.run_id OFFSET 0)
            ELSE false END,
       p.number = p.found AND p.found < $4
  FROM (SELECT q.*, row_number() OVER w AS number, count(*) OVER () AS found,
               sum(coalesce(octet_length(q.data), 0)) OVER w AS bytes
          FROM (SELECT e.xid, e.position, e.tenant_id, e.run_id, e.seq, e.version, e.at, e.kind, e.format, e.name, e.actor,
                       e.step, e.data
                  FROM holdfast.event e
                 WHERE e.xid >= greatest($1, 0)::text::xid8 AND e.xid < $2::text::xid8
                   AND (e.xid > greatest($1, 0)::text::xid8 OR e.position > $3)
                 ORDER BY e.xid, e.position LIMIT $4) q
        WINDOW w AS (ORDER BY q.xid, q.position ROWS UNBOUNDED PRECEDING)) p
 WHERE p.number = 1 OR p.bytes <= $5
 ORDER BY p.xid, p.position;

-- name: insert_seal
-- Closes a block. Nothing given back: somebody else has closed it. Serves: sealing.
-- takes: one (block bigint, lo bigint, hi bigint, events bigint, hash text, previous text, runs text, created_at bigint)
-- gives: (block bigint)
INSERT INTO holdfast.seal (block, lo_xid, hi_xid, events, hash, previous, runs, created_at)
VALUES ($1, $2::text::xid8, $3::text::xid8, $4, decode($5, 'hex'), decode($6, 'hex'), $7, $8)
ON CONFLICT DO NOTHING
RETURNING block;

-- name: next_seal
-- The seal after a block. Serves: audit verify.
-- takes: one (after bigint)
-- gives: (block bigint, lo bigint, hi bigint, events bigint, hash text, previous text, runs text, created_at bigint)
SELECT s.block, s.lo_xid::text::bigint, s.hi_xid::text::bigint, s.events, encode(s.hash, 'hex'),
       encode(s.previous, 'hex'), s.runs, s.created_at
  FROM holdfast.seal s WHERE s.block > $1 ORDER BY s.block LIMIT 1;

-- name: count_unsealed
-- Events from a place on. Served by event_xid. Serves: audit verify.
-- takes: one (lo bigint)
-- gives: (events bigint)
SELECT count(*) FROM holdfast.event e WHERE e.xid >= $1::text::xid8;

-- name: seal_wanted
-- The block that should be closed next, if there are events after the last one other than those of sealing runs, and no sealing
-- run of the tenant is under way: that one goes on until all is sealed. Served by event_xid, the unique index of workflow and
-- run_claim. Serves: workers, with their heartbeat.
-- takes: one (tenant int)
-- gives: (block bigint)
WITH h AS MATERIALIZED (
    SELECT coalesce(max(s.block), 0) AS block, coalesce(max(s.hi_xid::text), '0')::xid8 AS hi
      FROM (SELECT l.block, l.hi_xid FROM holdfast.seal l ORDER BY l.block DESC LIMIT 1) s)
SELECT h.block + 1 FROM h
 WHERE NOT EXISTS (SELECT 1 FROM holdfast.run r
                    WHERE r.lane = (SELECT w.lane FROM holdfast.workflow w WHERE w.tenant_id = $1 AND w.name = 'holdfast.seal')
                      AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL OFFSET 0)
   AND EXISTS (SELECT 1 FROM holdfast.event e
                WHERE e.xid >= h.hi
                  AND NOT EXISTS (SELECT 1 FROM holdfast.run r JOIN holdfast.workflow w ON w.id = r.workflow_id
                                   WHERE r.tenant_id = e.tenant_id AND r.id = e.run_id AND w.name = 'holdfast.seal'
                                  OFFSET 0)
                ORDER BY e.xid LIMIT 1);
