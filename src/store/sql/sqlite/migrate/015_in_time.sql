-- Indexes of lists by time and by flow key that cost other runs next to nothing.

-- Who inserts a run says so where its id tells the time: to find that out costs as much as two other indexes. A null says
-- nothing: runs from before, or of a program that does not know of it.
ALTER TABLE run ADD COLUMN in_time INTEGER;
DROP INDEX run_odd;
CREATE INDEX run_odd ON run (tenant_id, id, created_at)
    WHERE in_time IS NULL
      AND hex(id) NOT BETWEEN printf('%012X', created_at / 1000 - 1000) AND printf('%012X', created_at / 1000 + 101);

-- Runs with a flow key: their lanes have odd numbers.
DROP INDEX run_flow;
CREATE INDEX run_flow ON run (lane, id) WHERE lane & 1 = 1;
