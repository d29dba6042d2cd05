//! The list of sessions at size: searched, filtered, and read page by page.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use protocol::api::SessionList;
use protocol::state::RunStatus;
use server::store::Store;

use crate::harness::TestServer;

const SESSIONS: i64 = 10_000;

/// The longest that a page of the list may take.
const LONGEST: Duration = Duration::from_secs(1);

/// Sessions with a run, a message and an answer each: some failed, a few with words of their own.
async fn fill(store: &Store) {
    for statement in [
        "insert into sessions (session_id, title, kind, created_at, updated_at)
         select 'ses_' || n, 'Session number ' || n, 'chat', n, n from generate_series(1, 10000) n",
        "insert into runs (run_id, session_id, ordinal, status, prompt_start, provider, model, created_at)
         select 'run_' || n, 'ses_' || n, 0, case when n % 100 = 0 then 'failed' else 'succeeded' end,
             'Prompt ' || n || case when n % 2500 = 0 then ' about 100% of_it' else '' end, 'p', 'm', n
         from generate_series(1, 10000) n",
        "insert into words (run_id, subject, part, words)
         select 'run_' || n, 'blk_' || n || '_' || b, 0, to_tsvector('simple',
             'an answer of many usual words ' || n || case when n = 4321 and b = 3 then ' with a peculiar chrysalis' else '' end)
         from generate_series(1, 10000) n, generate_series(1, 5) b",
        "analyze",
    ] {
        sqlx::query(statement).execute(store.pool()).await.unwrap();
    }
}

async fn list(server: &TestServer, query: &str) -> SessionList {
    let begin = Instant::now();
    let list = serde_json::from_str(&server.text(&format!("/api/sessions{query}")).await).unwrap();
    assert!(begin.elapsed() < LONGEST, "{query} took {:?}", begin.elapsed());
    list
}

fn titles(list: &SessionList) -> Vec<&str> {
    list.sessions
        .iter()
        .map(|session| session.title.as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_sessions_are_listed_searched_and_filtered_page_by_page() {
    let server = TestServer::start().await;
    let store = server.execution.store();
    fill(store).await;
    let mut seen = HashSet::new();
    let mut query = String::new();
    let mut last = String::from("ses_999999");
    loop {
        let page = list(&server, &query).await;
        for session in &page.sessions {
            assert!(
                seen.insert(session.session_id.clone()),
                "{} came twice",
                session.session_id
            );
        }
        assert_ne!(page.sessions.last().unwrap().session_id.as_str(), last);
        page.sessions
            .last()
            .unwrap()
            .session_id
            .as_str()
            .clone_into(&mut last);
        match page.next {
            Some(next) => query = format!("?before={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len() as i64, SESSIONS);

    assert_eq!(
        titles(&list(&server, "?query=number%204321").await),
        ["Session number 4321"]
    );
    // Signs of the database's patterns are letters.
    assert_eq!(list(&server, "?query=100%25%20of_it").await.sessions.len(), 4);
    assert_eq!(list(&server, "?query=100%25%20ofXit").await.sessions.len(), 0);
    // What models said is found by its words, whole or begun.
    for words in ["chrysalis", "Peculiar%20chrys"] {
        assert_eq!(
            titles(&list(&server, &format!("?query={words}")).await),
            ["Session number 4321"],
            "{words}"
        );
    }
    assert_eq!(list(&server, "?query=usual%20words").await.sessions.len(), 50);
    assert_eq!(list(&server, "?query=nowhere").await.sessions.len(), 0);
    let failed = list(&server, "?status=failed").await;
    assert!(
        failed
            .sessions
            .iter()
            .all(|session| session.runs[0].status == RunStatus::Failed)
    );
    assert_eq!((failed.sessions.len(), failed.next.is_some()), (50, true));
    assert_eq!(list(&server, "?status=live").await.sessions.len(), 0);
    let both = list(&server, "?status=failed&query=number%20200").await;
    assert_eq!(titles(&both), ["Session number 2000", "Session number 200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_found_in_the_list_and_what_is_not_saved_is_not() {
    let server = TestServer::start().await;
    let seen = server.finish("Show me what Runloom does", "anthropic").await;
    let session = server.snapshot(&seen.run().run_id).await.run.session_id;
    // Of its text, of its reasoning, of its prompt.
    for words in ["came+out", "first+time", "runloom+does"] {
        let found = list(&server, &format!("?query={words}")).await;
        let ids: Vec<_> = found
            .sessions
            .iter()
            .map(|session| session.session_id.clone())
            .collect();
        assert_eq!(ids, std::slice::from_ref(&session), "{words}");
    }
    let answer = server
        .post(
            "/api/sessions",
            serde_json::json!({"settings": {"reasoning": "not_saved"}}),
        )
        .await;
    let other: serde_json::Value = answer.json().await.unwrap();
    let other = other["session_id"].as_str().unwrap().parse().unwrap();
    let run = server
        .submit(&other, "Show me what Runloom does", "anthropic")
        .await;
    server.ended(&run).await;
    assert_eq!(list(&server, "?query=came+out").await.sessions.len(), 2);
    assert_eq!(list(&server, "?query=first+time").await.sessions.len(), 1);
}
