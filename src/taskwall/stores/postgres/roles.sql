-- What a role may do that works on boards: read and change tasks, and nothing else. It cannot migrate, make or drop
-- tables, or see other schemas. A role that only looks is granted no more than SELECT.
-- {role} and {looker} are names, already quoted; give each a way to log in of your own (LOGIN, a password, a certificate).

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {role_text}) THEN CREATE ROLE {role} LOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {looker_text}) THEN CREATE ROLE {looker} LOGIN; END IF;
END $$;

REVOKE ALL ON SCHEMA taskwall FROM PUBLIC;
GRANT USAGE ON SCHEMA taskwall TO {role}, {looker};
GRANT SELECT ON ALL TABLES IN SCHEMA taskwall TO {role}, {looker};
GRANT INSERT, UPDATE ON taskwall.boards, taskwall.tasks TO {role};
GRANT INSERT, DELETE ON taskwall.edges TO {role};
GRANT INSERT ON taskwall.events TO {role};
