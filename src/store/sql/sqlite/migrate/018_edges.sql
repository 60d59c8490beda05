-- ---- What a holder sends twice is written once ----

ALTER TABLE event ADD COLUMN request TEXT; -- the first line that it wrote bears its id
ALTER TABLE event ADD COLUMN answer TEXT;  -- to it: the children that were started, ids with spaces between

-- Ids of requests are unique within a claim.
CREATE UNIQUE INDEX event_request ON event (run_id, version, request) WHERE request IS NOT NULL;

-- What was cancelled a moment ago, for those who held it: said in a form that only they use, so that nothing else is planned with it.
CREATE INDEX run_cancelled ON run (tenant_id, finished_at) WHERE status + 0 = 6;
