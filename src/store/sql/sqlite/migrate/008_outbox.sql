-- Delivery of outbox events to subscriptions. Each event has one row of delivery per subscription that wants it, made in
-- the transaction that writes the event.

ALTER TABLE subscription ADD COLUMN mode INTEGER NOT NULL DEFAULT 0; -- 0 structured 1 binary
ALTER TABLE subscription ADD COLUMN max_failures INTEGER NOT NULL DEFAULT 10;
ALTER TABLE subscription ADD COLUMN run_id BLOB; -- of holdfast.dispatch, which delivers to it
CREATE UNIQUE INDEX subscription_run ON subscription (run_id);

-- What is still to be delivered; gone when it was.
CREATE TABLE delivery (
    subscription_id BLOB    NOT NULL,
    position        INTEGER NOT NULL, -- of the event: the order of delivery
    outbox_id       BLOB    NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT,
    PRIMARY KEY (subscription_id, position)
) WITHOUT ROWID;
CREATE INDEX delivery_outbox ON delivery (outbox_id);

-- What is there was written before anybody could subscribe.
UPDATE outbox SET published_at = created_at WHERE published_at IS NULL;

CREATE INDEX outbox_place ON outbox (tenant_id, position);
CREATE INDEX outbox_waiting ON outbox (tenant_id, position) WHERE published_at IS NULL;
CREATE INDEX outbox_published ON outbox (tenant_id, published_at) WHERE published_at IS NOT NULL;
DROP INDEX outbox_unpublished;
