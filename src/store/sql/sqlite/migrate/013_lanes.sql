-- Lanes of flow keys go when no run is left in them. To see that costs nothing where there are no flow keys: from here on
-- the lanes of flow keys have odd numbers and all others even ones, and the index below has runs with odd ones only. Lanes
-- of flow keys that were made before, with an even number, stay.

-- What run_claim does not have. Of no use to anything but retention: nothing else asks for odd lanes.
CREATE INDEX run_lane ON run (lane) WHERE lane & 1 = 1 AND (status >= 4 OR deleted_at IS NOT NULL OR run_at IS NULL);
