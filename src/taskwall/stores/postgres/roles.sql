-- For psql, by a superuser or a role with CREATEROLE that owns the tables. A role that works on the boards of this
-- database may read and change tasks and make boards; it cannot change settings, move a board, migrate, make or drop
-- tables, or see other schemas. A role that only looks is granted no more than SELECT.
-- {role} and {looker} are names, already quoted; give each a way to log in of your own (LOGIN, a password, a certificate).

\set ON_ERROR_STOP on
BEGIN;

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {role_text}) THEN CREATE ROLE {role} LOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {looker_text}) THEN CREATE ROLE {looker} LOGIN; END IF;
END $$;

REVOKE ALL ON SCHEMA taskwall FROM PUBLIC;
GRANT USAGE ON SCHEMA taskwall TO {role}, {looker};
GRANT SELECT ON ALL TABLES IN SCHEMA taskwall TO {role}, {looker};
-- Not the settings, which say who is a person, nor where the board lies: those are for who keeps the database.
GRANT INSERT (name), UPDATE (tasks, unfinished, tidied, ringed) ON taskwall.boards TO {role};
GRANT INSERT, UPDATE ON taskwall.tasks TO {role};
GRANT INSERT, DELETE ON taskwall.edges TO {role};
GRANT INSERT ON taskwall.events TO {role};

COMMIT;
