-- What a holder sends twice is written once. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
ALTER TABLE holdfast.event ADD COLUMN IF NOT EXISTS request text COLLATE "C"; -- the first line that it wrote bears its id
;;
ALTER TABLE holdfast.event ADD COLUMN IF NOT EXISTS answer text; -- to it: the children that were started, ids with spaces between
;;
-- Ids of requests are unique within a claim.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.event_request;
;;
CREATE UNIQUE INDEX CONCURRENTLY event_request ON holdfast.event (run_id, version, request) WHERE request IS NOT NULL;
;;
-- What was cancelled a moment ago, for those who held it: said in a form that only they use, so that nothing else is planned with it.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_cancelled;
;;
CREATE INDEX CONCURRENTLY run_cancelled ON holdfast.run (tenant_id, finished_at) WHERE status + 0 = 6;
;;
ALTER TABLE holdfast.worker ADD COLUMN IF NOT EXISTS stuck int NOT NULL DEFAULT 0; -- threads whose run is gone and that do not come back
