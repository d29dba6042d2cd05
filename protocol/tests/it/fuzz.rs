//! No input makes the crate panic, and no state that input made is lost on its way through a snapshot.

use proptest::prelude::*;
use proptest::sample::Index;
use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::frame::{ClientFrame, OpsFrame, ServerFrame};
use protocol::op::Entry;
use protocol::snapshot::{Assembler, Snapshot, SnapshotPart, split};
use serde_json::{Map, Value, json};

use crate::history::{self, History};
use crate::support::{config, fresh, seen, through_json};

/// Names of fields: those of ops, things and frames, so that random objects come near to real ones.
const NAMES: [&str; 40] = [
    "op",
    "type",
    "schema_version",
    "run_id",
    "generation",
    "seq",
    "at",
    "status",
    "error",
    "usage",
    "message_id",
    "text",
    "state",
    "node_id",
    "parent_id",
    "after",
    "kind",
    "name",
    "title",
    "ordinal",
    "executor",
    "occurrence_id",
    "progress",
    "started_at",
    "finished_at",
    "channel",
    "offset",
    "outputs",
    "exit_code",
    "approval_id",
    "attempt_id",
    "attempt_index",
    "reason",
    "kept",
    "block_id",
    "block_index",
    "content",
    "content_ref",
    "bytes",
    "members",
];

/// Words that mean something somewhere.
const WORDS: [&str; 16] = [
    "execution_stream",
    "run_1",
    "call_1",
    "exec_1",
    "att_1",
    "blk_1",
    "occ_1",
    "par_1",
    "running",
    "succeeded",
    "complete",
    "text",
    "tool_ref",
    "resume",
    "log",
    "\u{0}é🦀",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u64..4).prop_map(Value::from),
        // A float that every reader writes as it was.
        any::<i16>().prop_map(|number| json!(f64::from(number) / 4.0)),
        prop::sample::select(WORDS.as_slice()).prop_map(Value::from),
        prop::sample::select(crate::ops::NAMES.as_slice()).prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 6, |inner| {
        let name = prop_oneof![
            prop::sample::select(NAMES.as_slice()).prop_map(str::to_owned),
            ".{0,4}"
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((name, inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// One change of a JSON value.
#[derive(Debug, Clone)]
enum Mutation {
    Remove(Index),
    Replace(Index, Value),
    Rename(Index, &'static str),
    Add(&'static str, Value),
    Exchange(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<Index>().prop_map(Mutation::Remove),
        (any::<Index>(), value()).prop_map(|(place, value)| Mutation::Replace(place, value)),
        (any::<Index>(), prop::sample::select(NAMES.as_slice()))
            .prop_map(|(place, name)| Mutation::Rename(place, name)),
        (prop::sample::select(NAMES.as_slice()), value())
            .prop_map(|(name, value)| Mutation::Add(name, value)),
        (any::<Index>(), any::<Index>()).prop_map(|(left, right)| Mutation::Exchange(left, right)),
    ]
}

/// The places of all objects in a value, as JSON pointers.
fn objects(value: &Value, here: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(here.to_owned());
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                objects(value, &format!("{here}/{name}"), found);
            }
        }
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                objects(value, &format!("{here}/{place}"), found);
            }
        }
        _ => {}
    }
}

/// Changes one of the objects in a value.
fn mutate(value: &mut Value, mutation: &Mutation, which: &Index) {
    let mut found = Vec::new();
    objects(value, "", &mut found);
    if found.is_empty() {
        return;
    }
    let Some(object) = value
        .pointer_mut(which.get::<String>(&found))
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let names: Vec<String> = object.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    match mutation {
        Mutation::Remove(place) => {
            object.shift_remove(place.get(&names));
        }
        Mutation::Replace(place, value) => {
            object.insert(place.get(&names).clone(), value.clone());
        }
        Mutation::Rename(place, name) => {
            if let Some(value) = object.shift_remove(place.get(&names)) {
                object.insert((*name).to_owned(), value);
            }
        }
        Mutation::Add(name, value) => {
            object.insert((*name).to_owned(), value.clone());
        }
        Mutation::Exchange(left, right) => {
            let (left, right) = (left.get(&names).clone(), right.get(&names).clone());
            let one = object.get(&left).cloned().unwrap_or_default();
            let other = object.insert(right, one).unwrap_or_default();
            object.insert(left, other);
        }
    }
}

/// Reads everything that a state can tell.
fn read_all(state: &RunState) {
    digest(state);
    for node in state.nodes() {
        state.answer(&node.node_id);
        state.children(&node.node_id).count();
    }
    state.root();
}

/// Holds that a state is the same after its snapshot went over the wire, whole and in parts.
fn survives(state: &RunState) {
    let before = seen(state);
    let again = through_json(state);
    assert_eq!(seen(&again), before);
    assert_eq!(digest(&again), digest(state));
    let mut assembler = Assembler::new(state.run().clone());
    for (number, part) in (0..).zip(split(state.to_snapshot(), 1024)) {
        let text = serde_json::to_string(&part).unwrap();
        assembler
            .add(number, serde_json::from_str::<SnapshotPart>(&text).unwrap())
            .unwrap();
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_text_never_panics(text in any::<String>(), value in value()) {
        for text in [text, value.to_string()] {
            let _ = Entry::from_json(&text);
            let _ = serde_json::from_str::<Snapshot>(&text);
            let _ = serde_json::from_str::<SnapshotPart>(&text);
            let _ = serde_json::from_str::<ServerFrame>(&text);
            let _ = serde_json::from_str::<ClientFrame>(&text);
        }
    }

    #[test]
    fn an_op_of_random_fields_never_panics_and_what_it_makes_survives(
        ops in proptest::collection::vec(
            (prop::sample::select(crate::ops::NAMES.as_slice()),
             proptest::collection::vec((prop::sample::select(NAMES.as_slice()), value()), 0..8)), 1..12),
    ) {
        let mut state = fresh();
        for (name, fields) in ops {
            let mut object: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            object.insert("op".to_owned(), json!(name));
            object.insert("type".to_owned(), json!("execution_stream"));
            object.insert("schema_version".to_owned(), json!(1));
            object.insert("run_id".to_owned(), json!("run_1"));
            object.insert("generation".to_owned(), json!(1));
            object.insert("seq".to_owned(), json!(state.seq() + 1));
            object.insert("at".to_owned(), json!(0));
            if let Ok(entry) = Entry::from_object(object) {
                let _ = state.apply(&entry);
            }
        }
        read_all(&state);
        survives(&state);
    }

    #[test]
    fn mutated_entries_never_panic_and_what_they_make_survives(
        history in history::any(),
        mutations in proptest::collection::vec((any::<Index>(), mutation(), any::<Index>()), 1..12),
    ) {
        let mut lines = std::collections::BTreeMap::<usize, Value>::new();
        for (place, mutation, which) in &mutations {
            let place = place.index(history.entries.len());
            let line = lines.entry(place);
            let line = line.or_insert_with(|| serde_json::to_value(&history.entries[place]).unwrap());
            mutate(line, mutation, which);
        }
        let mut state = fresh();
        for (place, entry) in history.entries.iter().enumerate() {
            let read = lines.get(&place).map(|line| Entry::from_json(&line.to_string()));
            let Ok(mut entry) = read.unwrap_or_else(|| Ok(entry.clone())) else { continue };
            // As it came, and again as the next one.
            let _ = state.apply(&entry);
            entry.run_id = state.run().run_id.clone();
            entry.generation = entry.generation.max(state.generation());
            entry.seq = state.seq().saturating_add(1);
            let _ = state.apply(&entry);
        }
        read_all(&state);
        survives(&state);
    }

    #[test]
    fn mutated_snapshots_never_panic(
        history in history::any(),
        mutations in proptest::collection::vec((mutation(), any::<Index>()), 1..4),
    ) {
        let mut value = serde_json::to_value(history.straight().to_snapshot()).unwrap();
        for (mutation, which) in &mutations {
            mutate(&mut value, mutation, which);
        }
        if let Ok(snapshot) = serde_json::from_str::<Snapshot>(&value.to_string()) {
            let _ = split(snapshot.clone(), 0);
            let mut state = RunState::from_snapshot(snapshot);
            read_all(&state);
            survives(&state);
            for entry in &history.entries {
                let mut entry = entry.clone();
                entry.seq = state.seq().saturating_add(1);
                let _ = state.apply(&entry);
            }
            read_all(&state);
        }
    }

    #[test]
    fn frames_of_any_number_never_panic(history in history::any(), seq in any::<u64>(), generation in any::<u64>()) {
        let History { entries } = history;
        let frame = OpsFrame {
            schema_version: 1,
            run_id: entries[0].run_id.clone(),
            generation,
            seq,
            at: i64::MIN,
            ops: entries.into_iter().map(|entry| entry.op).collect(),
        };
        let mut state = fresh();
        for entry in frame.into_entries() {
            let _ = state.apply(&entry);
        }
    }
}

#[test]
fn usage_of_any_size_is_added_without_overflow() {
    let mut usage: protocol::model::Usage = serde_json::from_value(json!({
        "input_tokens": u64::MAX, "output_tokens": u64::MAX, "cache_read_tokens": u64::MAX,
        "cache_write_tokens": u64::MAX, "reasoning_tokens": u64::MAX, "cost": 0.25 }))
    .unwrap();
    usage.add(&usage.clone());
    assert_eq!(usage.cache_read_tokens, Some(u64::MAX));
    assert_eq!(usage.reasoning_tokens, Some(u64::MAX));
    assert_eq!(usage.cost, Some(0.5));
}
