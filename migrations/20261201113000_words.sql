-- The words of what was said, for the search of the list: people's messages, and what models wrote. A long text is in
-- parts.
create table words (
    run_id text not null references runs on delete cascade,
    subject text not null,
    part integer not null,
    words tsvector not null,
    primary key (subject, part)
);

create index words_of_run on words (run_id);
create index words_found on words using gin (words);

insert into words (run_id, subject, part, words)
select run_id, subject, part, to_tsvector('simple', convert_from(bytes, 'UTF8'))
from content_parts
where channel = 'content' and octet_length(bytes) < 65536 and position('\x00'::bytea in bytes) = 0;

insert into words (run_id, subject, part, words)
select run_id, message_id, 0, to_tsvector('simple', convert_from(text, 'UTF8'))
from messages
where octet_length(text) < 65536 and position('\x00'::bytea in text) = 0;
