-- needs: 1
-- What a board holds. A task is kept as the text of a task file of ours (`body`); the other columns are derived from it
-- and tell where to look first. Text is compared by code points, as everywhere in taskwall.

CREATE TABLE taskwall.boards (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  settings text NOT NULL DEFAULT '',             -- what board.toml says of a board of files
  moved text NOT NULL DEFAULT '',                -- where the board lies now; then nothing is written here any more
  tasks bigint NOT NULL DEFAULT 0,               -- those that are not archived
  unfinished bigint NOT NULL DEFAULT 0,
  ringed boolean NOT NULL DEFAULT false,         -- open tasks wait for each other: ranks are not mended one by one
  tidied timestamptz                             -- when tasks were archived
);

CREATE TABLE taskwall.tasks (
  board integer NOT NULL REFERENCES taskwall.boards ON DELETE CASCADE,
  id text COLLATE "C" NOT NULL,
  body text NOT NULL,
  origin text,                                   -- [name, text] of the file that it came from, where that says more
  open boolean NOT NULL,
  done boolean NOT NULL,                         -- completed: what waits for it may start
  held boolean NOT NULL,                         -- in progress
  waits boolean NOT NULL,                        -- a blocker or child keeps it from being started
  archived boolean NOT NULL DEFAULT false,
  priority integer NOT NULL,
  behind integer NOT NULL,                       -- minus its rank, so that all keys of the order ascend
  created text COLLATE "C" NOT NULL,
  sort text COLLATE "C" NOT NULL,                -- its id, in natural order
  subject text NOT NULL,
  key text COLLATE "C",
  parent text COLLATE "C",
  claim text,                                    -- the latest claim, also when that has ended
  session text COLLATE "C",                      -- of that claim
  taken double precision,                        -- when it was granted, in seconds of this server's clock
  lapses double precision,                       -- when its lease runs out; NULL for one made by hand
  PRIMARY KEY (board, id)
);

-- What may be claimed, best first: finished and waiting work is not even looked at.
CREATE INDEX offered ON taskwall.tasks (board, held, priority, behind, created, sort, id) WHERE open AND NOT waits;
CREATE INDEX open_by_age ON taskwall.tasks (board, created, sort, id) WHERE open;
CREATE INDEX by_age ON taskwall.tasks (board, created, sort, id) WHERE NOT archived;
CREATE INDEX in_progress ON taskwall.tasks (board, session) WHERE held;
CREATE INDEX by_parent ON taskwall.tasks (board, parent) WHERE parent IS NOT NULL;
CREATE INDEX by_subject ON taskwall.tasks (board, "left"(subject, 64));
CREATE INDEX by_key ON taskwall.tasks (board, key) WHERE key IS NOT NULL AND NOT archived;

CREATE TABLE taskwall.edges (
  board integer NOT NULL REFERENCES taskwall.boards ON DELETE CASCADE,
  blocker text COLLATE "C" NOT NULL,
  task text COLLATE "C" NOT NULL,
  wild boolean NOT NULL,                         -- only the blocker's own text names it
  PRIMARY KEY (board, blocker, task, wild)
);
CREATE INDEX wild_edges ON taskwall.edges (board, task) WHERE wild;

CREATE TABLE taskwall.events (
  board integer NOT NULL REFERENCES taskwall.boards ON DELETE CASCADE,
  n bigint GENERATED ALWAYS AS IDENTITY,
  at text COLLATE "C" NOT NULL,
  task text COLLATE "C",
  event text NOT NULL,
  PRIMARY KEY (board, n)
);
CREATE INDEX events_of_task ON taskwall.events (board, task, n);
CREATE INDEX events_by_time ON taskwall.events (board, at);
