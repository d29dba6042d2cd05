-- What holds for all runs of a session, such as whether reasoning is kept.
alter table sessions add column settings json not null default '{}';
