-- Delivery of outbox events to subscriptions. Each event has one row of delivery per subscription that wants it, made in
-- the transaction that writes the event: so one that commits late is not passed by. Statements can be repeated: a try may
-- break off between them.
-- holdfast: no transaction
ALTER TABLE holdfast.subscription
    ADD COLUMN IF NOT EXISTS mode         smallint NOT NULL DEFAULT 0, -- 0 structured 1 binary
    ADD COLUMN IF NOT EXISTS max_failures int      NOT NULL DEFAULT 10,
    ADD COLUMN IF NOT EXISTS run_id       uuid; -- of holdfast.dispatch, which delivers to it
;;
CREATE UNIQUE INDEX IF NOT EXISTS subscription_run ON holdfast.subscription (run_id);
;;
-- What is still to be delivered; gone when it was.
CREATE TABLE IF NOT EXISTS holdfast.delivery (
    subscription_id uuid   NOT NULL,
    position        bigint NOT NULL, -- of the event: the order of delivery
    outbox_id       uuid   NOT NULL,
    attempts        int    NOT NULL DEFAULT 0,
    last_error      text,
    PRIMARY KEY (subscription_id, position)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
;;
CREATE INDEX IF NOT EXISTS delivery_outbox ON holdfast.delivery (outbox_id);
;;
-- What is there was written before anybody could subscribe.
UPDATE holdfast.outbox SET published_at = created_at WHERE published_at IS NULL;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.outbox_place;
;;
CREATE INDEX CONCURRENTLY outbox_place ON holdfast.outbox (tenant_id, position);
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.outbox_waiting;
;;
CREATE INDEX CONCURRENTLY outbox_waiting ON holdfast.outbox (tenant_id, position) WHERE published_at IS NULL;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.outbox_published;
;;
CREATE INDEX CONCURRENTLY outbox_published ON holdfast.outbox (tenant_id, published_at) WHERE published_at IS NOT NULL;
;;
DROP INDEX CONCURRENTLY IF EXISTS holdfast.outbox_unpublished;
;;
-- Whether a filter, a JSON array of types and prefixes that end with a star, wants a type. The engine's own events are
-- wanted only by patterns that begin with "holdfast.".
CREATE OR REPLACE FUNCTION holdfast.event_wanted(filter text, type text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT EXISTS (SELECT 1 FROM json_array_elements_text(event_wanted.filter::json) AS p(pattern)
                   WHERE starts_with(p.pattern, 'holdfast.') = starts_with(event_wanted.type, 'holdfast.')
                     AND (p.pattern = event_wanted.type
                          OR (right(p.pattern, 1) = '*' AND starts_with(event_wanted.type, left(p.pattern, -1))))) $$;
