-- Records of the audit, copied from journals. Nothing here is trusted: a row counts as far as a signed journal has it.
CREATE TABLE agent_audit_sessions (
    repository text NOT NULL,
    session text NOT NULL,
    seq integer NOT NULL,
    parent text NOT NULL,
    parent_seq integer NOT NULL,
    PRIMARY KEY (repository, session)
);
COMMENT ON TABLE agent_audit_sessions IS 'Up to which event the records of a session are here';

CREATE TABLE agent_audit_records (
    repository text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('entry', 'decision', 'cost')),
    session text NOT NULL,
    seq integer NOT NULL,
    endpoint text NOT NULL,
    model text NOT NULL,
    time text COLLATE "C" NOT NULL,
    service text NOT NULL,
    intent text NOT NULL,
    task text NOT NULL,
    status text NOT NULL,
    decider text NOT NULL,
    record text NOT NULL CHECK (length(record) <= 8000),
    PRIMARY KEY (repository, kind, session, seq, endpoint, model)
);
CREATE INDEX agent_audit_records_by_time ON agent_audit_records (repository, kind, time DESC);
