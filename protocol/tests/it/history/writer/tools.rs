//! Calls of tools: rows, batches, nodes, sub-calls and approvals.

use protocol::digest::sha256;
use protocol::id::{BlockId, GroupId, NodeId, OccurrenceId};
use serde_json::{Map, json};

use super::{ENDS, OpenNode, Writer};

impl Writer {
    /// One to three calls of one round: as a batch known at once, as a batch declared later, or each for itself.
    pub(super) fn call_tools(&mut self) {
        if self.attempts.is_empty() {
            return;
        }
        let attempt = self.tape.pick(self.attempts.len());
        let count = self.tape.pick(3) + 1;
        let known = count > 1 && self.tape.pick(2) == 1;
        let current = &self.attempts[attempt];
        let group = GroupId::of_batch(&current.node, &current.id, current.round, 0);
        let mut rows = Vec::new();
        for _ in 0..count {
            let current = &mut self.attempts[attempt];
            let occurrence =
                OccurrenceId::tool_call(&current.node, &current.id, current.round, current.position);
            current.position += 1;
            let parent = self
                .nodes
                .iter()
                .position(|node| node.id == self.attempts[attempt].node);
            let Some(parent) = parent else { return };
            let kind = ["function", "code"][self.tape.pick(2)];
            let (first, late) = (self.tape.pick(2) == 1, self.tape.pick(3) == 1);
            let node = NodeId::function(&self.nodes[parent].id, &occurrence);
            if first {
                self.add(parent, kind, occurrence.clone(), late);
            }
            let (block, mut value) = self.block(attempt, "tool_ref");
            value["tool_call_id"] = json!("toolu_repeated");
            value["occurrence_id"] = json!(occurrence);
            value["ref_node_id"] = json!(node);
            value["tool_name"] = json!("read_file");
            if known {
                value["group_id"] = json!(group);
            }
            self.put(value);
            if !first {
                self.add(parent, kind, occurrence, late);
            }
            rows.push(block);
        }
        if known {
            self.group(attempt, &group, &rows);
        } else if count > 1 && self.attempts[attempt].ungrouped.is_empty() {
            self.attempts[attempt].ungrouped = rows;
        }
        if self.attempts[attempt].ungrouped.is_empty() {
            self.attempts[attempt].round += 1;
            self.attempts[attempt].position = 0;
        }
    }

    fn group(&mut self, attempt: usize, group: &GroupId, members: &[BlockId]) {
        let (_, mut value) = self.block(attempt, "parallel_group");
        value["group_id"] = json!(group);
        value["members"] = json!(members);
        self.put(value);
    }

    /// Declares a batch whose rows are shown already.
    pub(super) fn declare_group(&mut self) {
        let Some(attempt) = self
            .attempts
            .iter()
            .position(|attempt| !attempt.ungrouped.is_empty())
        else {
            return;
        };
        let current = &mut self.attempts[attempt];
        let members = std::mem::take(&mut current.ungrouped);
        let group = GroupId::of_batch(&current.node, &current.id, current.round, 0);
        current.round += 1;
        current.position = 0;
        for block in &members {
            self.put(json!({ "op": "block_updated", "block_id": block, "group_id": group }));
        }
        self.group(attempt, &group, &members);
    }

    /// One of the open function and code nodes.
    fn tool(&mut self) -> Option<usize> {
        let tools: Vec<usize> = (0..self.nodes.len())
            .filter(|&place| matches!(self.nodes[place].kind, "function" | "code"))
            .collect();
        (!tools.is_empty()).then(|| tools[self.tape.pick(tools.len())])
    }

    pub(super) fn node_output(&mut self) {
        let Some(place) = self.tool() else { return };
        let channel = ["arguments", "log", "result"][self.tape.pick(3)];
        for _ in 0..=self.tape.pick(2) {
            let text = self.text();
            let node = &mut self.nodes[place];
            let known = node.outputs.entry(channel).or_insert_with(|| json!(""));
            let before = known.as_str().unwrap().to_owned();
            *known = json!(format!("{before}{text}"));
            let value = json!({ "op": "node_output", "node_id": node.id, "channel": channel, "offset": before.len(),
                                "text": text });
            self.put(value);
        }
    }

    pub(super) fn update_node(&mut self) {
        let place = self.tape.pick(self.nodes.len());
        let mut value = json!({ "op": "node_updated", "node_id": self.nodes[place].id });
        match self.tape.pick(3) {
            0 => value["status"] = json!("running"),
            1 => value["title"] = json!(self.text()),
            _ => value["progress"] = json!({ "done": self.tape.pick(9), "note": "é" }),
        }
        self.put(value);
    }

    pub(super) fn sub_call(&mut self) {
        let Some(place) = self.tool() else {
            // A phase of a mission is a child of the root.
            let ordinal = self.nodes[0].children;
            let occurrence = OccurrenceId::inner_model_call(&self.nodes[0].id, ordinal);
            self.add(0, "phase", occurrence, false);
            return self.start_model(self.nodes.len() - 1);
        };
        if self.nodes[place].kind == "function" {
            return self.start_model(place);
        }
        let occurrence = OccurrenceId::sub_call(&self.nodes[place].id, self.nodes[place].children);
        let late = self.tape.pick(3) == 1;
        self.add(place, "function", occurrence, late);
    }

    /// Ends a function, code or phase node; what is below it may go on.
    pub(super) fn finish_node(&mut self) {
        if let Some(place) = self.tool() {
            let status = ENDS[self.tape.pick(ENDS.len())];
            self.end_node(place, status);
        }
    }

    pub(super) fn end_node(&mut self, place: usize, status: &str) {
        let node = self.nodes.remove(place);
        let mut outputs = Map::new();
        for (channel, text) in &node.outputs {
            let text = text.as_str().unwrap();
            let summary =
                json!({ "bytes": text.len(), "sha256": sha256(text.as_bytes()), "media_type": "text/plain" });
            outputs.insert(channel.clone(), summary);
        }
        let mut value = json!({ "op": "node_finished", "node_id": node.id, "status": status,
            "finished_at": 1_790_000_100_000_i64, "outputs": outputs });
        if status == "failed" {
            value["error"] = json!({ "code": "exit", "message": "it failed" });
            value["exit_code"] = json!(self.tape.pick(3));
        }
        self.approvals.retain(|(asked, _)| *asked != node.id);
        self.put(value);
        if !node.announced {
            // The updates were held: the node comes after its own end.
            self.nodes.push(OpenNode {
                announced: false,
                ..node
            });
            self.announce(self.nodes.len() - 1);
            self.nodes.pop();
        }
    }

    pub(super) fn approval(&mut self) {
        if let Some((node, approval)) = self.approvals.pop() {
            return self.put(
                json!({ "op": "approval_resolved", "node_id": node, "approval_id": approval,
                "answer": "approve", "by": "ada", "words": "é" }),
            );
        }
        let Some(place) = self.tool() else { return };
        self.asked += 1;
        let (node, approval) = (self.nodes[place].id.clone(), format!("apr_{}", self.asked));
        self.put(json!({ "op": "approval_requested", "node_id": node, "approval_id": approval, "what": "Run it?" }));
        self.approvals.push((node, approval));
    }
}
