//! What a request holds of the session's earlier runs.

use serde_json::Value;

use crate::harness::TestServer;
use crate::provider::SIGNATURE;
use crate::states::{end, text};

/// The messages of a request.
fn messages(body: &Value) -> Vec<Value> {
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_run_says_again_what_was_asked_answered_called_and_found() {
    for (provider, other) in [("anthropic", "openai"), ("openai", "anthropic")] {
        let server = TestServer::start().await;
        let session = server.session().await;
        let first = server
            .submit(&session, "Show me what Runloom does", provider)
            .await;
        let first = server.ended(&first).await;
        let same = server.submit(&session, "max_tokens", provider).await;
        server.ended(&same).await;
        let same = server.provider.requests().await.pop().unwrap();
        let elsewhere = server.submit(&session, "max_tokens again", other).await;
        server.ended(&elsewhere).await;
        let elsewhere = server.provider.requests().await.pop().unwrap();

        for body in [&same, &elsewhere] {
            let said = body.to_string();
            let parts = [
                "Show me what Runloom does",
                "# Welcome to Runloom",
                "list_dir",
                "search_files",
                "acorn/log.py",
                "def records",
                "That was the tour",
            ];
            let mut place = 0;
            for part in parts {
                let found = said[place..]
                    .find(part)
                    .unwrap_or_else(|| panic!("{provider}: {part} in {said}"));
                place += found;
            }
            let last = messages(body).pop().unwrap().to_string();
            assert!(last.contains("max_tokens"), "{last}");
        }
        // Thinking with its signature goes back to the one who signed it, and to nobody else.
        assert_eq!(same.to_string().contains(SIGNATURE), provider == "anthropic");
        assert!(!elsewhere.to_string().contains(SIGNATURE), "{provider}");
        assert!(text(&first).contains("That was the tour"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_answer_had_said_is_said_again_and_its_calls_have_results() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.provider.arm("parallel:between").await;
    let first = server
        .submit(&session, "Call several tools at once", "openai")
        .await;
    let mut viewer = server.watch(&first).await;
    viewer.until(&first, |state| state.nodes().len() == 3).await;
    server.cancel(&first).await;
    viewer.until_end(&first).await;
    server.provider.open("parallel:between").await;
    for provider in ["openai", "anthropic"] {
        let next = server.submit(&session, "max_tokens", provider).await;
        let seen = server.ended(&next).await;
        assert_eq!(end(&seen).1, None, "the provider takes the conversation");
        let said = server.provider.requests().await.pop().unwrap().to_string();
        assert!(said.contains("Three looks at the workspace"), "{said}");
        assert!(said.contains("not_run"), "{said}");
    }
}
