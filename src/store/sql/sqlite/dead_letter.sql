-- name: list_letters
-- Dead letters of a tenant, newest first, after a cursor; of one run, or with a reason that begins so. Ends with the
-- one with which they hold more than `bytes`; total is what they hold so far. Served by the primary key, read
-- backwards. Serves: dead-letter list.
-- takes: one (tenant int, before uuid, most int, run uuid, reason text, bytes bigint)
-- gives: (id uuid, run uuid, reason text, envelope text, node text, created_at bigint, own int, total bigint)
SELECT d.id, d.run_id, d.reason, d.envelope, d.node, d.created_at, p.own, p.total
  FROM (SELECT c.*, sum(c.own) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS total
          FROM (
            SELECT d.rowid AS place, d.id AS id,
                   coalesce(length(CAST(d.envelope AS BLOB)), 0) AS own
              FROM dead_letter d
             WHERE d.tenant_id = ?1 AND (?2 IS NULL OR d.id < ?2) AND (?4 IS NULL OR d.run_id = ?4)
               AND (?5 IS NULL OR substr(d.reason, 1, length(?5)) = ?5)
             ORDER BY d.id DESC LIMIT ?3) c) p
 CROSS JOIN dead_letter d ON d.rowid = p.place
 WHERE p.total - p.own <= ?6 ORDER BY p.id DESC;

-- name: get_letter
-- One dead letter. Served by the primary key. Serves: dead-letter show, requeue.
-- takes: one (tenant int, id uuid)
-- gives: (id uuid, run uuid, reason text, envelope text, node text, created_at bigint)
SELECT id, run_id, reason, envelope, node, created_at FROM dead_letter WHERE tenant_id = ?1 AND id = ?2;

-- name: settle_letter
-- Takes a dead letter away and says so in the journal of its run, where that exists. Nothing given back: it was not
-- there. Served by the primary keys. Serves: dead-letter requeue and discard.
-- takes: one (tenant int, id uuid, name text, actor text)
-- gives: (run uuid)
UPDATE run SET event_seq = event_seq + 1, updated_at = holdfast_now()
 WHERE tenant_id = ?1 AND id = (SELECT d.run_id FROM dead_letter d WHERE d.tenant_id = ?1 AND d.id = ?2);
INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, actor, data)
SELECT r.id, r.event_seq, r.version, ?1, holdfast_now(), 4, ?3, ?4, json_object('dead_letter', holdfast_uuid_text(?2))
  FROM run r
 WHERE changes() = 1 AND r.tenant_id = ?1
   AND r.id = (SELECT d.run_id FROM dead_letter d WHERE d.tenant_id = ?1 AND d.id = ?2);
DELETE FROM dead_letter WHERE tenant_id = ?1 AND id = ?2 RETURNING run_id;
