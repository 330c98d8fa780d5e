-- Decisions about proposals, each as the signed text of the person who made it. A row counts only by its signature, so
-- several rows may be about one proposal: one that was forged takes nobody's place.
CREATE TABLE agent_decisions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text NOT NULL CHECK (length(session) <= 100),
    proposal text NOT NULL CHECK (length(proposal) <= 100),
    digest text NOT NULL CHECK (length(digest) <= 100),
    text text NOT NULL CHECK (octet_length(text) <= 2000000),
    signature text NOT NULL CHECK (octet_length(signature) <= 20000),
    made timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX agent_decisions_session ON agent_decisions (session, id);
CREATE INDEX agent_decisions_made ON agent_decisions (made);
