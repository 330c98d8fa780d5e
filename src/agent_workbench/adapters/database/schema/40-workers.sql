-- Registered workers: `about` is the JSON of what a heartbeat said. None of it is trusted: it only says where tasks may go.
CREATE FUNCTION agent_time_text(moment timestamptz) RETURNS text STABLE LANGUAGE sql
AS $$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

CREATE TABLE agent_workers (
    repository text NOT NULL,
    project text NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    instance text NOT NULL CHECK (length(instance) <= 100),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_beat timestamptz NOT NULL DEFAULT clock_timestamp(),
    draining boolean NOT NULL DEFAULT false,
    ended boolean NOT NULL DEFAULT false,
    about text NOT NULL CHECK (octet_length(about) <= 65536),
    PRIMARY KEY (repository, project, name)
);

CREATE TABLE agent_dispatch_pauses (
    repository text NOT NULL,
    project text NOT NULL,
    since timestamptz NOT NULL,
    percent double precision NOT NULL,
    least double precision NOT NULL,
    PRIMARY KEY (repository, project)
);
