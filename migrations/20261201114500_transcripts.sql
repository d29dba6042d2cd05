-- Transcripts of runs that are over: each a sequence of compressed pieces (raw DEFLATE) of its NDJSON.
create table transcript_parts (
    run_id text not null references runs (run_id) on delete cascade,
    stream text not null,
    part integer not null,
    -- What the piece holds uncompressed.
    bytes integer not null,
    data bytea not null,
    primary key (run_id, stream, part)
);
