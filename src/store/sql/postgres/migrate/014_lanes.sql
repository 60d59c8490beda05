-- Lanes of flow keys go when no run is left in them. To see that costs nothing where there are no flow keys: from here on
-- the lanes of flow keys have odd numbers and all others even ones, and the index below has runs with odd ones only. Lanes
-- of flow keys that were made before, with an even number, stay. Statements can be repeated: a try may break off between
-- them.
-- holdfast: no transaction
-- Programs of the version before take numbers as they come: the two must not meet.
SELECT setval('holdfast.lane_id', greatest(s.last_value, 1048576)) FROM holdfast.lane_id s;
;;
ALTER TABLE holdfast.workflow ALTER COLUMN lane SET DEFAULT nextval('holdfast.lane_id') * 2;
;;
-- What run_claim does not have. Of no use to anything but retention: nothing else asks for odd lanes.
DROP INDEX CONCURRENTLY IF EXISTS holdfast.run_lane;
;;
CREATE INDEX CONCURRENTLY run_lane ON holdfast.run (lane)
    WHERE lane & 1 = 1 AND (status >= 4 OR deleted_at IS NOT NULL OR run_at IS NULL);
;;
-- The lane of a flow key, which its first run makes. It is locked, so that retention leaves it.
CREATE OR REPLACE FUNCTION holdfast.ensure_lane(tenant_id int, workflow_id int, flow_key text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    found int;
BEGIN
    LOOP
        SELECT l.id INTO found FROM holdfast.lane l
         WHERE l.workflow_id = ensure_lane.workflow_id AND coalesce(l.flow_key, '') = ensure_lane.flow_key
           FOR KEY SHARE;
        EXIT WHEN found IS NOT NULL;
        INSERT INTO holdfast.lane (id, tenant_id, workflow_id, flow_key)
        VALUES (nextval('holdfast.lane_id') * 2 + 1, ensure_lane.tenant_id, ensure_lane.workflow_id, ensure_lane.flow_key)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found;
END $$;
