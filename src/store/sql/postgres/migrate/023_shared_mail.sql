-- Ends of children that come together may share a row of mail, where programs that know nothing of it are refused.
ALTER TABLE holdfast.signal ADD COLUMN IF NOT EXISTS ends int; -- so many, in payload as an array; null: one, or other mail
