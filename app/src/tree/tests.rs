use leptos::prelude::*;
use protocol::api::SessionSummary;
use protocol::id::NodeId;
use protocol::state::{Channel, NodeKind, NodeStatus};

use super::list::{Branch, Key, List, Query};
use super::step::{Follow, Outcome, step, typed};
use super::{Tree, TreePanel, facts};
use crate::data::clock::PageClock;
use crate::data::expansion::Expansion;
use crate::data::port::{SessionPage, Setup};
use crate::data::run_store::RunStore;
use crate::data::selection::{Selection, Way, above};
use crate::data::session_store::SessionStore;
use crate::fixtures::script::{Script, node};
use crate::shell::keys::Step;

/// `answer` with a read that failed and a program that called twice.
fn script() -> Script {
    let mut script = Script::started();
    script.tool("exec_1", "read_file", 0);
    script.output("exec_1", Channel::Arguments, r#"{"path":"docs/Notes.md"}"#);
    script.fail("exec_1", "There is no such file.");
    script.tool("exec_2", "run_code", 1);
    script.node("exec_3", "exec_2", NodeKind::Function, "list_dir");
    script.output("exec_3", Channel::Arguments, r#"{"path":"acorn"}"#);
    script.node("exec_4", "exec_2", NodeKind::Function, "read_file");
    script.node_status("exec_3", NodeStatus::Cancelled);
    script
}

fn runs(script: &Script) -> Vec<RunStore> {
    vec![RunStore::new(script.state())]
}

fn key(id: &str) -> Key {
    match id.starts_with("run_") {
        true => Key::Run(id.parse().unwrap()),
        false => Key::Node(node(id)),
    }
}

fn names(list: &List) -> Vec<&str> {
    list.items().iter().map(|item| item.key.as_str()).collect()
}

fn all(script: &Script) -> List {
    List::opened(&runs(script), &|_| true)
}

/// A session of one run.
fn session(script: &Script) -> SessionStore {
    let snapshot = script.state().to_snapshot();
    let summary: SessionSummary = serde_json::from_value(serde_json::json!({
        "session_id": "ses_1", "kind": "chat", "title": "Why?", "created_at": 0, "updated_at": 0,
        "runs": [{"run_id": "run_1", "status": "running", "prompt": "Why?", "provider": "demo", "model": "demo-large",
            "created_at": 0, "last_seq": 1}],
    }))
    .unwrap();
    SessionStore::new(&SessionPage {
        summary,
        snapshots: vec![snapshot],
        place: None,
        found: None,
        replay: None,
        setup: Setup::default(),
    })
}

fn selected(id: Option<&str>, session: SessionStore) -> Selection {
    let id = id.map(node);
    let above = id
        .as_ref()
        .and_then(|id| session.run_of(id).map(|run| run.peek(|state| above(state, id))))
        .unwrap_or_default();
    Selection::new(Signal::stored(id), Signal::stored(above), Callback::new(|_| {}))
}

/// The panel as the server renders it, with a selected node.
fn panel(script: &Script, id: Option<&str>) -> String {
    let owner = Owner::new();
    owner.with(|| {
        provide_context(PageClock::starting_at(100_000));
        provide_context(Expansion::default());
        let session = session(script);
        provide_context(selected(id, session));
        view! { <TreePanel session/> }.to_html()
    })
}

/// The opening tag of an item.
fn tag<'a>(html: &'a str, id: &str) -> &'a str {
    let place = html
        .find(&format!("data-tree-node=\"{id}\""))
        .unwrap_or_else(|| panic!("no {id} in {html}"));
    let start = html[..place].rfind('<').unwrap();
    &html[start..place + html[place..].find('>').unwrap()]
}

#[test]
fn items_follow_each_other_as_they_are_seen_with_their_levels_and_places() {
    let list = all(&script());
    assert_eq!(
        names(&list),
        ["run_1", "call_1", "exec_1", "exec_2", "exec_3", "exec_4"]
    );
    let told: Vec<_> = list
        .items()
        .iter()
        .map(|item| (item.level, item.place, item.count))
        .collect();
    assert_eq!(
        told,
        [(1, 1, 1), (2, 1, 1), (3, 1, 2), (3, 2, 2), (4, 1, 2), (4, 2, 2)]
    );
    let parents: Vec<_> = list.items().iter().map(|item| item.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), Some(1), Some(3), Some(3)]);
}

#[test]
fn what_lies_within_a_closed_item_is_not_listed() {
    let closed = key("exec_2");
    let list = List::opened(&runs(&script()), &|key| *key != closed);
    assert_eq!(names(&list), ["run_1", "call_1", "exec_1", "exec_2"]);
    let branches: Vec<_> = list.items().iter().map(|item| item.branch).collect();
    assert_eq!(
        branches,
        [Branch::Open, Branch::Open, Branch::Leaf, Branch::Closed]
    );
}

#[test]
fn a_search_leaves_what_matches_by_name_detail_or_state_and_the_way_to_it() {
    let runs = runs(&script());
    let found = |text: &str| {
        let list = List::matching(&runs, &Query::of(text).unwrap());
        let ways: Vec<_> = list
            .items()
            .iter()
            .filter(|item| item.is_way)
            .map(|item| item.key.as_str().to_owned())
            .collect();
        let names: Vec<_> = names(&list).into_iter().map(str::to_owned).collect();
        (names, ways, list.hits())
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        found("LIST_dir"),
        (
            texts(&["run_1", "call_1", "exec_2", "exec_3"]),
            texts(&["run_1", "call_1", "exec_2"]),
            Some(1)
        )
    );
    assert_eq!(found("acorn cancelled").2, Some(1));
    assert_eq!(found("no such file").0, texts(&["run_1", "call_1", "exec_1"]));
    assert_eq!(found("demo-large").2, Some(1));
    assert_eq!(found("why?"), (texts(&["run_1"]), Vec::new(), Some(1)));
    assert_eq!(found("quokka"), (Vec::new(), Vec::new(), Some(0)));
    assert_eq!(Query::of("  "), None);
}

#[test]
fn the_places_of_what_was_found_are_counted_anew() {
    let list = List::matching(&runs(&script()), &Query::of("read_file").unwrap());
    assert_eq!(names(&list), ["run_1", "call_1", "exec_1", "exec_2", "exec_4"]);
    let last = list.items().last().unwrap();
    assert_eq!((last.place, last.count), (1, 1));
}

#[test]
fn keys_move_as_in_any_tree() {
    let list = all(&script());
    let to = |id: &str| Outcome::To(key(id));
    let from = |id: &str, action| step(&list, &key(id), action);
    assert_eq!(from("run_1", Step::Previous), Outcome::Nothing);
    assert_eq!(from("run_1", Step::Next), to("call_1"));
    assert_eq!(from("exec_4", Step::Next), Outcome::Nothing);
    assert_eq!(from("exec_3", Step::First), to("run_1"));
    assert_eq!(from("run_1", Step::Last), to("exec_4"));
    assert_eq!(from("exec_2", Step::In), to("exec_3"));
    assert_eq!(from("exec_3", Step::In), Outcome::Nothing);
    assert_eq!(from("exec_3", Step::Out), to("exec_2"));
    assert_eq!(from("exec_2", Step::Out), Outcome::Turn(key("exec_2"), false));
    assert_eq!(
        from("run_1", Step::Select),
        Outcome::Choose(key("run_1"), Follow::Stays)
    );
    assert_eq!(
        from("exec_1", Step::Go),
        Outcome::Choose(key("exec_1"), Follow::Goes)
    );
    assert_eq!(from("exec_gone", Step::Next), to("run_1"));
}

#[test]
fn a_closed_item_opens_before_it_is_gone_into_and_the_star_opens_all_beside_it() {
    let runs = runs(&script());
    let closed = List::opened(&runs, &|key| key.as_str() != "exec_2");
    assert_eq!(
        step(&closed, &key("exec_2"), Step::In),
        Outcome::Turn(key("exec_2"), true)
    );
    assert_eq!(
        step(&closed, &key("exec_1"), Step::All),
        Outcome::OpenAll(vec![key("exec_2")])
    );
    let found = List::matching(&runs, &Query::of("list_dir").unwrap());
    assert_eq!(
        step(&found, &key("exec_2"), Step::Out),
        Outcome::To(key("call_1"))
    );
}

#[test]
fn letters_go_to_the_next_name_that_begins_with_them() {
    let script = script();
    let list = all(&script);
    let state = script.state();
    let name = |key: &Key| match key {
        Key::Run(_) => facts::of_run(&state, 1).name,
        Key::Node(id) => state.node(id).unwrap().name.clone(),
    };
    let next =
        |from: &str, text: &str| typed(&list, &key(from), text, name).map(|key| key.as_str().to_owned());
    assert_eq!(next("call_1", "r").as_deref(), Some("exec_1"));
    assert_eq!(next("exec_1", "r").as_deref(), Some("exec_2"));
    assert_eq!(next("exec_2", "rr").as_deref(), Some("exec_4"));
    assert_eq!(next("exec_4", "r").as_deref(), Some("run_1"));
    assert_eq!(next("exec_1", "read").as_deref(), Some("exec_1"));
    assert_eq!(next("run_1", "LIST").as_deref(), Some("exec_3"));
    assert_eq!(next("run_1", "x"), None);
}

#[test]
fn the_server_renders_a_tree_of_links_with_one_of_them_in_the_way_of_tab() {
    let html = panel(&script(), None);
    assert_eq!(html.matches("role=\"tree\"").count(), 1);
    assert_eq!(html.matches("role=\"treeitem\"").count(), 6);
    assert_eq!(html.matches("tabindex=\"0\"").count(), 1, "{html}");
    let first = tag(&html, "run_1");
    assert!(
        first.contains("tabindex=\"0\"") && first.contains("href=\"#run_1\""),
        "{first}"
    );
    let program = tag(&html, "exec_2");
    for part in [
        "href=\"?node=exec_2\"",
        " aria-level=\"3\"",
        "aria-posinset=\"2\"",
        "aria-setsize=\"2\"",
        "aria-expanded=\"true\"",
        "tabindex=\"-1\"",
    ] {
        assert!(program.contains(part), "{part} in {program}");
    }
    let leaf = tag(&html, "exec_3");
    assert!(
        !leaf.contains("aria-expanded") && leaf.contains("data-state=\"cancelled\""),
        "{leaf}"
    );
}

#[test]
fn the_selected_node_is_marked_with_what_it_lies_within_and_tab_leads_to_it() {
    let html = panel(&script(), Some("exec_3"));
    let current = tag(&html, "exec_3");
    assert!(
        current.contains("aria-current=\"true\"") && current.contains("tabindex=\"0\""),
        "{current}"
    );
    assert_eq!(html.matches("aria-current").count(), 1);
    for id in ["call_1", "exec_2"] {
        assert!(tag(&html, id).contains("tree__item--within"), "{id}");
    }
    assert!(!tag(&html, "exec_1").contains("tree__item--within"));
}

#[test]
fn the_foot_counts_every_way_to_end() {
    let mut script = Script::started();
    for (place, status) in NodeStatus::ALL.iter().enumerate() {
        let id = format!("exec_{place}");
        script.tool(&id, "read_file", u32::try_from(place).unwrap());
        if *status != NodeStatus::Pending {
            script.node_status(&id, *status);
        }
    }
    let html = panel(&script, None);
    let foot = &html[html.find("side__foot").unwrap()..];
    for status in NodeStatus::ALL {
        let word = crate::content::words::node_state(*status).word();
        assert!(
            foot.contains(&format!("1 {word}")) || foot.contains(&format!("2 {word}")),
            "{word} in {foot}"
        );
    }
}

#[test]
fn of_thousands_of_nodes_a_few_are_in_the_page_and_the_selected_one_is_among_them() {
    let mut script = Script::started();
    for place in 0..2_000_u32 {
        script.node(
            &format!("exec_{place}"),
            "call_1",
            NodeKind::Function,
            "read_file",
        );
    }
    let html = panel(&script, None);
    assert_eq!(html.matches("role=\"treeitem\"").count(), 120);
    assert!(html.contains("1,882 more"), "what is left out is said");
    let html = panel(&script, Some("exec_1500"));
    assert_eq!(html.matches("role=\"treeitem\"").count(), 120);
    let current = tag(&html, "exec_1500");
    assert!(
        current.contains("aria-posinset=\"1501\"") && current.contains("aria-setsize=\"2000\""),
        "{current}"
    );
}

#[test]
fn locating_a_node_opens_what_lies_above_it() {
    let owner = Owner::new();
    owner.with(|| {
        provide_context(Expansion::default());
        let session = session(&script());
        let tree = Tree::new(session, selected(None, session));
        for id in ["run_1", "exec_2"] {
            tree.open(&key(id)).toggle();
        }
        let is_listed = |id: &str| tree.list.with(|list| list.place(&key(id)).is_some());
        assert!(!is_listed("exec_3"));
        assert!(tree.open_path(&node("exec_3")).is_some());
        assert!(is_listed("exec_3"));
        assert!(tree.open_path(&node("exec_gone")).is_none());
    });
}

#[test]
fn the_way_to_a_row_opens_run_model_and_call_and_leads_through_their_blocks() {
    let mut script = script();
    script.node("call_9", "exec_1", NodeKind::Model, "reviewer");
    script.node("exec_9", "call_9", NodeKind::Function, "grep");
    let way = Way::to(&script.state(), &node("exec_9"));
    let path: Vec<&str> = way.path.iter().map(NodeId::as_str).collect();
    assert_eq!(path, ["exec_9", "call_9", "exec_1", "call_1", "root_1"]);
    assert_eq!(way.open, ["run_1", "call_9", "call_1/att_1/blk_exec_1", "call_1"]);
    assert_eq!(way.index_in(&"att_1".parse().unwrap()), Some(0));
    assert_eq!(way.index_in(&"att_2".parse().unwrap()), None);
    assert_eq!(way.models, 2);
    // The row of the last call is not here: the block in which it stands may be left out.
    assert!(!way.is_whole);
    assert!(Way::to(&script.state(), &node("exec_3")).is_whole);
}

#[test]
fn the_way_to_what_stands_within_opens_the_row_too_and_unfolds_an_older_attempt() {
    let script = script();
    let within = Way::within(&script.state(), &node("exec_3"));
    assert_eq!(within.open[..2], ["run_1", "exec_3"]);
    let call = Way::to_block(&script.state(), &"blk_exec_1".parse().unwrap()).unwrap();
    assert!(call.open.contains(&"call_1/att_1/blk_exec_1".to_owned()));
    let mut later = script;
    later.attempt("att_2", 1, protocol::state::AttemptReason::ErrorRetry, "demo");
    let older = Way::to_block(&later.state(), &"blk_exec_1".parse().unwrap()).unwrap();
    assert!(older.open.contains(&"att_1".to_owned()));
    assert_eq!(older.index_in(&"att_1".parse().unwrap()), Some(0));
    assert!(Way::to_block(&later.state(), &"blk_none".parse().unwrap()).is_none());
}
