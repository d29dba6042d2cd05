//! The document at `/api/openapi.json` says what the router does.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::TestServer;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An address of a path of the document: an id of the right kind for each parameter.
fn address(path: &str) -> String {
    path.replace("{session}", "ses_1")
        .replace("{run}", "run_1")
        .replace("{node}", "call_1")
        .replace("{block}", "blk_1")
        .replace("{path}", "chat/call_1.ndjson")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_the_document_is_served_and_no_other_method_is() {
    let server = TestServer::start().await;
    let document: Value = serde_json::from_str(&server.text("/api/openapi.json").await).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 13, "{} paths", paths.len());
    for (path, operations) in paths {
        assert!(
            !address(path).contains('{'),
            "{path}: a parameter that this test does not know"
        );
        for method in METHODS {
            let request = server.http.request(
                method.to_uppercase().parse().unwrap(),
                format!("{}{}", server.base, address(path)),
            );
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16();
            let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default();
            let code = body["code"].as_str().unwrap_or_default().to_owned();
            match operations.get(method) {
                Some(operation) => {
                    assert!(
                        code != "no_such_call" && code != "method_not_allowed",
                        "{method} {path}: {code}"
                    );
                    let known = operation["responses"].get(status.to_string()).is_some() || status >= 400;
                    assert!(known, "{method} {path}: {status}");
                }
                None => assert_eq!(code, "method_not_allowed", "{method} {path}"),
            }
        }
    }
    // The page of the protocol names the same calls.
    let page = include_str!("../../../docs/protocol.md");
    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            let call = format!("`{} {path}`", method.to_uppercase());
            assert!(page.contains(&call), "docs/protocol.md does not name {call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reference_of_the_document_leads_somewhere_and_all_ops_and_frames_are_in_it() {
    let server = TestServer::start().await;
    let document: Value = serde_json::from_str(&server.text("/api/openapi.json").await).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str));
                object.values().for_each(|inner| references(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "{reference}");
    }
    for name in [
        "Op",
        "Entry",
        "ServerFrame",
        "ClientFrame",
        "Snapshot",
        "Node",
        "Attempt",
        "Block",
        "Problem",
    ] {
        assert!(schemas.contains_key(name), "{name}");
    }
    let text = document.to_string();
    for word in [
        "block_delta",
        "execution_stream",
        "snapshot_part",
        "Idempotency-Key",
        "parallel_group",
    ] {
        assert!(text.contains(word), "{word}");
    }
}
