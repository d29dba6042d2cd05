-- The record of sessions and runs.
--
-- Times are milliseconds since the Unix epoch, UTC, by the clock of the server that wrote them; only leases, which
-- several servers compare, are by the database's clock. Text that people or models wrote is UTF-8 bytes, because it
-- may hold NUL.

create table sessions (
    session_id text primary key,
    title text not null,
    kind text not null,
    created_at bigint not null,
    updated_at bigint not null
);

create index sessions_by_update on sessions (updated_at desc, session_id desc);

-- A run is a row in a queue until a server claims it; `generation` counts its owners.
create table runs (
    run_id text primary key,
    session_id text not null references sessions on delete cascade,
    ordinal integer not null,
    status text not null,
    prompt_start text not null,
    provider text not null,
    model text not null,
    owner text,
    lease_expires_at timestamptz,
    generation bigint not null default 0,
    last_seq bigint not null default 0,
    idempotency_key text,
    created_at bigint not null,
    started_at bigint,
    finished_at bigint,
    error json,
    usage json,
    extra json not null default '{}',
    unique (session_id, ordinal),
    unique (session_id, idempotency_key)
);

create index runs_open on runs (created_at) where status in ('queued', 'running', 'waiting');

-- What a person asks of a run that another task or server owns.
create table commands (
    command_id bigint generated always as identity primary key,
    run_id text not null references runs on delete cascade,
    kind text not null,
    payload json not null default '{}',
    created_at bigint not null,
    consumed_at bigint
);

create index commands_waiting on commands (run_id) where consumed_at is null;

create table messages (
    message_id text primary key,
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    role text not null,
    state text not null,
    text bytea not null,
    at bigint not null,
    extra json not null default '{}'
);

create index messages_of_run on messages (run_id, seq);

create table nodes (
    node_id text primary key,
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    parent_id text,
    kind text not null,
    name text not null,
    title text not null,
    ordinal integer not null,
    executor text not null,
    occurrence_id text,
    status text not null,
    announced_at bigint not null,
    started_at bigint,
    finished_at bigint,
    progress json,
    error json,
    exit_code integer,
    -- channel → {bytes, sha256, media_type} of closed channels
    outputs json not null default '{}',
    extra json not null default '{}',
    -- beside the protocol: `stream.snapshot` of a model node
    metadata json not null default '{}'
);

create index nodes_of_run on nodes (run_id, seq);

create table node_edges (
    node_id text not null references nodes on delete cascade,
    after_node_id text not null,
    ordinal integer not null,
    primary key (node_id, ordinal)
);

create table attempts (
    attempt_id text primary key,
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    node_id text not null,
    attempt_index integer not null,
    reason text not null,
    status text not null,
    provider text not null,
    model text not null,
    continues_attempt_id text,
    kept json,
    stop_reason text,
    usage json,
    error json,
    started_at bigint not null,
    finished_at bigint,
    extra json not null default '{}'
);

create index attempts_of_run on attempts (run_id, seq);

create table blocks (
    block_id text primary key,
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    attempt_id text not null,
    node_id text not null,
    block_index integer not null,
    round integer not null,
    status text not null,
    started_at bigint not null,
    finished_at bigint,
    bytes bigint,
    sha256 text,
    -- kind and the kind's own fields, without text
    body json not null,
    extra json not null default '{}',
    unique (attempt_id, block_index)
);

create index blocks_of_run on blocks (run_id, seq);

-- Closed texts in pieces of at most 64 KiB, so that any range of a long one can be read.
-- `subject` is a block (channel `content`) or a node (channel `arguments`, `log`, `result`).
create table content_parts (
    subject text not null,
    channel text not null,
    part integer not null,
    run_id text not null references runs on delete cascade,
    bytes bytea not null,
    primary key (subject, channel, part)
);

create index content_parts_of_run on content_parts (run_id);

-- The journal. Text of what is still open is only here.
create table ops (
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    generation bigint not null,
    at bigint not null,
    op json not null,
    primary key (run_id, seq)
);

create table approvals (
    approval_id text primary key,
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    body json not null
);

create index approvals_of_run on approvals (run_id, seq);

-- Notices, and ops that this version did not know.
create table notices (
    run_id text not null references runs on delete cascade,
    seq bigint not null,
    kind text not null,
    body json not null,
    primary key (run_id, seq)
);

-- What a provider wants back with the next request; read by the owner of the run only.
create table provider_state (
    attempt_id text not null,
    round integer not null,
    run_id text not null references runs on delete cascade,
    node_id text not null,
    state json not null,
    primary key (attempt_id, round)
);

create index provider_state_of_run on provider_state (run_id);
