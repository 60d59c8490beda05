-- name: list_letters
-- Dead letters of a tenant, newest first, after a cursor; of one run, or with a reason that begins so. Ends with the
-- one with which they hold more than `bytes`; total is what they hold so far. Served by the primary key, read
-- backwards. Serves: dead-letter list.
-- takes: one (tenant int, before uuid, most int, run uuid, reason text, bytes bigint)
-- gives: (id uuid, run uuid, reason text, envelope text, node text, created_at bigint, own int, total bigint)
SELECT * FROM (
    SELECT d.id, d.run_id, d.reason, d.envelope, d.node, d.created_at,
           s.own, sum(s.own) OVER (ORDER BY d.id DESC ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.dead_letter d
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(d.envelope), 0) AS own) s
     WHERE d.tenant_id = $1 AND ($2::uuid IS NULL OR d.id < $2) AND ($4::uuid IS NULL OR d.run_id = $4)
       AND ($5::text IS NULL OR starts_with(d.reason, $5))
     ORDER BY d.id DESC LIMIT $3) p
 WHERE p.total - p.own <= $6 ORDER BY p.id DESC;

-- name: get_letter
-- One dead letter. Served by the primary key. Serves: dead-letter show, requeue.
-- takes: one (tenant int, id uuid)
-- gives: (id uuid, run uuid, reason text, envelope text, node text, created_at bigint)
SELECT d.id, d.run_id, d.reason, d.envelope, d.node, d.created_at FROM holdfast.dead_letter d
 WHERE d.tenant_id = $1 AND d.id = $2;

-- name: settle_letter
-- Takes a dead letter away and says so in the journal of its run, where that exists. Nothing given back: it was not
-- there. Served by the primary keys. Serves: dead-letter requeue and discard.
-- takes: one (tenant int, id uuid, name text, actor text)
-- gives: (run uuid)
WITH gone AS (
    DELETE FROM holdfast.dead_letter d WHERE d.tenant_id = $1 AND d.id = $2 RETURNING d.run_id
), told AS (
    UPDATE holdfast.run r SET event_seq = r.event_seq + 1, updated_at = holdfast.now()
     WHERE r.tenant_id = $1 AND r.id = (SELECT g.run_id FROM gone g)
    RETURNING r.id, r.event_seq, r.version
), line AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor, data)
    SELECT t.id, t.event_seq, t.version, $1, holdfast.now(), 4, $3, $4, json_build_object('dead_letter', $2)::text
      FROM told t
)
SELECT g.run_id FROM gone g;
