-- Runs that could be seen before they were on disk.
ALTER TABLE holdfast.run ADD COLUMN IF NOT EXISTS deferred bool; -- so this one; null: it was on disk before. Never changed
