-- How models call the tools of a run: `native`, `code` or `both`.
alter table runs add column tool_mode text not null default 'native';
