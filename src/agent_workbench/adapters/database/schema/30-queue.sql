-- Tasks of all queues. `queue` names a repository and a project. `body` is what was signed: priority, needs and
-- depends_on are copies of what it says, for the indexes, and count only if they are equal to it.
CREATE TABLE agent_tasks (
    queue text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL CHECK (length(id) <= 64),
    body bytea NOT NULL,
    signature text NOT NULL,
    priority integer NOT NULL,
    needs text COLLATE "C" NOT NULL,
    depends_on text[] NOT NULL DEFAULT '{}',
    ready boolean NOT NULL DEFAULT true,
    state text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'claimed', 'parked', 'done', 'failed', 'withdrawn')),
    -- The worker that has it or, while it is queued, the one that was chosen for it until `lease_until`.
    worker text NOT NULL DEFAULT '',
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    session text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    -- Workers that had it when their lease ran out, in order.
    lost text[] NOT NULL DEFAULT '{}',
    routing text NOT NULL DEFAULT '',
    job bigint,
    result text NOT NULL DEFAULT '',
    result_signature text NOT NULL DEFAULT '',
    put_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    -- Nobody worked on it: all such tasks with the same needs are alike for the routing.
    fresh boolean GENERATED ALWAYS AS (session = '' AND lost = '{}') STORED,
    PRIMARY KEY (queue, id)
);

-- Branches of tasks whose ids differ in case only are one file on some systems.
CREATE UNIQUE INDEX agent_tasks_id ON agent_tasks (queue, lower(id));
CREATE INDEX agent_tasks_fresh ON agent_tasks (queue, needs, priority DESC, id)
    WHERE state = 'queued' AND worker = '' AND ready AND fresh;
CREATE INDEX agent_tasks_begun ON agent_tasks (queue, priority DESC, id)
    WHERE state = 'queued' AND worker = '' AND ready AND NOT fresh;
CREATE INDEX agent_tasks_leases ON agent_tasks (queue, lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX agent_tasks_state ON agent_tasks (queue, state);
CREATE INDEX agent_tasks_waiting ON agent_tasks USING gin (depends_on) WHERE NOT ready;

-- Workers that found nothing to do and wait to be woken; `fresh` if they would begin a new task.
CREATE TABLE agent_waiting_workers (
    queue text COLLATE "C" NOT NULL,
    worker text NOT NULL,
    fresh boolean NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (queue, worker)
);
