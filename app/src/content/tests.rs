//! Components rendered to HTML, from the ops that a run really consists of.

mod chip;
mod going_on;
mod views;

use leptos::prelude::*;
use protocol::model::{BlockBody, Content, ErrorInfo, ToolRef};
use protocol::op::Op;
use protocol::state::{
    AttemptReason, AttemptStatus, BlockStatus, Channel, NodeKind, NodeStatus, Retention, RunStatus,
};

use super::run_view::RunView;
use crate::data::clock::PageClock;
use crate::data::expansion::Expansion;
use crate::data::run_store::RunStore;
use crate::details::NodeDetails;
use crate::fixtures::script::{Script, node};
use crate::ui::StateKind;

/// The run as its session's page shows it.
fn page(script: &Script) -> String {
    let owner = Owner::new();
    owner.with(|| {
        let clock = PageClock::starting_at(100_000);
        provide_context(clock);
        provide_context(Expansion::default());
        let run = RunStore::new(script.state());
        view! { <RunView run number=Signal::stored(1) folded=false/> }.to_html()
    })
}

/// One node as the details panel shows it.
fn details(script: &Script, name: &str) -> String {
    let owner = Owner::new();
    owner.with(|| {
        provide_context(PageClock::starting_at(100_000));
        let run = RunStore::new(script.state());
        view! { <NodeDetails run node_id=node(name)/> }.to_html()
    })
}

/// What is read, without tags.
fn words(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for character in html.chars() {
        match character {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            other if !is_tag => text.push(other),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The opening tag of the first element that has an attribute.
fn tag<'a>(html: &'a str, attribute: &str) -> &'a str {
    let place = html
        .find(attribute)
        .unwrap_or_else(|| panic!("no {attribute} in {html}"));
    let start = html[..place].rfind('<').unwrap();
    let end = html[place..].find('>').unwrap();
    &html[start..place + end]
}

#[test]
fn every_state_of_a_node_has_its_word_and_its_mark() {
    for status in NodeStatus::ALL {
        let mut script = Script::started();
        script.tool("exec_1", "read_file", 0);
        script.output("exec_1", Channel::Arguments, r#"{"path":"a.rs"}"#);
        if *status != NodeStatus::Pending {
            script.node_status("exec_1", *status);
        }
        let html = page(&script);
        let state = super::words::node_state(*status);
        assert!(
            tag(&html, "data-node-id=\"exec_1\"").contains(&format!("data-state=\"{status}\"")),
            "{html}"
        );
        let mark = format!("state state--{}", state.class());
        assert!(
            html.contains(&mark) && html.contains(state.icon().href()),
            "{status}: {html}"
        );
        assert!(
            words(&html).contains(&format!("read_file a.rs {}", state.word())),
            "{status}: {}",
            words(&html)
        );
    }
}

#[test]
fn a_reference_whose_node_has_not_come_is_a_pending_row_with_its_place_and_name() {
    let mut script = Script::started();
    script.tool_ref("blk_1", "exec_gone", "search_files", 0);
    let html = page(&script);
    let row = tag(&html, "data-block-id=\"blk_1\"");
    assert!(
        row.contains("data-state=\"pending\"") && row.contains("data-node-id=\"exec_gone\""),
        "{row}"
    );
    assert!(words(&html).contains("search_files pending"), "{}", words(&html));
}

#[test]
fn a_reference_whose_node_never_came_is_unresolved_once_the_run_is_over() {
    let mut script = Script::started();
    script.tool_ref("blk_1", "exec_gone", "search_files", 0);
    script.run_status(RunStatus::Interrupted);
    let html = page(&script);
    assert!(
        tag(&html, "data-block-id=\"blk_1\"").contains("data-state=\"unresolved\""),
        "{html}"
    );
    assert!(
        words(&html).contains("no stored node for tool call call_blk_1 unresolved unknown"),
        "{}",
        words(&html)
    );
}

#[test]
fn a_row_is_the_same_element_from_placeholder_to_end() {
    let mut script = Script::started();
    script.tool_ref("blk_1", "exec_1", "read_file", 0);
    let shape = |html: &str| -> Vec<String> {
        let row = &html[html.find(tag(html, "data-block-id=\"blk_1\"")).unwrap()..];
        let row = &row[..row.find("</button>").unwrap()];
        row.split('<')
            .skip(1)
            .map(|tag| tag.split([' ', '>']).next().unwrap().to_owned())
            .collect()
    };
    let placeholder = shape(&page(&script));
    script.node("exec_1", "call_1", NodeKind::Function, "read_file");
    script.output("exec_1", Channel::Arguments, r#"{"path":"a.rs"}"#);
    assert_eq!(shape(&page(&script)), placeholder);
    script.node_status("exec_1", NodeStatus::Running);
    assert_eq!(shape(&page(&script)), placeholder);
    script.node_status("exec_1", NodeStatus::Succeeded);
    assert_eq!(shape(&page(&script)), placeholder);
}

#[test]
fn a_failed_row_says_the_first_line_of_its_error() {
    let mut script = Script::started();
    script.tool("exec_1", "read_file", 0);
    script.output("exec_1", Channel::Arguments, r#"{"path":"a.rs"}"#);
    script.fail("exec_1", "There is no file a.rs.\nLook elsewhere.");
    let html = page(&script);
    assert!(html.contains("class=\"row__sum row__sum--err\""), "{html}");
    assert!(
        words(&html).contains("read_file There is no file a.rs. failed"),
        "{}",
        words(&html)
    );

    let html = words(&details(&script, "exec_1"));
    assert!(
        html.contains("Error no_such_file There is no file a.rs. Look elsewhere."),
        "{html}"
    );
    assert!(html.contains(r#"Arguments 15 B {"path":"a.rs"}"#), "{html}");
    assert!(
        html.contains("No return value: the call ended with an error."),
        "{html}"
    );
}

#[test]
fn arguments_that_still_stream_already_summarise_the_call() {
    let mut script = Script::started();
    script.tool("exec_1", "read_file", 0);
    script.output("exec_1", Channel::Arguments, r#"{"path": "src/li"#);
    assert!(
        words(&page(&script)).contains("read_file src/li pending"),
        "{}",
        words(&page(&script))
    );
}

#[test]
fn a_call_that_gave_nothing_back_says_so() {
    let mut script = Script::started();
    script.tool("exec_1", "list_dir", 0);
    script.node_status("exec_1", NodeStatus::Succeeded);
    let html = words(&details(&script, "exec_1"));
    assert!(
        html.contains("No return value: the call ended well and gave nothing back."),
        "{html}"
    );
}

#[test]
fn blocks_stand_in_the_order_of_their_index_however_they_came() {
    let mut script = Script::started();
    script.text("blk_2", 2, "third");
    script.text("blk_0", 0, "first");
    script.tool_ref("blk_1", "exec_1", "read_file", 1);
    let html = page(&script);
    let places =
        ["blk_0", "blk_1", "blk_2"].map(|block| html.find(&format!("data-block-id=\"{block}\"")).unwrap());
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_second_attempt_stands_below_a_boundary_and_the_first_is_folded() {
    let mut script = Script::started();
    script.text("blk_0", 0, "half a sen");
    script.finish_block("blk_0", BlockStatus::Cut, "half a sen");
    script.finish_attempt("att_1", AttemptStatus::Stalled, None);
    script.attempt("att_2", 1, AttemptReason::ProviderRotation, "other");
    script.text_of("att_2", "blk_9", 0, "a whole sentence");
    let html = page(&script);
    let boundary = html.find("data-boundary").unwrap();
    let folded = html.find("data-attempt-id=\"att_1\"").unwrap();
    let content = html.find("data-block-id=\"blk_9\"").unwrap();
    assert!(folded < boundary && boundary < content, "{html}");
    assert!(
        !html.contains("data-block-id=\"blk_0\""),
        "the older attempt is folded"
    );
    let text = words(&html);
    assert!(
        text.contains("Attempt 1 “half a sen” 1 block · ended early stalled"),
        "{text}"
    );
    assert!(
        text.contains("Attempt 2 other moved to another provider"),
        "{text}"
    );
}

#[test]
fn what_others_wrote_is_text_and_never_markup() {
    let hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\"'&\u{0}\u{1b}[31m";
    let mut script = Script::with_prompt(hostile);
    script.text("blk_0", 0, hostile);
    script.block(
        "blk_1",
        1,
        BlockBody::Reasoning {
            content: Content::default(),
            retention: Retention::Saved,
        },
    );
    script.delta("blk_1", hostile);
    script.tool("exec_1", hostile, 2);
    script.output(
        "exec_1",
        Channel::Arguments,
        &serde_json::json!({ "path": hostile }).to_string(),
    );
    script.output("exec_1", Channel::Result, hostile);
    script.fail("exec_1", hostile);
    script.notice("provider_mismatch", hostile);
    for html in [page(&script), details(&script, "exec_1")] {
        for forbidden in ["<img", "<script", "</script", "style="] {
            assert!(!html.contains(forbidden), "{forbidden}: {html}");
        }
        assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;"), "{html}");
    }
    let html = details(&script, "exec_1");
    let hidden = html.find(['\u{0}', '\u{1b}']);
    assert_eq!(
        hidden.map(|place| html[..place].chars().rev().take(200).collect::<String>()),
        None,
        "symbols in their place"
    );
}

#[test]
fn a_group_that_is_declared_later_keeps_its_rows_and_counts_their_states() {
    let mut script = Script::started();
    script.tool("exec_1", "read_file", 0);
    script.tool("exec_2", "list_dir", 1);
    let before = page(&script);
    assert!(!before.contains("in parallel"));
    script.group("par_1", 2, &["blk_exec_1", "blk_exec_2"]);
    script.node_status("exec_2", NodeStatus::Succeeded);
    script.node_status("exec_1", NodeStatus::Running);
    let html = page(&script);
    assert!(
        tag(&html, "data-group-id=\"par_1\"").contains("aria-label=\"Parallel group of 2\""),
        "{html}"
    );
    let text = words(&html);
    assert!(
        text.contains("2 in parallel") && text.contains("1 done") && text.contains("1 running"),
        "{text}"
    );
    assert!(
        html.find("data-node-id=\"exec_1\"") < html.find("data-node-id=\"exec_2\""),
        "in the order of the calls"
    );
}

#[test]
fn sub_calls_of_a_program_are_always_visible_under_it() {
    let mut script = Script::started();
    script.tool_of_kind("exec_1", "run_code", 0, NodeKind::Code);
    script.output(
        "exec_1",
        Channel::Arguments,
        r#"{"description":"Count callers","code":"1"}"#,
    );
    script.node("exec_2", "exec_1", NodeKind::Function, "search_files");
    let html = page(&script);
    assert!(
        tag(&html, "data-node-id=\"exec_2\"").contains("row--search"),
        "{html}"
    );
    assert!(
        words(&html).contains("Code Count callers 1 call pending"),
        "{}",
        words(&html)
    );
}

#[test]
fn an_inner_model_call_is_the_same_content_when_its_function_is_the_root_of_the_details() {
    let mut script = Script::started();
    script.tool("exec_1", "ask_model", 0);
    script.node("call_2", "exec_1", NodeKind::Model, "reviewer");
    script.attempt_of("call_2", "att_inner", 0, AttemptReason::Initial, "demo");
    script.text_of_node("call_2", "att_inner", "blk_inner", 0, "looks **right**");
    script.finish_block("blk_inner", BlockStatus::Complete, "looks **right**");
    assert!(
        words(&page(&script)).contains("1 model call"),
        "{}",
        words(&page(&script))
    );
    let html = details(&script, "exec_1");
    assert!(
        html.contains("data-block-id=\"blk_inner\"") && html.contains("<strong>right</strong>"),
        "{html}"
    );
}

#[test]
fn cut_text_reasoning_that_was_not_saved_and_unknown_kinds_are_honest_gaps() {
    let mut script = Script::started();
    script.text("blk_0", 0, "half a");
    script.finish_block("blk_0", BlockStatus::Cut, "half a");
    script.block(
        "blk_1",
        1,
        BlockBody::Reasoning {
            content: Content::default(),
            retention: Retention::NotSaved,
        },
    );
    script.finish_block("blk_1", BlockStatus::Complete, "");
    script.block(
        "blk_2",
        2,
        BlockBody::Unsupported {
            raw_kind: "audio".to_owned(),
            bytes: 96,
        },
    );
    script.block("blk_3", 3, BlockBody::Refusal(Content::default()));
    script.delta("blk_3", "I cannot.");
    let text = words(&page(&script));
    for expected in [
        "Cut. The stream ended before the text did; what came is above. 6 B kept",
        "This content was not saved. Reasoning of this run was shown live only.",
        "Unsupported block kind “audio”. Kept in the record as it came. 96 B",
        "The model declined. “ I cannot. ”",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn reasoning_shows_its_newest_line_live_and_its_first_line_done() {
    let mut script = Script::started();
    script.block(
        "blk_0",
        0,
        BlockBody::Reasoning {
            content: Content::default(),
            retention: Retention::Saved,
        },
    );
    script.delta("blk_0", "One.\nTwo.\n");
    assert!(
        words(&page(&script)).contains("Reasoning: Two."),
        "{}",
        words(&page(&script))
    );
    script.finish_block("blk_0", BlockStatus::Complete, "One.\nTwo.\n");
    assert!(
        words(&page(&script)).contains("Reasoning: One."),
        "{}",
        words(&page(&script))
    );
}

#[test]
fn a_run_says_how_it_ended_and_what_it_waits_for() {
    let ends = [
        (
            RunStatus::Queued,
            "Queued. It begins when the run before it is over.",
        ),
        (RunStatus::Waiting, "Needs you. The run waits for an answer."),
        (RunStatus::Failed, "The run failed. No reason was recorded."),
        (
            RunStatus::Cancelled,
            "Cancelled. A person stopped this run; what came is kept.",
        ),
        (
            RunStatus::Interrupted,
            "Interrupted. The owner of this run went away; what came is kept.",
        ),
    ];
    for (status, expected) in ends {
        let mut script = Script::started();
        script.run_status(status);
        let text = words(&page(&script));
        assert!(text.contains(expected), "{status}: {text}");
    }
}

#[test]
fn what_the_last_attempt_says_of_the_end_is_not_said_again_for_the_run() {
    for (attempt, run, said) in [
        (AttemptStatus::Cancelled, RunStatus::Cancelled, "A person stopped"),
        (AttemptStatus::Interrupted, RunStatus::Interrupted, "went away"),
    ] {
        let mut script = Script::started();
        script.finish_attempt("att_1", attempt, None);
        script.run_status(run);
        let text = words(&page(&script));
        assert_eq!(text.matches(said).count(), 1, "{text}");
    }
}

#[test]
fn every_state_of_an_attempt_has_its_word() {
    for status in AttemptStatus::ALL
        .iter()
        .filter(|status| **status != AttemptStatus::Running)
    {
        let mut script = Script::started();
        script.finish_attempt("att_1", *status, Some(ErrorInfo::new("code_x", "Why it ended.")));
        script.attempt("att_2", 1, AttemptReason::ErrorRetry, "demo");
        let text = words(&page(&script));
        let word = super::words::attempt_state(*status).word();
        assert!(text.contains(&format!("{word} after")), "{status}: {text}");
    }
    assert!(StateKind::ALL.len() >= NodeStatus::ALL.len());
}

#[test]
fn a_final_run_carries_the_digest_of_what_it_shows() {
    let mut script = Script::started();
    script.text("blk_0", 0, "done");
    assert!(!page(&script).contains("data-digest"), "only when it is over");
    script.run_status(RunStatus::Succeeded);
    let html = page(&script);
    let digest = protocol::digest::digest(&script.state());
    assert!(
        tag(&html, "data-run-id").contains(&format!("data-digest=\"{digest}\"")),
        "{html}"
    );
    assert!(tag(&html, "data-run-id").contains(&format!("data-seq=\"{}\"", script.state().seq())));
}

#[test]
fn every_row_is_reached_by_a_link_without_script() {
    let mut script = Script::started();
    script.tool("exec_1", "read_file", 0);
    assert!(page(&script).contains("href=\"?node=exec_1\""));
}

#[test]
fn unknown_ops_are_kept_and_said() {
    let mut script = Script::started();
    script.push(Op::Unknown(
        serde_json::from_str(r#"{"op":"node_sang"}"#).unwrap(),
    ));
    let text = words(&page(&script));
    assert!(
        text.contains("Not known to this version. 1 op kept in the record"),
        "{text}"
    );
}

#[test]
fn the_same_call_twice_is_one_row() {
    let mut script = Script::started();
    script.tool_ref("blk_0", "exec_1", "read_file", 0);
    let reference = ToolRef {
        tool_call_id: "call_again".to_owned(),
        occurrence_id: "occ_blk_0".parse().unwrap(),
        ref_node_id: Some(node("exec_1")),
        tool_name: "read_file".to_owned(),
        group_id: None,
    };
    script.block("blk_1", 1, BlockBody::ToolRef(reference));
    let html = page(&script);
    assert_eq!(html.matches("data-block-kind=\"tool_ref\"").count(), 1, "{html}");
}
