-- Tags by their run, so that a purge finds them. Built beside the work that goes on; a try that broke off left an
-- invalid index.
-- holdfast: no transaction
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_tag_run;
;;
CREATE INDEX CONCURRENTLY run_tag_run ON holdfast.run_tag (run_id);
