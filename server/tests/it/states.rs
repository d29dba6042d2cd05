//! Comparing states, and what is asked of them most often.

use protocol::fold::RunState;
use protocol::state::RunStatus;
use serde_json::Value;

/// Both states are the same; else the first place where they differ is told.
pub(crate) fn assert_equal(left: &RunState, right: &RunState) {
    if let Some(difference) = difference("", &record(left), &record(right)) {
        panic!("{difference}");
    }
}

fn difference(path: &str, left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => left.keys().chain(right.keys()).find_map(|key| {
            let of = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
            difference(&format!("{path}.{key}"), &of(left), &of(right))
        }),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs
                .into_iter()
                .find_map(|(place, (left, right))| difference(&format!("{path}[{place}]"), left, right))
        }
        _ => (left != right).then(|| format!("{path}: {left} and {right}")),
    }
}

/// A state as a comparison sees it: all of the record, nothing of what is live only.
fn record(state: &RunState) -> Value {
    let mut snapshot = state.to_snapshot();
    snapshot.streams.clear();
    let mut record = serde_json::to_value(snapshot).unwrap();
    // Ops do not say it: a page knows it from elsewhere.
    record["run"].as_object_mut().unwrap().remove("session_id");
    record
}

/// The kinds of the blocks of a run, in order.
pub(crate) fn kinds(state: &RunState) -> Vec<&str> {
    let attempts = state.attempts().iter();
    let blocks = attempts.flat_map(|attempt| state.blocks_of(&attempt.attempt_id));
    blocks.map(|block| block.body.kind()).collect()
}

/// All text of a run's answer, over its blocks.
pub(crate) fn text(state: &RunState) -> String {
    let blocks = state.blocks().iter();
    let texts = blocks.filter_map(|block| match &block.body {
        protocol::model::BlockBody::Text(content) => Some(content.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// How a run ended: its state and the code of its error.
pub(crate) fn end(state: &RunState) -> (RunStatus, Option<&str>) {
    let error = state.run().error.as_ref().map(|error| error.code.as_str());
    (state.run().status, error)
}
