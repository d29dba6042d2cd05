-- Runs that another server executed, or another program: `{"state": "writing" | "cut" | "whole", "format"}`. No server
-- ever claims or reopens one.
alter table runs add column imported json;
