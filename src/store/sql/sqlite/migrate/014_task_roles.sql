-- Tokens that may answer only tasks of certain roles.
ALTER TABLE api_token ADD COLUMN task_roles TEXT; -- JSON array of names; null: all tasks
