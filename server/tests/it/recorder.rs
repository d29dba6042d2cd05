//! The recorder alone, over a real database: what is committed, what is published, and who may write.

use std::sync::Arc;

use futures::FutureExt as _;
use protocol::Extra;
use protocol::fold::{Applied, RunState};
use protocol::id::{MessageId, NodeId, RunId, SessionId};
use protocol::op::{Entry, MessageAdded, NodeOutput, NodeStarted, Op, RunUpdated};
use protocol::state::{Channel, Executor, MessageRole, NodeKind, RunStatus};
use serde_json::{Value, json};
use server::clock::SystemClock;
use server::run::hub::{Delivery, Hub, Subscription};
use server::run::recorder::{RecordError, Recorder, RunWriter};
use server::store::batch::RunBatch;
use server::store::runs::{NewRun, RunCreation};
use server::store::test_support::TestDatabase;
use server::store::{Store, journal};
use sqlx::postgres::PgConnectOptions;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::harness::PATIENCE;

/// One owner of runs.
pub(crate) struct Owner {
    pub(crate) name: &'static str,
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    pub(crate) recorder: Recorder,
}

impl Owner {
    pub(crate) async fn new(name: &'static str, options: PgConnectOptions) -> Self {
        let store = Store::open(options).await.unwrap();
        let hub = Arc::new(Hub::default());
        let clock = Arc::new(SystemClock);
        let recorder = Recorder::start(store.clone(), Arc::clone(&hub), clock, &TaskTracker::new());
        Self {
            name,
            store,
            hub,
            recorder,
        }
    }

    /// Queues a run.
    pub(crate) async fn queue(&self) -> RunId {
        let (run, session) = (
            RunId::from_uuid(Uuid::now_v7()),
            SessionId::from_uuid(Uuid::now_v7()),
        );
        self.store
            .create_session(
                &session,
                "",
                protocol::api::SessionKind::Chat,
                &protocol::api::SessionSettings::default(),
                1,
            )
            .await
            .unwrap();
        let added = Op::MessageAdded(MessageAdded {
            message_id: MessageId::from_uuid(Uuid::now_v7()),
            role: MessageRole::User,
            text: "a prompt".to_owned(),
            extra: Extra::new(),
        });
        let mut state = RunState::new(run.clone(), session);
        let entry = Entry {
            run_id: run.clone(),
            generation: 0,
            seq: 1,
            at: 1,
            op: added,
        };
        let Applied::Changed(changes) = state.apply(&entry).unwrap() else {
            panic!("refused")
        };
        let new = NewRun {
            prompt_start: "a prompt".to_owned(),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            on_interruption: protocol::api::InterruptionPolicy::Leave,
            tool_mode: protocol::api::ToolMode::Both,
            idempotency_key: None,
            created_at: 1,
        };
        let batch = RunBatch {
            state: &state,
            previous_seq: 0,
            steps: &[(entry, changes)],
        };
        assert_eq!(
            self.store.create_run(&new, &batch).await.unwrap(),
            RunCreation::Created
        );
        run
    }

    /// Takes a run that waits and begins to write it.
    pub(crate) async fn begin(&self) -> (RunWriter, Subscription) {
        let claim = self.store.claim_queued(self.name).await.unwrap().unwrap();
        let writer = self.writer(&claim.run_id).await;
        let subscription = self.hub.channel(&claim.run_id).subscribe();
        writer.write(running()).await;
        writer.write(node(&claim.run_id, "a title")).await;
        (writer, subscription)
    }

    pub(crate) async fn writer(&self, run: &RunId) -> RunWriter {
        let state = self.store.load_run(run).await.unwrap().unwrap();
        self.recorder.open(state).await.unwrap()
    }

    pub(crate) async fn ops(&self, run: &RunId) -> Vec<Entry> {
        journal::after(self.store.pool(), run, 0, 100_000).await.unwrap()
    }
}

pub(crate) fn running() -> Op {
    run_is(RunStatus::Running)
}

pub(crate) fn run_is(status: RunStatus) -> Op {
    Op::RunUpdated(RunUpdated {
        status,
        error: None,
        usage: None,
        extra: Extra::new(),
    })
}

pub(crate) fn node(run: &RunId, title: &str) -> Op {
    Op::NodeStarted(NodeStarted {
        node_id: NodeId::root(run),
        parent_id: None,
        after: Vec::new(),
        kind: NodeKind::Function,
        name: "run".to_owned(),
        title: title.to_owned(),
        ordinal: 0,
        executor: Executor::Runloom,
        occurrence_id: None,
        extra: Extra::new(),
    })
}

pub(crate) fn output(run: &RunId, offset: u64, text: &str) -> Op {
    Op::NodeOutput(NodeOutput {
        node_id: NodeId::root(run),
        channel: Channel::Log,
        offset,
        text: text.to_owned(),
        extra: Extra::new(),
    })
}

/// The next frame with ops: its first and last `seq` and its JSON.
pub(crate) async fn delivered(subscription: &mut Subscription) -> (u64, u64, String) {
    loop {
        let delivery = tokio::time::timeout(PATIENCE, subscription.next())
            .await
            .expect("a frame in time");
        let Delivery::Frame(frame) = delivery else {
            panic!("too far behind")
        };
        if let (Some(first), Some(last)) = (frame.first_seq, frame.last_seq) {
            return (first, last, String::from_utf8(frame.json.to_vec()).unwrap());
        }
    }
}

#[tokio::test]
async fn the_last_words_before_a_pause_are_committed_and_shown_by_the_timer() {
    let database = TestDatabase::new().await;
    let owner = Owner::new("a", database.options.clone()).await;
    let run = owner.queue().await;
    let (writer, mut subscription) = owner.begin().await;
    writer.flush().await.unwrap();
    delivered(&mut subscription).await;
    for (offset, word) in [(0, "one "), (4, "two "), (8, "three")] {
        writer.write(output(&run, offset, word)).await;
    }
    // Nothing follows that would push it on.
    let begin = std::time::Instant::now();
    let (first, last, json) = delivered(&mut subscription).await;
    assert_eq!(first, last, "deltas of one window are one op");
    assert!(json.contains("one two three"), "{json}");
    assert!(begin.elapsed().as_millis() < 1000, "{:?}", begin.elapsed());
    assert_eq!(
        owner.ops(&run).await.last().unwrap().op,
        output(&run, 0, "one two three")
    );
}

#[tokio::test]
async fn what_an_owner_of_an_older_generation_writes_is_refused_and_shown_to_nobody() {
    let database = TestDatabase::new().await;
    let old = Owner::new("old", database.options.clone()).await;
    let new = Owner::new("new", database.options.clone()).await;
    let run = old.queue().await;
    let (writer, mut subscription) = old.begin().await;
    writer.write(output(&run, 0, "seen")).await;
    let seq = writer.flush().await.unwrap();
    while delivered(&mut subscription).await.1 < seq {}

    new.store.end_all_leases().await.unwrap();
    let claim = new.store.claim_orphan("new").await.unwrap().unwrap();
    assert_eq!((&claim.run_id, claim.generation), (&run, 2));
    writer.write(output(&run, 4, " too late")).await;
    assert_eq!(writer.flush().await, Err(RecordError::LostOwnership));
    assert!(writer.ended().is_cancelled());
    assert_eq!(writer.why_ended(), Some(&RecordError::LostOwnership));
    assert!(
        subscription.next().now_or_never().is_none(),
        "nothing more was shown"
    );
    assert_eq!(old.ops(&run).await.len() as u64, seq);

    // The same also after the new owner has written: at its `seq` and behind it.
    let taken = new.writer(&run).await;
    taken.write(output(&run, 4, " by the new one")).await;
    assert_eq!(taken.flush().await.unwrap(), seq + 1);
    let texts: Vec<_> = new
        .ops(&run)
        .await
        .into_iter()
        .map(|entry| entry.generation)
        .collect();
    assert_eq!(texts.last(), Some(&2));
}

#[tokio::test]
async fn the_writer_of_a_run_that_was_opened_again_cannot_write_into_it() {
    let database = TestDatabase::new().await;
    let owner = Owner::new("a", database.options.clone()).await;
    let run = owner.queue().await;
    let (old, _subscription) = owner.begin().await;
    old.flush().await.unwrap();
    let new = owner.writer(&run).await;
    old.write(output(&run, 0, "from the old one")).await;
    assert_eq!(old.flush().await, Err(RecordError::LostOwnership));
    drop(old);
    new.write(output(&run, 0, "from the new one")).await;
    new.flush().await.unwrap();
    let ops = owner.ops(&run).await;
    assert_eq!(ops.last().unwrap().op, output(&run, 0, "from the new one"));
}

#[tokio::test]
async fn data_that_the_database_refuses_in_one_run_does_not_stop_another() {
    let database = TestDatabase::new().await;
    let owner = Owner::new("a", database.options.clone()).await;
    let (first, second) = (owner.queue().await, owner.queue().await);
    let (bad, mut bad_viewer) = owner.begin().await;
    let (good, mut good_viewer) = owner.begin().await;
    assert_eq!((bad.run_id(), good.run_id()), (&first, &second));
    let (seq, _) = tokio::join!(bad.flush(), good.flush());
    let seq = seq.unwrap();
    delivered(&mut bad_viewer).await;
    delivered(&mut good_viewer).await;

    // A text column takes no NUL; nothing in the server writes one.
    let title = Op::NodeUpdated(protocol::op::NodeUpdated {
        node_id: NodeId::root(&first),
        status: None,
        title: Some("a\0b".to_owned()),
        progress: None,
        started_at: None,
        extra: Extra::new(),
    });
    bad.write(title).await;
    good.write(output(&second, 0, "it goes on")).await;
    let (refused, written) = tokio::join!(bad.flush(), good.flush());
    assert!(matches!(refused, Err(RecordError::NotSaved(_))), "{refused:?}");
    written.unwrap();
    assert!(bad.ended().is_cancelled() && !good.ended().is_cancelled());
    assert!(delivered(&mut good_viewer).await.2.contains("it goes on"));
    assert_eq!(
        owner.ops(&first).await.len() as u64,
        seq,
        "nothing of the bad batch is kept"
    );
    let Delivery::Frame(told) = bad_viewer.next().await else {
        panic!("too far behind")
    };
    let told: Value = serde_json::from_slice(&told.json).unwrap();
    assert_eq!(
        (&told["type"], &told["code"]),
        (&json!("error"), &json!("not_saved"))
    );
    // An error with the field `run_id` would end the subscription of a viewer, who is to see the run's end.
    assert_eq!(told.get("run_id"), None);
    assert!(told["detail"].as_str().unwrap().contains(first.as_str()));
}

#[tokio::test]
async fn stopping_commits_what_was_handed_over_and_ends_the_task() {
    let database = TestDatabase::new().await;
    let store = Store::open(database.options.clone()).await.unwrap();
    let (hub, tasks) = (Arc::new(Hub::default()), TaskTracker::new());
    let recorder = Recorder::start(store.clone(), Arc::clone(&hub), Arc::new(SystemClock), &tasks);
    let owner = Owner {
        name: "a",
        store,
        hub,
        recorder,
    };
    let run = owner.queue().await;
    let (writer, _subscription) = owner.begin().await;
    writer.write(output(&run, 0, "the last words")).await;
    owner.recorder.stop().await;
    tasks.close();
    tokio::time::timeout(PATIENCE, tasks.wait())
        .await
        .expect("the task ends although its writer lives");
    assert_eq!(
        owner.ops(&run).await.last().unwrap().op,
        output(&run, 0, "the last words")
    );
    assert_eq!(writer.flush().await, Err(RecordError::Stopped));
}
