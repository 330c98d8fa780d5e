-- Copies of journals. Nothing here is trusted: lines count as far as a signed head goes, blobs by their hash.
CREATE TABLE agent_leases (
    repository text NOT NULL,
    session text NOT NULL,
    fence bigint NOT NULL,
    machine text NOT NULL,
    holder text NOT NULL,
    until double precision NOT NULL,
    PRIMARY KEY (repository, session)
);
COMMENT ON TABLE agent_leases IS 'Who writes a session: until is in seconds since 1970, fence grows with each writer';

CREATE TABLE agent_lines (
    repository text NOT NULL,
    session text NOT NULL,
    seq integer NOT NULL,
    hash text NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (repository, session, seq)
);

CREATE TABLE agent_heads (
    repository text NOT NULL,
    session text NOT NULL,
    fence bigint NOT NULL,
    seq integer NOT NULL,
    hash text NOT NULL,
    worker text NOT NULL,
    signature text NOT NULL,
    copied timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository, session, fence)
);
COMMENT ON TABLE agent_heads IS 'The newest event of each writer, signed';

CREATE TABLE agent_blobs (
    sha text PRIMARY KEY,
    data bytea NOT NULL
);

CREATE FUNCTION agent_seconds(given double precision) RETURNS double precision
LANGUAGE sql VOLATILE AS 'SELECT coalesce(given, extract(epoch FROM clock_timestamp()))';
COMMENT ON FUNCTION agent_seconds IS 'The time by this clock in seconds since 1970; a test gives another one';
