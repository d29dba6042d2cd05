//! Tells a history: what is open, and what may happen next.

mod tools;

use protocol::digest::sha256;
use protocol::id::{AttemptId, BlockId, NodeId, OccurrenceId, RunId};
use protocol::op::Entry;
use serde_json::{Map, Value, json};

use super::Tape;
use crate::support::{id, op};

/// Pieces of text: of several lengths in bytes, with NUL, line ends and nothing.
const TEXTS: [&str; 9] = [
    "a",
    "é",
    "日本",
    "🦀",
    "\u{0}",
    "\n\n",
    "",
    "```rust\n",
    "a longer piece of Markdown, *with marks* ",
];

const ENDS: [&str; 6] = [
    "succeeded",
    "failed",
    "cancelled",
    "interrupted",
    "timed_out",
    "denied",
];

/// A node that may still change.
struct OpenNode {
    id: NodeId,
    kind: &'static str,
    parent: Option<NodeId>,
    occurrence: Option<OccurrenceId>,
    /// Whether `node_started` was written; before that its updates are held.
    announced: bool,
    ordinal: u32,
    children: u32,
    outputs: Map<String, Value>,
}

/// An attempt that goes on.
struct OpenAttempt {
    id: AttemptId,
    node: NodeId,
    next_index: u32,
    round: u32,
    blocks: Vec<(BlockId, String)>,
    /// Rows whose batch was not declared yet.
    ungrouped: Vec<BlockId>,
    position: u32,
}

/// A model node with what its next attempt needs to know.
struct Model {
    node: NodeId,
    attempts: u32,
    last: Option<AttemptId>,
}

/// Writes one run's journal.
pub(super) struct Writer {
    tape: Tape,
    entries: Vec<Entry>,
    generation: u64,
    nodes: Vec<OpenNode>,
    attempts: Vec<OpenAttempt>,
    models: Vec<Model>,
    closed_models: Vec<Model>,
    closed_attempts: Vec<(NodeId, AttemptId)>,
    messages: u32,
    approvals: Vec<(NodeId, String)>,
    asked: u32,
    made: u32,
}

impl Writer {
    pub(super) fn new(tape: Tape) -> Self {
        Self {
            tape,
            entries: Vec::new(),
            generation: 0,
            nodes: Vec::new(),
            attempts: Vec::new(),
            models: Vec::new(),
            closed_models: Vec::new(),
            closed_attempts: Vec::new(),
            messages: 0,
            approvals: Vec::new(),
            asked: 0,
            made: 0,
        }
    }

    /// Writes until the tape ends; then closes everything when `finish` says so.
    pub(super) fn write(mut self, finish: bool) -> Vec<Entry> {
        self.message();
        self.put(json!({ "op": "run_updated", "status": "queued" }));
        self.generation = 1;
        self.put(json!({ "op": "run_updated", "status": "running" }));
        self.announce_root();
        self.start_model(0);
        while !self.tape.ended() {
            self.step();
        }
        if finish {
            self.finish();
        }
        self.entries
    }

    fn put(&mut self, mut value: Value) {
        if self.tape.pick(40) == 1 {
            value["x_new"] = json!({ "since": 2, "words": ["é", null] });
        }
        let seq = self.entries.len() as u64 + 1;
        self.entries.push(Entry {
            run_id: id("run_1"),
            generation: self.generation,
            seq,
            at: 1_790_000_000_000 + i64::try_from(seq).unwrap() * 7,
            op: op(value),
        });
    }

    fn text(&mut self) -> String {
        let count = self.tape.pick(3) + 1;
        (0..count).map(|_| TEXTS[self.tape.pick(TEXTS.len())]).collect()
    }

    fn step(&mut self) {
        match self.tape.pick(24) {
            0..=5 => self.block_delta(),
            6 | 7 => self.start_block(),
            8 => self.finish_block(),
            9 | 10 => self.call_tools(),
            11..=13 => self.node_output(),
            14 => self.announce_one(),
            15 | 16 => self.finish_node(),
            17 => self.sub_call(),
            18 => self.finish_attempt(),
            19 => self.go_on(),
            20 => self.declare_group(),
            21 => self.update_node(),
            22 => self.approval(),
            _ => self.other(),
        }
    }

    fn message(&mut self) {
        self.messages += 1;
        let text = self.text();
        let message = format!("msg_{}", self.messages);
        self.put(json!({ "op": "message_added", "message_id": message, "role": "user", "text": text }));
    }

    fn announce_root(&mut self) {
        let root = OpenNode {
            id: NodeId::root(&id::<RunId>("run_1")),
            kind: "root",
            parent: None,
            occurrence: None,
            announced: false,
            ordinal: 0,
            children: 0,
            outputs: Map::new(),
        };
        self.nodes.push(root);
        self.announce(0);
    }

    /// Adds a node below another; it is announced now or, where `late` says so, after some of its updates.
    fn add(&mut self, parent: usize, kind: &'static str, occurrence: OccurrenceId, late: bool) -> NodeId {
        let above = &mut self.nodes[parent];
        let parent_id = above.id.clone();
        let ordinal = above.children;
        above.children += 1;
        let node = match kind {
            "phase" => id(&format!("phase_{}", occurrence.as_str())),
            "model" => NodeId::model(&parent_id, &occurrence),
            _ => NodeId::function(&parent_id, &occurrence),
        };
        self.nodes.push(OpenNode {
            id: node.clone(),
            kind,
            parent: Some(parent_id),
            occurrence: Some(occurrence),
            announced: false,
            ordinal,
            children: 0,
            outputs: Map::new(),
        });
        if !late {
            self.announce(self.nodes.len() - 1);
        }
        node
    }

    fn announce(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        if node.announced {
            return;
        }
        node.announced = true;
        let mut value = json!({ "op": "node_started", "node_id": node.id, "parent_id": node.parent, "after": [],
            "kind": node.kind, "name": node.kind, "title": "A title", "ordinal": node.ordinal, "executor": "runloom" });
        if let Some(occurrence) = &node.occurrence {
            value["occurrence_id"] = json!(occurrence);
        }
        self.put(value);
    }

    fn announce_one(&mut self) {
        if let Some(place) = self.nodes.iter().position(|node| !node.announced) {
            self.announce(place);
        }
    }

    fn start_model(&mut self, parent: usize) {
        let parent_node = &self.nodes[parent];
        let occurrence = OccurrenceId::inner_model_call(&parent_node.id, parent_node.children);
        let node = self.add(parent, "model", occurrence, false);
        self.models.push(Model {
            node,
            attempts: 0,
            last: None,
        });
        self.start_attempt(self.models.len() - 1, "initial");
    }

    fn start_attempt(&mut self, model: usize, reason: &str) {
        self.made += 1;
        let attempt: AttemptId = id(&format!("att_{}", self.made));
        let model = &mut self.models[model];
        let mut value = json!({ "op": "attempt_started", "node_id": model.node, "attempt_id": attempt,
            "attempt_index": model.attempts, "reason": reason, "provider": "main", "model": "some-model" });
        if let Some(before) = &model.last
            && self.tape.pick(2) == 1
        {
            value["continues_attempt_id"] = json!(before);
            value["kept"] = json!({ "bytes": self.tape.pick(40), "tokens": 3 });
        }
        model.attempts += 1;
        model.last = Some(attempt.clone());
        let node = model.node.clone();
        self.attempts.push(OpenAttempt {
            id: attempt,
            node,
            next_index: 0,
            round: 0,
            blocks: Vec::new(),
            ungrouped: Vec::new(),
            position: 0,
        });
        self.put(value);
    }

    /// A block's op with its place in the attempt.
    fn block(&mut self, attempt: usize, kind: &str) -> (BlockId, Value) {
        let attempt = &mut self.attempts[attempt];
        let block = BlockId::at(&attempt.id, attempt.next_index);
        let value = json!({ "op": "block_started", "node_id": attempt.node, "attempt_id": attempt.id,
            "block_id": block, "block_index": attempt.next_index, "round": attempt.round, "kind": kind });
        attempt.next_index += 1;
        (block, value)
    }

    fn start_block(&mut self) {
        if self.attempts.is_empty() {
            return;
        }
        let attempt = self.tape.pick(self.attempts.len());
        let kind = ["text", "text", "reasoning", "refusal", "unsupported", "chart"][self.tape.pick(6)];
        let (block, mut value) = self.block(attempt, kind);
        match kind {
            "reasoning" => value["retention"] = json!(["saved", "not_saved"][self.tape.pick(2)]),
            "unsupported" => {
                value["raw_kind"] = json!("image");
                value["bytes"] = json!(0);
            }
            "chart" => value["axes"] = json!(["x", "y"]),
            _ => {}
        }
        self.attempts[attempt].blocks.push((block, String::new()));
        self.put(value);
    }

    /// One of the open blocks: its attempt and its place.
    fn open_block(&mut self) -> Option<(usize, usize)> {
        let open: Vec<(usize, usize)> = (0..self.attempts.len())
            .flat_map(|attempt| (0..self.attempts[attempt].blocks.len()).map(move |block| (attempt, block)))
            .collect();
        (!open.is_empty()).then(|| open[self.tape.pick(open.len())])
    }

    fn block_delta(&mut self) {
        let Some((attempt, block)) = self.open_block() else {
            return self.start_block();
        };
        // Several in a row, so that there is something to merge.
        for _ in 0..=self.tape.pick(3) {
            let delta = self.text();
            let (block, text) = &mut self.attempts[attempt].blocks[block];
            let value =
                json!({ "op": "block_delta", "block_id": block, "offset": text.len(), "delta": delta });
            text.push_str(&delta);
            self.put(value);
        }
    }

    fn finish_block(&mut self) {
        if let Some((attempt, block)) = self.open_block() {
            let status = ["complete", "cut"][self.tape.pick(2)];
            self.end_block(attempt, block, status);
        }
    }

    fn end_block(&mut self, attempt: usize, block: usize, status: &str) {
        let (block, text) = self.attempts[attempt].blocks.remove(block);
        self.put(
            json!({ "op": "block_finished", "block_id": block, "status": status, "bytes": text.len(),
                         "sha256": sha256(text.as_bytes()) }),
        );
    }

    fn finish_attempt(&mut self) {
        if self.attempts.is_empty() {
            return;
        }
        let attempt = self.tape.pick(self.attempts.len());
        let status = [
            "completed",
            "failed",
            "cancelled",
            "interrupted",
            "stalled",
            "partial",
        ][self.tape.pick(6)];
        self.end_attempt(attempt, status);
    }

    fn end_attempt(&mut self, attempt: usize, status: &str) {
        while !self.attempts[attempt].blocks.is_empty() {
            let block = self.tape.pick(self.attempts[attempt].blocks.len());
            self.end_block(
                attempt,
                block,
                if status == "completed" { "complete" } else { "cut" },
            );
        }
        let ended = self.attempts.remove(attempt);
        let tokens = self.tape.pick(99);
        self.put(json!({ "op": "attempt_finished", "node_id": ended.node, "attempt_id": ended.id, "status": status,
            "stop_reason": "end_turn", "usage": { "input_tokens": 9, "output_tokens": tokens, "cost": 0.5 } }));
        self.closed_attempts.push((ended.node, ended.id));
    }

    /// What comes after an attempt: another one, the end of the node, or a way back from that.
    fn go_on(&mut self) {
        let idle: Vec<usize> = (0..self.models.len())
            .filter(|&model| {
                self.attempts
                    .iter()
                    .all(|attempt| attempt.node != self.models[model].node)
            })
            .collect();
        if !idle.is_empty() && self.tape.pick(4) != 3 {
            let model = idle[self.tape.pick(idle.len())];
            if self.tape.pick(2) == 1 {
                let reason =
                    ["stall_retry", "error_retry", "provider_rotation", "output_repair"][self.tape.pick(4)];
                return self.start_attempt(model, reason);
            }
            let status = ENDS[self.tape.pick(ENDS.len())];
            return self.end_model(model, status);
        }
        let Some(model) = self.closed_models.pop() else {
            return;
        };
        let reason = ["resume", "regenerate"][self.tape.pick(2)];
        if reason == "regenerate"
            && let Some(place) = self
                .closed_attempts
                .iter()
                .position(|(node, _)| *node == model.node)
        {
            let (node, attempt) = self.closed_attempts.remove(place);
            self.put(json!({ "op": "attempt_finished", "node_id": node, "attempt_id": attempt, "status": "superseded" }));
        }
        // Its place as a parent is taken up again; what its children are called goes on counting.
        self.nodes.push(OpenNode {
            id: model.node.clone(),
            kind: "model",
            parent: None,
            occurrence: None,
            announced: true,
            ordinal: 0,
            children: 1_000 * model.attempts,
            outputs: Map::new(),
        });
        self.models.push(model);
        self.start_attempt(self.models.len() - 1, reason);
    }

    fn end_model(&mut self, model: usize, status: &str) {
        let model = self.models.remove(model);
        if let Some(place) = self.nodes.iter().position(|node| node.id == model.node) {
            self.end_node(place, status);
        }
        self.closed_models.push(model);
    }

    fn other(&mut self) {
        match self.tape.pick(7) {
            0 => self.put(json!({ "op": "notice", "code": "outage", "detail": { "é": [1, "\u{0}"] } })),
            1 => self.put(json!({ "op": "hologram_projected", "volume": [1, 2] })),
            2 => self.put(json!({ "op": "withheld" })),
            3 => self.generation += 1,
            4 => self.message(),
            5 => {
                let message = format!("msg_{}", self.tape.pick(self.messages as usize) + 1);
                let state = ["delivered", "returned"][self.tape.pick(2)];
                self.put(json!({ "op": "message_updated", "message_id": message, "state": state }));
            }
            _ => {
                let status = ["running", "waiting"][self.tape.pick(2)];
                let tokens = self.tape.pick(9);
                self.put(json!({ "op": "run_updated", "status": status,
                    "usage": { "input_tokens": 1, "output_tokens": tokens } }));
            }
        }
    }

    /// Closes everything, from the blocks up.
    fn finish(&mut self) {
        while !self.attempts.is_empty() {
            self.end_attempt(0, "interrupted");
        }
        while !self.models.is_empty() {
            self.end_model(0, "interrupted");
        }
        while !self.nodes.is_empty() {
            let last = self.nodes.len() - 1;
            self.end_node(last, "interrupted");
        }
        self.put(json!({ "op": "run_updated", "status": "interrupted",
                         "error": { "code": "owner_gone", "message": "gone" } }));
    }
}
