//! What wakes this process, and what follows from it: other servers on the same database say what they changed
//! ([`crate::store::wake`]), and this one looks at the rows.
//!
//! A run that another process writes and somebody here watches has one reader. It reads the journal after what was
//! published last and publishes it, once for all viewers. Wake-ups may be lost: after each new connection everything
//! counts as woken, and every [`LOOK`] the last ops of the watched runs are compared.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::hub::{Channel, Hub};
use super::worker::Worker;
use crate::store::wake::{Heard, WakeUp};
use crate::store::{Store, StoreError, journal};

/// How often watched runs are looked at without a wake-up.
const LOOK: Duration = Duration::from_secs(5);

/// The shortest and the longest pause before listening again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How often live states are sent at most.
const LIVE: Duration = Duration::from_millis(500);

/// Readers that read at the same time, so that they leave connections to the others.
const READERS: usize = 4;

/// Ops that a reader takes at a time.
const PORTION: u32 = 256;

/// Hears the other servers, and wakes who waits here.
pub(super) struct Wake {
    store: Store,
    hub: Arc<Hub>,
    worker: Arc<Worker>,
    reading: Arc<Semaphore>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Wake {
    /// Starts to listen, to look, and to tell the others what streams are doing.
    pub(super) fn start(store: Store, hub: Arc<Hub>, worker: Arc<Worker>, tasks: &TaskTracker) -> Arc<Self> {
        let wake = Arc::new(Self {
            store,
            hub,
            worker,
            reading: Arc::new(Semaphore::new(READERS)),
            tasks: tasks.clone(),
            closing: CancellationToken::new(),
        });
        wake.spawn(Arc::clone(&wake).listen());
        wake.spawn(Arc::clone(&wake).look());
        wake.spawn(Arc::clone(&wake).tell());
        wake
    }

    /// Ends all of it.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    /// Publishes what other processes write to a run from now on; `known` is the last op that its viewer has read.
    /// Gives the last op that is not published any more.
    pub(super) fn follow(&self, channel: &Arc<Channel>, known: u64) -> u64 {
        let published = channel.publish_after(known);
        if let Some(alarm) = channel.become_reader() {
            // Between the viewer's reading and this moment nobody would have been woken.
            alarm.notify_one();
            self.spawn(read(
                self.store.clone(),
                Arc::downgrade(channel),
                alarm,
                Arc::clone(&self.reading),
            ));
        }
        published
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks
            .spawn(async move { closing.run_until_cancelled(task).await });
    }

    async fn listen(self: Arc<Self>) {
        let mut pause = PAUSE.0;
        loop {
            let begun = Instant::now();
            let Err(error) = self.hear().await;
            if begun.elapsed() > PAUSE.1 {
                pause = PAUSE.0;
            }
            tracing::warn!(%error, "other servers cannot be heard; listening again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Listens until the connection is lost.
    async fn hear(&self) -> Result<std::convert::Infallible, StoreError> {
        let mut listener = self.store.listen().await?;
        self.wake_all();
        loop {
            match listener.hear().await? {
                Heard::WakeUp(wake_up) => self.take(wake_up),
                Heard::Anything => self.wake_all(),
            }
        }
    }

    fn take(&self, wake_up: WakeUp) {
        let WakeUp {
            runs,
            sessions,
            commands,
            streams,
            queue,
        } = wake_up;
        for (run, seq) in runs {
            if let Some(channel) = self.hub.existing(&run)
                && channel.last_seq().is_some_and(|known| known < seq)
            {
                channel.wake_reader();
            }
        }
        for session in sessions {
            self.hub.session_changed(session);
        }
        for state in streams {
            if let Some(channel) = self.hub.existing(&state.run_id) {
                channel.set_foreign_stream(state);
            }
        }
        if !commands.is_empty() {
            self.worker.look_for_commands();
        }
        if queue {
            self.worker.look_at_queue();
        }
    }

    /// Something may have been missed.
    fn wake_all(&self) {
        for channel in self.hub.read_channels() {
            channel.wake_reader();
        }
        self.hub.sessions_changed();
        self.worker.look_for_commands();
        self.worker.look_at_queue();
    }

    /// Finds what no wake-up told, as when a connection is dead and nobody has noticed.
    async fn look(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let channels = self.hub.read_channels();
            if channels.is_empty() {
                continue;
            }
            let runs: Vec<_> = channels.iter().map(|channel| channel.run_id().clone()).collect();
            drop(channels);
            match self.store.last_seqs(&runs).await {
                Ok(runs) => self.take(WakeUp {
                    runs,
                    ..WakeUp::default()
                }),
                Err(error) => tracing::warn!(%error, "watched runs cannot be looked at"),
            }
        }
    }

    /// Tells the others what the streams of this process are doing.
    async fn tell(self: Arc<Self>) {
        loop {
            let streams = self.hub.outgoing().next().await;
            let wake_up = WakeUp {
                streams,
                ..WakeUp::default()
            };
            if let Err(error) = self.store.wake_others(&wake_up).await {
                // Only viewers elsewhere miss it, until the next one.
                tracing::debug!(%error, "live states could not be sent");
            }
            tokio::time::sleep(LIVE).await;
        }
    }
}

/// Publishes what others write to a run, whenever the alarm says so, until nobody holds its channel.
async fn read(store: Store, channel: Weak<Channel>, alarm: Arc<Notify>, reading: Arc<Semaphore>) {
    loop {
        alarm.notified().await;
        let Ok(_turn) = reading.acquire().await else {
            return;
        };
        let Some(channel) = channel.upgrade() else { return };
        if let Err(error) = read_on(&store, &channel).await {
            // The next wake-up or look comes.
            tracing::warn!(run.id = %channel.run_id(), %error, "a watched run cannot be read");
        }
    }
}

async fn read_on(store: &Store, channel: &Channel) -> Result<(), StoreError> {
    // The recorder of this process publishes by itself.
    while !channel.is_owned() {
        let Some(known) = channel.last_seq() else {
            return Ok(());
        };
        let entries = journal::after(store.pool(), channel.run_id(), known, PORTION).await?;
        let is_last = entries.len() < PORTION as usize;
        if channel.is_owned() {
            break;
        }
        channel.publish_ops(entries);
        if is_last {
            break;
        }
    }
    Ok(())
}
