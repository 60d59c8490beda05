-- Access: who made and who revoked a token.

ALTER TABLE api_token ADD COLUMN created_by TEXT;
ALTER TABLE api_token ADD COLUMN revoked_by TEXT;
CREATE INDEX api_token_tenant ON api_token (tenant_id, id);
