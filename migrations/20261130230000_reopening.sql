-- Runs that go on after they were over.

-- A wish to go on, `{"kind", "by"}`: from when it is made until the run executes again.
alter table runs add column reopen json;

-- What becomes of the run when its owner goes away: `leave` or `resume`.
alter table runs add column on_interruption text not null default 'leave';

-- How often it was resumed without a person.
alter table runs add column automatic_resumes integer not null default 0;

create index runs_reopened on runs (created_at) where reopen is not null;
