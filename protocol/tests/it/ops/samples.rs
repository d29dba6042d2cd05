//! One op of each kind with all its fields, and one with the least.

use protocol::model::StreamState;
use protocol::op::Op;
use serde_json::json;

/// Samples by name: the op's wire name, its form, and what tells several of one form apart.
pub(super) fn all() -> Vec<(&'static str, Op)> {
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let usage = json!({ "input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 60, "cache_write_tokens": 5,
                        "reasoning_tokens": 7, "cost": 0.25 });
    let error = json!({ "code": "provider_error", "message": "overloaded" });
    let started = |block: &str, index: u32, kind: &str| {
        json!({ "op": "block_started", "node_id": "call_1", "attempt_id": "att_1", "block_id": block,
                "block_index": index, "round": 1, "kind": kind })
    };
    let mut tool_ref = started("blk_tool", 4, "tool_ref");
    tool_ref["tool_call_id"] = json!("toolu_1");
    tool_ref["occurrence_id"] = json!("occ_1");
    let mut whole_tool_ref = started("blk_tool_7", 3, "tool_ref");
    for (field, value) in [
        ("tool_call_id", "call_abc"),
        ("occurrence_id", "occ_7e4c"),
        ("ref_node_id", "exec_1"),
        ("tool_name", "read_file"),
        ("group_id", "par_1"),
    ] {
        whole_tool_ref[field] = json!(value);
    }
    let mut reasoning = started("blk_reasoning", 1, "reasoning");
    reasoning["retention"] = json!("not_saved");
    let mut group = started("blk_group", 5, "parallel_group");
    group["group_id"] = json!("par_1");
    group["members"] = json!(["blk_tool_7", "blk_tool"]);
    let mut unsupported = started("blk_image", 6, "unsupported");
    unsupported["raw_kind"] = json!("image");
    unsupported["bytes"] = json!(2048);
    let values = vec![
        (
            "run_updated.full",
            json!({ "op": "run_updated", "status": "failed", "error": error, "usage": usage }),
        ),
        (
            "run_updated.least",
            json!({ "op": "run_updated", "status": "queued" }),
        ),
        (
            "message_added.full",
            json!({ "op": "message_added", "message_id": "msg_1", "role": "user",
            "text": "Read both files.\u{0}\n\u{1f980}" }),
        ),
        (
            "message_added.least",
            json!({ "op": "message_added", "message_id": "msg_2", "role": "system", "text": "" }),
        ),
        (
            "message_updated.full",
            json!({ "op": "message_updated", "message_id": "msg_1", "state": "delivered" }),
        ),
        (
            "message_updated.least",
            json!({ "op": "message_updated", "message_id": "msg_1", "state": "returned" }),
        ),
        (
            "node_started.full.root",
            json!({ "op": "node_started", "node_id": "root_1", "kind": "root", "name": "run",
            "ordinal": 0, "executor": "runloom" }),
        ),
        (
            "node_started.full.model",
            json!({ "op": "node_started", "node_id": "call_1", "parent_id": "root_1",
            "after": ["root_1"], "kind": "model", "name": "some-model", "title": "Answers", "ordinal": 0,
            "executor": "runloom", "occurrence_id": "occ_m1" }),
        ),
        (
            "node_started.full.function",
            json!({ "op": "node_started", "node_id": "exec_1", "parent_id": "call_1",
            "after": [], "kind": "function", "name": "read_file", "title": "Reads a file", "ordinal": 0,
            "executor": "provider", "occurrence_id": "occ_7e4c" }),
        ),
        (
            "node_started.least",
            json!({ "op": "node_started", "node_id": "phase_1", "kind": "phase", "name": "plan",
            "ordinal": 1, "executor": "runloom" }),
        ),
        (
            "node_updated.full",
            json!({ "op": "node_updated", "node_id": "exec_1", "status": "running",
            "title": "Reads a long file", "progress": { "done": 1, "total": 2, "note": "half" },
            "started_at": 1_790_000_000_001_i64 }),
        ),
        (
            "node_updated.least",
            json!({ "op": "node_updated", "node_id": "exec_1" }),
        ),
        (
            "node_output.full",
            json!({ "op": "node_output", "node_id": "exec_1", "channel": "result", "offset": 0,
            "text": "hello" }),
        ),
        (
            "node_output.least",
            json!({ "op": "node_output", "node_id": "exec_1", "channel": "log", "offset": 9,
            "text": "" }),
        ),
        (
            "approval_requested.full",
            json!({ "op": "approval_requested", "node_id": "exec_1", "approval_id": "apr_1",
            "what": "Run `ls`?" }),
        ),
        (
            "approval_requested.least",
            json!({ "op": "approval_requested", "node_id": "exec_1", "approval_id": "apr_1",
            "what": "" }),
        ),
        (
            "approval_resolved.full",
            json!({ "op": "approval_resolved", "node_id": "exec_1", "approval_id": "apr_1",
            "answer": "approve", "by": "ada", "words": "go on" }),
        ),
        (
            "approval_resolved.least",
            json!({ "op": "approval_resolved", "node_id": "exec_1", "approval_id": "apr_1",
            "answer": "deny", "by": "ada" }),
        ),
        (
            "node_finished.full",
            json!({ "op": "node_finished", "node_id": "exec_1", "status": "failed",
            "finished_at": 1_790_000_000_009_i64,
            "outputs": { "result": { "bytes": 5, "sha256": hash, "media_type": "text/plain" } },
            "error": { "code": "exit", "message": "it failed" }, "exit_code": 1 }),
        ),
        (
            "node_finished.least",
            json!({ "op": "node_finished", "node_id": "exec_1", "status": "not_run",
            "finished_at": 1_790_000_000_009_i64 }),
        ),
        (
            "attempt_started.full",
            json!({ "op": "attempt_started", "node_id": "call_1", "attempt_id": "att_1",
            "attempt_index": 0, "reason": "stall_retry", "provider": "main", "model": "some-model",
            "continues_attempt_id": "att_0", "kept": { "bytes": 1234, "tokens": 300 } }),
        ),
        (
            "attempt_started.least",
            json!({ "op": "attempt_started", "node_id": "call_1", "attempt_id": "att_2",
            "attempt_index": 1, "reason": "initial", "provider": "main", "model": "some-model" }),
        ),
        ("block_started.least.text", started("blk_text", 0, "text")),
        ("block_started.full.reasoning", reasoning),
        (
            "block_started.least.refusal",
            started("blk_refusal", 2, "refusal"),
        ),
        ("block_started.full.tool_ref", whole_tool_ref),
        ("block_started.least.tool_ref", tool_ref),
        ("block_started.full.parallel_group", group),
        ("block_started.full.unsupported", unsupported),
        (
            "block_delta.full",
            json!({ "op": "block_delta", "block_id": "blk_text", "offset": 0, "delta": "hello" }),
        ),
        (
            "block_delta.least",
            json!({ "op": "block_delta", "block_id": "blk_text", "offset": 5, "delta": "" }),
        ),
        (
            "block_updated.full",
            json!({ "op": "block_updated", "block_id": "blk_tool", "group_id": "par_1",
            "ref_node_id": "exec_2", "tool_name": "list_dir", "members": ["blk_tool"], "retention": "saved" }),
        ),
        (
            "block_updated.least",
            json!({ "op": "block_updated", "block_id": "blk_tool" }),
        ),
        (
            "block_finished.full",
            json!({ "op": "block_finished", "block_id": "blk_text", "status": "complete",
            "bytes": 5, "sha256": hash }),
        ),
        (
            "block_finished.least",
            json!({ "op": "block_finished", "block_id": "blk_text", "status": "cut",
            "bytes": 0, "sha256": hash }),
        ),
        (
            "attempt_finished.full",
            json!({ "op": "attempt_finished", "node_id": "call_1", "attempt_id": "att_1",
            "status": "failed", "stop_reason": "length", "usage": usage, "error": error }),
        ),
        (
            "attempt_finished.least",
            json!({ "op": "attempt_finished", "node_id": "call_1", "attempt_id": "att_1",
            "status": "completed" }),
        ),
        (
            "notice.full",
            json!({ "op": "notice", "node_id": "call_1", "code": "provider_rotation",
            "detail": { "from": "main", "to": "spare" } }),
        ),
        (
            "notice.least",
            json!({ "op": "notice", "code": "outage", "detail": "" }),
        ),
        ("withheld.full", json!({ "op": "withheld", "reason": "audience" })),
        ("withheld.least", json!({ "op": "withheld" })),
        (
            "unknown.full",
            json!({ "op": "hologram_projected", "node_id": "call_1", "volume": [1, 2] }),
        ),
        ("unknown.least", json!({ "op": "hologram_ended" })),
    ];
    values
        .into_iter()
        .map(|(name, value)| (name, crate::support::op(value)))
        .collect()
}

/// A live state with all its fields.
pub(super) fn stream_state() -> StreamState {
    serde_json::from_value(json!({ "run_id": "run_1", "node_id": "call_1", "attempt_id": "att_1",
        "state": "retrying", "n": 7, "last_byte_at": 1_790_000_000_005_i64, "last_content_at": 1_790_000_000_004_i64,
        "tokens_per_second": 12.5, "clock": "content", "since": 1_790_000_000_006_i64,
        "until": 1_790_000_002_000_i64, "attempt_number": 2, "attempts_max": 3, "reason": "stalled",
        "to": "spare/model" }))
    .unwrap()
}
