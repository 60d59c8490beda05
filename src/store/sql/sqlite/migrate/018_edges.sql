-- ---- What a holder sends twice is written once ----

ALTER TABLE event ADD COLUMN request TEXT; -- the first line that it wrote bears its id
ALTER TABLE event ADD COLUMN answer TEXT;  -- to it: the children that were started, ids with spaces between

-- Ids of requests are unique within a claim.
CREATE UNIQUE INDEX event_request ON event (run_id, version, request) WHERE request IS NOT NULL;

-- What was cancelled a moment ago, for those who held it: said in a form that only they use, so that nothing else is planned with it.
CREATE INDEX run_cancelled ON run (tenant_id, finished_at) WHERE status + 0 = 6;

ALTER TABLE worker ADD COLUMN stuck INTEGER NOT NULL DEFAULT 0; -- threads whose run is gone and that do not come back

-- ---- Runs that wait for a worker whose code fits their history ----

ALTER TABLE run ADD COLUMN unfit_since INTEGER; -- since when no worker's code has fitted; null: the last one's did
ALTER TABLE run ADD COLUMN unfit_pause INTEGER; -- us: the last pause before another worker looked at it
CREATE INDEX run_unfit ON run (workflow_id, unfit_since) WHERE unfit_since IS NOT NULL AND status = 2;

-- How long a run may wait for such a worker before it fails.
ALTER TABLE workflow ADD COLUMN fit_within INTEGER NOT NULL DEFAULT 86400000000;

-- ---- Runs keep their place in the order when their lease ends ----

-- What is held, by the end of its lease: said in a form that only they use who look for it, so that nothing else is planned with
-- it.
CREATE INDEX run_leased ON run (run_at) WHERE status + 0 = 1;
