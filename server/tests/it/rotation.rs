//! Streams that stall: the same provider is asked again, then another one goes on; an outage is one decision for all.

use std::sync::Arc;

use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::state::{AttemptReason, AttemptStatus, BlockStatus, NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};
use server::provider::GO_ON;
use server::simulator::Scenario;

use crate::attempts::{answer, attempts, conversation};
use crate::harness::{Setup, TestServer};
use crate::provider::{Provider, scenario};
use crate::states::end;
use crate::tool_settlement::{Waiting, waiting_scenario};

/// A second is the shortest limit.
const STALL: &str = "first_byte = 1\nfirst_token = 1\nno_byte = 1\nno_content = 1";

const QUICK: &str = "retry_delays = [0.02, 0.02]\nretry_jitter = 0.0\nrotation_delay = 0.02\nrotations = 2";

/// The same with fewer waits.
const NO_RETRIES: &str = "retry_delays = []\nrotation_delay = 0.02\nrotations = 2";

const FIRST: &str = "The log is a file.\n\nIt is read like this:\n\n```python\nfor line in op";

/// Stalls so often in the middle of a code block, then goes on.
fn stalling(name: &str, stalls: usize) -> Scenario {
    let mut source = format!(
        "name = \"{name}\"\norder = 900\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"{name}\"\n[[turns]]\n"
    );
    for number in 0..stalls {
        let steps = if number == 0 {
            "turns.steps"
        } else {
            "turns.again.steps"
        };
        if number > 0 {
            source.push_str("[[turns.again]]\n");
        }
        let text = if number == 0 { FIRST } else { "Once more, in vain" };
        source.push_str(&format!(
            "[[{steps}]]\nstep = \"text\"\ntext = {text:?}\n[[{steps}]]\nstep = \"gate\"\nname = \"{name}:{number}\"\n"
        ));
    }
    source
        .push_str("[[turns.again]]\n[[turns.again.steps]]\nstep = \"text\"\ntext = \"That is all of it.\"\n");
    scenario(name, &source)
}

/// A server whose role `chat` has two providers that speak the same format: `anthropic`, then `spare`.
async fn with_spare(
    recovery: &'static str,
    scenarios: Vec<Scenario>,
    tool: Option<&Arc<Waiting>>,
) -> TestServer {
    let provider = Provider::start(scenarios).await;
    let more = format!(
        "[roles]\nchat = [\"anthropic/sim\", \"spare/sim\"]\n\
         [[providers]]\nid = \"spare\"\nkind = \"anthropic\"\nbase_url = \"{}\"\n\
         models = [ {{ id = \"sim\", class = \"action\", context = 200000 }} ]\n[providers.stall]\n{STALL}\n",
        provider.base
    );
    TestServer::start_with(Setup {
        provider: Some(provider),
        stall: STALL,
        recovery: Some(recovery),
        more_config: Box::leak(more.into_boxed_str()),
        tools: tool.into_iter().map(|tool| tool.clone() as _).collect(),
        ..Setup::default()
    })
    .await
}

fn providers(state: &RunState) -> Vec<&str> {
    state
        .attempts()
        .iter()
        .map(|attempt| attempt.provider.as_str())
        .collect()
}

fn notices(state: &RunState, code: &str) -> usize {
    state
        .notices()
        .iter()
        .filter(|notice| notice.code == code)
        .count()
}

/// The decisions of the guard in the transcript of the run's answer.
async fn decisions(server: &TestServer, state: &RunState) -> Vec<String> {
    let node = state
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Model)
        .unwrap();
    let path = format!(
        "/api/runs/{}/transcripts/chat/{}.ndjson",
        state.run().run_id,
        node.node_id
    );
    let text = server.get(&path).await.text().await.unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "guard")
        .map(|line| line["decision"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_stalls_in_a_code_block_is_retried_twice_then_another_provider_goes_on() {
    let server = with_spare(QUICK, vec![stalling("stalls", 3)], None).await;
    for number in 0..3 {
        server.provider.arm(&format!("stalls:{number}")).await;
    }
    let seen = server.finish("stalls", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let stalled = AttemptStatus::Stalled;
    assert_eq!(
        attempts(&seen),
        [
            (AttemptReason::Initial, stalled),
            (AttemptReason::StallRetry, stalled),
            (AttemptReason::StallRetry, stalled),
            (AttemptReason::ProviderRotation, AttemptStatus::Completed),
        ]
    );
    assert_eq!(providers(&seen), ["anthropic", "anthropic", "anthropic", "spare"]);

    // What stalled stays as it was; what goes on goes on from the last whole piece.
    let first = &seen.attempts()[0];
    let cut = seen.blocks_of(&first.attempt_id).next_back().unwrap();
    assert_eq!(cut.state.status(), BlockStatus::Cut);
    assert_eq!(cut.body.content().unwrap().text, FIRST);
    let kept = "The log is a file.\n\nIt is read like this:";
    assert_eq!(answer(&seen), format!("{kept}\n\nThat is all of it."));
    let requests = server.provider.requests().await;
    assert_eq!(requests.len(), 4);
    let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    assert_eq!(
        conversation(&requests[3]),
        [
            said("user", "stalls"),
            said("assistant", kept),
            said("user", GO_ON)
        ]
    );
    assert_eq!(
        decisions(&server, &seen).await,
        ["abort", "retry", "abort", "retry", "abort", "rotate"]
    );
    assert!(
        server.provider.is_idle_within(1_000).await,
        "each socket was closed"
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_other_provider_is_configured_the_run_says_so() {
    let server = with_spare(NO_RETRIES, vec![stalling("stalls", 2)], None).await;
    server.provider.arm("stalls:0").await;
    let seen = server.finish("stalls", "spare").await;
    assert_eq!(end(&seen), (RunStatus::Failed, Some("provider_stalled")));
    let words = &seen.run().error.as_ref().unwrap().message;
    assert!(
        words.ends_with("No other provider is configured to go on."),
        "{words}"
    );
    assert_eq!(decisions(&server, &seen).await, ["abort", "fail"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_providers_streams_stall_and_that_is_one_decision_for_all_of_them() {
    let tool = Arc::new(Waiting::default());
    // They would wait for ten minutes before they asked the same provider again.
    let slow = "retry_delays = [600.0, 600.0]\nrotation_delay = 600.0\nrotations = 2";
    let scenarios = vec![stalling("one", 1), stalling("two", 1), waiting_scenario()];
    let server = with_spare(slow, scenarios, Some(&tool)).await;
    let healthy = [
        server.run("waiting", "anthropic").await,
        server.run("waiting", "anthropic").await,
    ];
    for run in &healthy {
        let mut viewer = server.watch(run).await;
        viewer.until(run, |state| waiting_call(state).is_some()).await;
    }
    server.provider.arm("one:0").await;
    server.provider.arm("two:0").await;
    let stalled = [
        server.run("one", "anthropic").await,
        server.run("two", "anthropic").await,
    ];
    for run in &stalled {
        let seen = server.ended(run).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None));
        assert_eq!(providers(&seen), ["anthropic", "spare"]);
        assert_eq!(seen.attempts()[1].reason, AttemptReason::ProviderRotation);
        assert_eq!(notices(&seen, "provider_outage"), 1);
        server.assert_same(&seen).await;
    }
    // A run that begins now is served by the other one at once.
    let later = server.finish("max_tokens", "anthropic").await;
    assert_eq!(providers(&later), ["spare"]);
    assert_eq!(later.attempts()[0].reason, AttemptReason::Initial);
    assert_eq!(notices(&later, "provider_cools_down"), 1);
    // Healthy streams stay where they are, and say what happened.
    for run in &healthy {
        release(&server, run).await;
        let seen = server.ended(run).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None));
        assert_eq!(providers(&seen), ["anthropic"]);
        assert_eq!(notices(&seen, "provider_outage"), 1, "{:?}", seen.notices());
    }
}

fn waiting_call(state: &RunState) -> Option<&protocol::model::Node> {
    let is_waiting = |node: &&protocol::model::Node| {
        node.kind == NodeKind::Function && node.state.status() == NodeStatus::Running
    };
    state.nodes().iter().find(is_waiting)
}

/// Ends the call that waits.
async fn release(server: &TestServer, run: &RunId) {
    let state = RunState::from_snapshot(server.snapshot(run).await);
    let node = waiting_call(&state).unwrap().node_id.clone();
    let answer = server.post(&format!("/api/nodes/{node}/cancel"), json!({})).await;
    assert!(answer.status().is_success(), "{}", answer.status());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_part_of_an_inner_answer_serves_where_a_part_will_do() {
    let long = "A design of many words, one after the other. ".repeat(40);
    let source = |accepts: bool| {
        format!(
            "name = \"asks_{accepts}\"\norder = 900\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"asks_{accepts}\"\n\
             [[turns]]\n[[turns.steps]]\nstep = \"tool_call\"\nname = \"ask_model\"\n\
             arguments = '{{\"prompt\": \"drafts\", \"tools\": [], \"accept_partial\": {accepts}}}'\n\
             [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"So be it.\"\n"
        )
    };
    let drafts = format!(
        "name = \"drafts\"\norder = 901\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"drafts\"\n\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = {long:?}\n[[turns.steps]]\nstep = \"cut\"\n"
    );
    let scenarios = vec![
        scenario("asks_true", &source(true)),
        scenario("asks_false", &source(false)),
        scenario("drafts", &drafts),
    ];
    let server = with_spare("retry_delays = []\nrotations = 0", scenarios, None).await;
    for (prompt, status, call) in [
        ("asks_true", AttemptStatus::Partial, NodeStatus::Succeeded),
        ("asks_false", AttemptStatus::Failed, NodeStatus::Failed),
    ] {
        let seen = server.finish(prompt, "anthropic").await;
        let inner = seen
            .attempts()
            .iter()
            .find(|attempt| attempt.state.status() == status);
        assert!(inner.is_some(), "{prompt}: {:?}", attempts(&seen));
        let node = seen
            .nodes()
            .iter()
            .find(|node| node.kind == NodeKind::Function)
            .unwrap();
        assert_eq!(node.state.status(), call, "{prompt}");
        server.assert_same(&seen).await;
    }
}
