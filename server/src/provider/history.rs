//! What the request builders share: addresses, and tool-call ids that are right for one whole request.

use std::collections::HashSet;

use serde_json::Value;

use super::{Endpoint, Replay};

/// The address of `path` below a base address, with or without a slash at the end of it.
pub(super) fn join_url(base_url: &str, path: &str) -> String {
    format!("{}/{path}", base_url.trim().trim_end_matches('/'))
}

/// The replay record, when it may be sent: to the endpoint and model that made it only.
pub(super) fn usable_replay<'a>(
    replay: Option<&'a Replay>,
    endpoint: &Endpoint,
    model: &str,
) -> Option<&'a Value> {
    replay
        .filter(|replay| replay.provider_id == endpoint.provider_id && replay.model == model)
        .map(|replay| &replay.message)
}

/// Arguments as a JSON object: what is empty, `null` or not one counts as `{}`.
pub(super) fn arguments_object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(_) | Err(_) => Value::Object(serde_json::Map::new()),
    }
}

/// Whether JSON text stops before its end; text that is wrong in itself is whole, and wrong.
pub(super) fn is_cut(json: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(json).is_err_and(|error| error.is_eof())
}

/// Ids as they stand in one request. Providers repeat ids across rounds and even within one, and each endpoint has
/// its own alphabet; on the wire every id is legal and unique, and a result finds its call.
#[derive(Debug)]
pub(super) struct WireIds {
    legal: fn(&str) -> String,
    used: HashSet<String>,
    /// The calls of the last assistant message that have no result yet: the id in the record and on the wire.
    open: Vec<(String, String)>,
}

impl WireIds {
    pub(super) fn new(legal: fn(&str) -> String) -> Self {
        Self {
            legal,
            used: HashSet::new(),
            open: Vec::new(),
        }
    }

    /// A call of the assistant message at hand; gives its id on the wire.
    pub(super) fn call(&mut self, id: &str) -> String {
        let mut wire = (self.legal)(id);
        let mut number = 2;
        while !self.used.insert(wire.clone()) {
            wire = (self.legal)(&format!("{id}_{number}"));
            number += 1;
        }
        self.open.push((id.to_owned(), wire.clone()));
        wire
    }

    /// A result for `id`; gives the id on the wire of the first such call that waits for one.
    pub(super) fn result(&mut self, id: &str) -> Option<String> {
        let position = self.open.iter().position(|(own, _)| own == id)?;
        Some(self.open.remove(position).1)
    }

    /// The calls that got no result, before the conversation goes on without one.
    pub(super) fn take_unanswered(&mut self) -> Vec<String> {
        std::mem::take(&mut self.open)
            .into_iter()
            .map(|(_, wire)| wire)
            .collect()
    }
}

/// What stands for the result of a call that has none, since every endpoint asks for one.
pub(super) const NO_RESULT: &str = "There is no result: this call was not run to its end.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_repeat_are_told_apart_and_results_find_their_calls() {
        let mut ids = WireIds::new(str::to_owned);
        assert_eq!(ids.call("0"), "0");
        assert_eq!(ids.result("0").as_deref(), Some("0"));
        assert_eq!(ids.call("0"), "0_2");
        assert_eq!(ids.call("0"), "0_3");
        assert_eq!(ids.result("0").as_deref(), Some("0_2"));
        assert_eq!(ids.result("other"), None);
        assert_eq!(ids.take_unanswered(), ["0_3"]);
        assert_eq!(ids.result("0"), None);
    }

    #[test]
    fn a_base_address_may_end_in_a_slash() {
        assert_eq!(join_url("http://h/v1/", "chat"), "http://h/v1/chat");
        assert_eq!(join_url("http://h/v1", "chat"), "http://h/v1/chat");
    }
}
