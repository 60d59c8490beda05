-- Ends of children that come together may share a row of mail, where programs that know nothing of it are kept out.
ALTER TABLE signal ADD COLUMN ends INTEGER; -- so many, in payload as an array; null: one, or other mail

-- Rows that are shared: a dozen for ten thousand ends.
CREATE INDEX signal_shared ON signal (run_id) WHERE ends IS NOT NULL;

-- id and sender of a row that is shared are those of the first end.
DROP VIEW signals;
CREATE VIEW signals AS
SELECT lower(substr(hex(s.run_id), 1, 8) || '-' || substr(hex(s.run_id), 9, 4) || '-' || substr(hex(s.run_id), 13, 4) || '-'
             || substr(hex(s.run_id), 17, 4) || '-' || substr(hex(s.run_id), 21)) AS run,
       s.id, s.position, s.type, s.name, s.payload, s.token, s.timer_key, s.sender, s.attempts,
       strftime('%Y-%m-%dT%H:%M:%S', s.occurred_at / 1000000, 'unixepoch')
           || printf('.%06dZ', s.occurred_at % 1000000) AS occurred_at,
       strftime('%Y-%m-%dT%H:%M:%S', s.visible_at / 1000000, 'unixepoch')
           || printf('.%06dZ', s.visible_at % 1000000) AS visible_at,
       strftime('%Y-%m-%dT%H:%M:%S', s.consumed_at / 1000000, 'unixepoch')
           || printf('.%06dZ', s.consumed_at % 1000000) AS consumed_at,
       t.name AS tenant, s.ends
  FROM signal s
  JOIN tenant t ON t.id = s.tenant_id;
