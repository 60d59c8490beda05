-- Access: who made and who revoked a token, and row-level security for roles that are clients of one tenant.
--
-- Which tenant a session belongs to is decided by its session_user, through the table client_role: neither a setting
-- nor SET ROLE changes it. The tables' owner is not held back, nor is whoever may insert into holdfast.run, as an
-- engine under another role does. Everybody else sees the tenant that client_role names, or nothing. Statements can be
-- repeated: a try may break off between them.
-- holdfast: no transaction
ALTER TABLE holdfast.api_token
    ADD COLUMN IF NOT EXISTS created_by text,
    ADD COLUMN IF NOT EXISTS revoked_by text;
;;
CREATE INDEX IF NOT EXISTS api_token_tenant ON holdfast.api_token (tenant_id, id);
;;
-- By the role's number, so that it can be renamed; a dump has its name.
CREATE TABLE IF NOT EXISTS holdfast.client_role (
    role       regrole NOT NULL PRIMARY KEY,
    tenant_id  int,                            -- null: all tenants
    read_only  boolean NOT NULL DEFAULT false, -- may not trigger, signal and cancel
    granted_at bigint  NOT NULL DEFAULT holdfast.now(),
    granted_by text    NOT NULL DEFAULT session_user
);
;;
-- The tenant of this session: 0 for all of them, -1 for none.
CREATE OR REPLACE FUNCTION holdfast.caller_tenant() RETURNS int LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT coalesce(c.tenant_id, 0) FROM holdfast.client_role c
                      WHERE c.role = to_regrole(quote_ident(session_user))),
                    CASE WHEN has_table_privilege(session_user, 'holdfast.run', 'INSERT') THEN 0 ELSE -1 END)
$$;
;;
-- The same as a list, which an index can be searched for.
CREATE OR REPLACE FUNCTION holdfast.visible_tenants() RETURNS int[] LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY(SELECT t.id FROM holdfast.tenant t, holdfast.caller_tenant() c WHERE c = 0 OR t.id = c)
$$;
;;
-- The tenant that a call of trigger, signal or cancel is for, when the caller named this one. A client's is always its
-- own, so that it need not be named: "default", the arguments' default, stands for it.
CREATE OR REPLACE FUNCTION holdfast.tenant_for_caller(name text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    client record;
BEGIN
    SELECT c.role, c.tenant_id, c.read_only, t.name AS tenant INTO client
      FROM holdfast.client_role c LEFT JOIN holdfast.tenant t ON t.id = c.tenant_id
     WHERE c.role = to_regrole(quote_ident(session_user));
    IF client.read_only THEN
        PERFORM holdfast.refuse('42501', format('the role %s may only read', quote_ident(session_user)),
                                'Grant it more with: holdfast tenant grant');
    ELSIF client.tenant_id IS NOT NULL THEN
        IF name IN ('default', client.tenant) THEN
            RETURN client.tenant;
        END IF;
        PERFORM holdfast.refuse('HF003', format('there is no tenant %s', coalesce(quote_ident(name), 'null')),
                                'A client role acts in its own tenant only; leave the tenant out.');
    ELSIF client.role IS NULL AND NOT has_table_privilege(session_user, 'holdfast.run', 'INSERT')
          AND EXISTS (SELECT 1 FROM holdfast.client_role c JOIN pg_roles r ON r.oid = c.role
                       WHERE pg_has_role(session_user, r.oid, 'MEMBER')) THEN
        -- it has the right through that membership, and the tenant belongs to the other role
        PERFORM holdfast.refuse('42501', format('the role %s is no client of any tenant', quote_ident(session_user)),
                                'Membership in a client role is not enough. Grant it a tenant with: holdfast tenant grant');
    END IF;
    RETURN name;
END $$;
;;
-- The tenant's id.
CREATE OR REPLACE FUNCTION holdfast.find_tenant(name text, allow_disabled boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    wanted text := holdfast.tenant_for_caller(name);
    found  record;
BEGIN
    SELECT t.id, t.disabled INTO found FROM holdfast.tenant t WHERE t.name = wanted;
    IF found.id IS NULL THEN
        PERFORM holdfast.refuse('HF003', format('there is no tenant %s', coalesce(quote_ident(wanted), 'null')),
                                'Create it with: holdfast tenant create');
    ELSIF found.disabled AND NOT allow_disabled THEN
        PERFORM holdfast.refuse('HF012', format('the tenant %s is disabled', quote_ident(wanted)),
                                'Enable it with: holdfast tenant enable');
    END IF;
    RETURN found.id;
END $$;
;;
-- The lanes of a workflow, for the view of workflows: whoever reads it needs no right on the table.
CREATE OR REPLACE FUNCTION holdfast.lanes_of(workflow int) RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS
$$ SELECT l.id FROM holdfast.lane l
    WHERE l.workflow_id = lanes_of.workflow AND l.tenant_id = ANY (holdfast.visible_tenants()) $$;
;;
-- Lets a client role call the functions, or not. A migration that makes trigger, signal or cancel anew calls it for every
-- row of client_role.
CREATE OR REPLACE FUNCTION holdfast.give_client_functions(who regrole, read_only boolean) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT p.oid FROM pg_proc p
                     WHERE p.pronamespace = 'holdfast'::regnamespace AND p.proname IN ('trigger', 'signal', 'cancel') LOOP
        EXECUTE format(CASE WHEN read_only THEN 'REVOKE EXECUTE ON FUNCTION %s FROM %s'
                            ELSE 'GRANT EXECUTE ON FUNCTION %s TO %s' END, function, who);
    END LOOP;
END $$;
;;
-- Gives a client role what it needs and no more.
CREATE OR REPLACE FUNCTION holdfast.give_client_rights(who regrole) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    client record;
BEGIN
    SELECT c.tenant_id, c.read_only INTO STRICT client FROM holdfast.client_role c WHERE c.role = who;
    EXECUTE format('GRANT USAGE ON SCHEMA holdfast TO %s', who);
    EXECUTE format('GRANT SELECT ON holdfast.runs, holdfast.events, holdfast.steps, holdfast.signals, '
                   'holdfast.workflows, holdfast.tenant, holdfast.workflow, holdfast.run, holdfast.run_tag, '
                   'holdfast.event, holdfast.signal, holdfast.task, holdfast.outbox, holdfast.dead_letter TO %s', who);
    IF client.tenant_id IS NULL THEN -- workers name the tenants they serve
        EXECUTE format('GRANT SELECT ON holdfast.workers, holdfast.worker TO %s', who);
    END IF;
    PERFORM holdfast.give_client_functions(who, client.read_only);
END $$;
;;
-- Makes a role a client of a tenant, '*' for all of them. Gives "granted", or why not: "not_owner", "no_role",
-- "no_tenant", "not_held_back" (row-level security does not hold for that role) or "taken" (it is another tenant's).
CREATE OR REPLACE FUNCTION holdfast.tenant_grant(tenant text, role text, read_only boolean DEFAULT false,
                                                 granted_by text DEFAULT session_user)
    RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    who       regrole := to_regrole(quote_ident(role));
    owner     oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = 'holdfast.run'::regclass);
    tenant_no int := (SELECT t.id FROM holdfast.tenant t WHERE t.name = tenant_grant.tenant);
BEGIN
    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
        RETURN 'not_owner';
    ELSIF who IS NULL THEN
        RETURN 'no_role';
    ELSIF tenant_no IS NULL AND tenant <> '*' THEN
        RETURN 'no_tenant';
    ELSIF EXISTS (SELECT 1 FROM pg_roles r
                   WHERE pg_has_role(who, r.oid, 'MEMBER')
                     AND (r.rolsuper OR r.rolbypassrls OR r.oid = owner
                          OR has_table_privilege(r.oid, 'holdfast.run', 'INSERT'))) THEN
        RETURN 'not_held_back';
    END IF;
    DELETE FROM holdfast.client_role c WHERE NOT EXISTS (SELECT 1 FROM pg_roles r WHERE r.oid = c.role);
    INSERT INTO holdfast.client_role AS c (role, tenant_id, read_only, granted_by)
    VALUES (who, tenant_no, tenant_grant.read_only, tenant_grant.granted_by)
    ON CONFLICT ON CONSTRAINT client_role_pkey DO UPDATE
       SET read_only = EXCLUDED.read_only, granted_at = EXCLUDED.granted_at, granted_by = EXCLUDED.granted_by
     WHERE c.tenant_id IS NOT DISTINCT FROM EXCLUDED.tenant_id;
    IF NOT FOUND THEN
        RETURN 'taken';
    END IF;
    PERFORM holdfast.give_client_rights(who);
    RETURN 'granted';
END $$;
;;
-- Takes everything in the schema away from a client role. Gives "revoked", or why not: "not_owner", "no_role",
-- "not_granted" (it is no client of this tenant).
CREATE OR REPLACE FUNCTION holdfast.tenant_revoke(tenant text, role text)
    RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    who       regrole := to_regrole(quote_ident(role));
    owner     oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = 'holdfast.run'::regclass);
    tenant_no int := (SELECT t.id FROM holdfast.tenant t WHERE t.name = tenant_revoke.tenant);
BEGIN
    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
        RETURN 'not_owner';
    ELSIF who IS NULL THEN
        RETURN 'no_role';
    END IF;
    DELETE FROM holdfast.client_role c
     WHERE c.role = who AND (c.tenant_id = tenant_no OR (c.tenant_id IS NULL AND tenant = '*'));
    IF NOT FOUND THEN
        RETURN 'not_granted';
    END IF;
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA holdfast FROM %s', who);
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM %s', who);
    EXECUTE format('REVOKE ALL ON SCHEMA holdfast FROM %s', who);
    RETURN 'revoked';
END $$;
;;
REVOKE ALL ON FUNCTION holdfast.tenant_grant, holdfast.tenant_revoke, holdfast.give_client_rights,
    holdfast.give_client_functions FROM PUBLIC;
;;
-- Whoever could read all tenants before this migration, and only read, still can.
INSERT INTO holdfast.client_role (role, tenant_id, read_only, granted_by)
SELECT r.oid, NULL,
       NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p
                    WHERE p.pronamespace = 'holdfast'::pg_catalog.regnamespace AND p.proname = 'trigger'
                      AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE')), 'migration'
  FROM pg_catalog.pg_roles r
 WHERE r.oid >= 16384 AND pg_catalog.has_table_privilege(r.oid, 'holdfast.run', 'SELECT')
   AND NOT pg_catalog.has_table_privilege(r.oid, 'holdfast.run', 'INSERT')
   AND NOT (SELECT c.relrowsecurity FROM pg_catalog.pg_class c WHERE c.oid = 'holdfast.run'::pg_catalog.regclass)
ON CONFLICT DO NOTHING;
;;
-- One table at a time: each needs a lock for a moment, and two at once could meet a transaction that has them in
-- another order.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['workflow', 'lane', 'run_tag', 'event', 'signal', 'task', 'outbox', 'subscription',
                                'dead_letter', 'schedule', 'projection', 'host_lock', 'api_token', 'tenant', 'run'] LOOP
        EXECUTE format('DROP POLICY IF EXISTS own_tenant ON holdfast.%I', name);
        EXECUTE format('CREATE POLICY own_tenant ON holdfast.%I USING (%s)', name,
                       CASE name WHEN 'tenant' -- a new one is in no list yet
                           THEN '(SELECT holdfast.caller_tenant()) IN (0, id)'
                           ELSE 'tenant_id = ANY ((SELECT holdfast.visible_tenants())::int[])' END);
        EXECUTE format('ALTER TABLE holdfast.%I ENABLE ROW LEVEL SECURITY', name);
        COMMIT;
    END LOOP;
END $$;
