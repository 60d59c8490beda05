-- Runs keep their place in the order when their lease ends. Statements can be repeated: a try may break off between them.
-- holdfast: no transaction
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_leased;
;;
-- What is held, by the end of its lease: said in a form that only they use who look for it, so that nothing else is planned with
-- it.
CREATE INDEX CONCURRENTLY run_leased ON holdfast.run (run_at) WHERE status + 0 = 1;
