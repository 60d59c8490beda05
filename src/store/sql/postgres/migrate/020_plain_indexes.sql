-- Every change of a run writes an entry of its own into these, and no two are equal but for the versions of one run: to look
-- for equal ones whenever a page is full takes a thirtieth of what claiming and ending a run costs.
ALTER INDEX holdfast.run_pkey SET (deduplicate_items = off);
ALTER INDEX holdfast.run_state SET (deduplicate_items = off);
