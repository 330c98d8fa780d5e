-- Money of one day (UTC) for all machines that share this database. A row is a reservation until it is settled.
CREATE TABLE agent_spending (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    day date NOT NULL,
    worker text NOT NULL,
    endpoint text NOT NULL,
    billionths bigint NOT NULL CHECK (billionths >= 0),
    settled boolean NOT NULL DEFAULT false,
    made timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX agent_spending_by_day ON agent_spending (day);
COMMENT ON COLUMN agent_spending.billionths IS 'Dollars in whole billionths: the worst case, or what it cost';
