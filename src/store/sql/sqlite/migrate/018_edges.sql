-- ---- What a holder sends twice is written once ----

ALTER TABLE event ADD COLUMN request TEXT; -- the first line that it wrote bears its id
ALTER TABLE event ADD COLUMN answer TEXT;  -- to it: the children that were started, ids with spaces between

-- Ids of requests are unique within a claim.
CREATE UNIQUE INDEX event_request ON event (run_id, version, request) WHERE request IS NOT NULL;
