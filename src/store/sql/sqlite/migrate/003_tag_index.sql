-- Tags by their run, so that a purge finds them.

CREATE INDEX run_tag_run ON run_tag (run_id);
