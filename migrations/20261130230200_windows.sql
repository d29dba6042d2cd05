-- What is needed to read a part of a run without the rest.

-- The node that a block points at. It stands in `body` too, which the database cannot look into where it holds NUL.
alter table blocks add column ref_node_id text;

update blocks set ref_node_id = substring(body::text from '"ref_node_id":"([A-Za-z0-9_-]+)"');

create index blocks_by_reference on blocks (ref_node_id) where ref_node_id is not null;
create index blocks_open on blocks (run_id) where status = 'streaming';
create index nodes_of_parent on nodes (parent_id);
create index nodes_open on nodes (run_id) where finished_at is null;
