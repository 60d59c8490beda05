-- Tokens that may answer only tasks of certain roles.
ALTER TABLE holdfast.api_token ADD COLUMN task_roles text; -- JSON array of names; null: all tasks
