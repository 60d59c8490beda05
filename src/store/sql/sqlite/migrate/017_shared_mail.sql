-- Ends of children that come together may share a row of mail, where programs that know nothing of it are refused.
ALTER TABLE signal ADD COLUMN ends INTEGER; -- so many, in payload as an array; null: one, or other mail
