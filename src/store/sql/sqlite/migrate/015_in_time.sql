-- Indexes of lists by time and by flow key that cost other runs next to nothing. They have names of their own: programs of the
-- version before name run_odd and run_flow, and their lists would fail without these, or with others of that name.

-- Who inserts a run says so where its id tells the time: to find that out costs as much as two other indexes. A null says
-- nothing: runs from before, or of a program that does not know of it.
ALTER TABLE run ADD COLUMN in_time INTEGER;
CREATE INDEX run_odd_id ON run (tenant_id, id, created_at)
    WHERE in_time IS NULL
      AND hex(id) NOT BETWEEN printf('%012X', created_at / 1000 - 1000) AND printf('%012X', created_at / 1000 + 101);

-- Runs with a flow key: their lanes have odd numbers.
CREATE INDEX run_flow_id ON run (lane, id) WHERE lane & 1 = 1;

-- holdfast: new stores only
-- Of the old ones, run_odd is computed and run_flow mostly written for every run. In a store that has been in use they stay
-- until a later migration: programs of the version before may be at work there.
DROP INDEX run_odd;
DROP INDEX run_flow;
