//! How the providers are doing, over all streams of this process. When at least half of the streams of one provider
//! stall within [`WINDOW`], that is an outage: one decision for all of them (`resilience.md` §3). Stalled and waiting
//! streams move to another provider, healthy ones are left alone, and the provider is not asked again before it has
//! cooled down and one stream has tried it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Stalls within this time count together.
const WINDOW: Duration = Duration::from_secs(15);

/// Fewer stalls than that are never an outage.
const LEAST_STALLS: usize = 2;

/// All providers.
#[derive(Debug)]
pub struct ProviderHealth {
    known: Mutex<Known>,
    cooldown: Duration,
    /// Counts the outages that were ever declared.
    declared: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    providers: HashMap<String, Provider>,
    seats: u64,
    outages: u64,
}

#[derive(Debug, Default)]
struct Provider {
    /// The streams that it serves, each with the time of its last stall.
    seats: HashMap<u64, Option<Instant>>,
    outage: Option<Current>,
}

/// An outage that is not over.
#[derive(Debug)]
struct Current {
    outage: Outage,
    /// When the provider may be tried again.
    until: Instant,
    /// The stream that tries it.
    probe: Option<u64>,
}

/// One decision for all streams of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Counts the outages of this process.
    pub number: u64,
    /// The provider.
    pub provider_id: String,
    /// How many streams stalled within the window.
    pub stalled: usize,
    /// How many streams the provider served.
    pub active: usize,
}

/// A stream's place at its provider; it leaves it when this is dropped.
#[derive(Debug)]
pub struct Seat {
    health: Arc<ProviderHealth>,
    provider_id: String,
    number: u64,
    declared: watch::Receiver<u64>,
    /// The last outage that this stream was told of.
    told: u64,
    /// The last outage of any provider at which it was looked whether it is this one's.
    looked: u64,
}

impl ProviderHealth {
    /// `cooldown`: how long a provider is left alone after an outage.
    pub fn new(cooldown: Duration) -> Arc<Self> {
        Arc::new(Self {
            known: Mutex::default(),
            cooldown,
            declared: watch::Sender::new(0),
        })
    }

    /// A stream is served by this provider from now on.
    pub fn seat(self: &Arc<Self>, provider_id: &str) -> Seat {
        let mut known = self.lock();
        known.seats += 1;
        let number = known.seats;
        let provider = known.providers.entry(provider_id.to_owned()).or_default();
        provider.seats.insert(number, None);
        let told = provider
            .outage
            .as_ref()
            .map_or(0, |current| current.outage.number);
        drop(known);
        Seat {
            health: Arc::clone(self),
            provider_id: provider_id.to_owned(),
            number,
            declared: self.declared.subscribe(),
            told,
            looked: 0,
        }
    }

    /// Whether a provider is to be left alone by those who have another one.
    pub fn is_cooling(&self, provider_id: &str) -> bool {
        let known = self.lock();
        let outage = known
            .providers
            .get(provider_id)
            .and_then(|provider| provider.outage.as_ref());
        outage.is_some_and(|current| current.probe.is_some() || Instant::now() < current.until)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Whether this stream, which has another provider, may ask this one now. After the cooldown one stream may: it
    /// tries the provider for all.
    pub fn may_ask(&self) -> bool {
        let mut known = self.health.lock();
        let Some(current) = known
            .providers
            .get_mut(&self.provider_id)
            .and_then(|provider| provider.outage.as_mut())
        else {
            return true;
        };
        if current.probe.is_none() && Instant::now() >= current.until {
            current.probe = Some(self.number);
        }
        current.probe == Some(self.number)
    }

    /// The provider answered this stream: when it was tried after an outage, that is over.
    pub fn answered(&self) {
        self.probed(|provider| provider.outage = None);
    }

    /// The stream stalled. Gives the outage that this makes, if it does.
    pub fn stalled(&self) -> Option<Outage> {
        let now = Instant::now();
        self.failed();
        let mut known = self.health.lock();
        let number = known.outages + 1;
        let provider = known.providers.get_mut(&self.provider_id)?;
        provider.seats.insert(self.number, Some(now));
        let is_recent = |stall: &&Option<Instant>| stall.is_some_and(|stall| now - stall < WINDOW);
        let stalled = provider.seats.values().filter(is_recent).count();
        let active = provider.seats.len();
        if provider.outage.is_some() || stalled < LEAST_STALLS.max(active.div_ceil(2)) {
            return None;
        }
        let outage = Outage {
            number,
            provider_id: self.provider_id.clone(),
            stalled,
            active,
        };
        provider.outage = Some(Current {
            outage: outage.clone(),
            until: now + self.health.cooldown,
            probe: None,
        });
        known.outages = number;
        drop(known);
        self.health.declared.send_replace(number);
        Some(outage)
    }

    /// The request failed: when the provider was tried after an outage, it cools down once more.
    pub fn failed(&self) {
        let until = Instant::now() + self.health.cooldown;
        self.probed(|provider| {
            if let Some(current) = &mut provider.outage {
                (current.until, current.probe) = (until, None);
            }
        });
    }

    /// Does something if this stream is the one that tries the provider.
    fn probed(&self, then: impl FnOnce(&mut Provider)) {
        let mut known = self.health.lock();
        if let Some(provider) = known.providers.get_mut(&self.provider_id)
            && provider
                .outage
                .as_ref()
                .is_some_and(|current| current.probe == Some(self.number))
        {
            then(provider);
        }
    }

    /// Waits for an outage of the provider that this stream was not told of. Cancel-safe.
    pub async fn outage(&mut self) -> Outage {
        loop {
            // Streams ask with each of their events: nothing is looked up before something was declared.
            let declared = *self.declared.borrow_and_update();
            if declared > self.looked {
                self.looked = declared;
                if let Some(outage) = self.untold() {
                    self.told = outage.number;
                    return outage;
                }
            }
            // The sender lives as long as the seat holds the whole.
            if self.declared.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The outage of the provider, while it lasts.
    pub fn current(&self) -> Option<Outage> {
        let known = self.health.lock();
        let current = known.providers.get(&self.provider_id)?.outage.as_ref()?;
        Some(current.outage.clone())
    }

    fn untold(&self) -> Option<Outage> {
        self.current().filter(|outage| outage.number > self.told)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut known = self.health.lock();
        if let Some(provider) = known.providers.get_mut(&self.provider_id) {
            provider.seats.remove(&self.number);
            if let Some(current) = &mut provider.outage
                && current.probe == Some(self.number)
            {
                current.probe = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOLDOWN: Duration = Duration::from_secs(60);

    fn seats(health: &Arc<ProviderHealth>, count: usize) -> Vec<Seat> {
        (0..count).map(|_| health.seat("a")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn four_of_eight_stalls_inside_15_s_are_one_decision_that_everybody_hears() {
        let health = ProviderHealth::new(COOLDOWN);
        let mut seats = seats(&health, 8);
        for seat in &seats[..3] {
            assert_eq!(seat.stalled(), None);
            tokio::time::advance(Duration::from_millis(4_900)).await;
        }
        let outage = seats[3].stalled().expect("the fourth one makes it an outage");
        assert_eq!((outage.stalled, outage.active), (4, 8));
        assert_eq!(seats[4].stalled(), None, "one decision, not one more");
        for seat in &mut seats {
            assert_eq!(seat.outage().await, outage);
            let again = tokio::time::timeout(Duration::from_secs(1), seat.outage()).await;
            assert!(again.is_err(), "once each");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn four_of_eight_stalls_over_16_s_are_none() {
        let health = ProviderHealth::new(COOLDOWN);
        let seats = seats(&health, 8);
        for seat in &seats[..4] {
            assert_eq!(seat.stalled(), None);
            tokio::time::advance(Duration::from_millis(5_334)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn half_is_rounded_up_and_one_stall_alone_is_never_an_outage() {
        let health = ProviderHealth::new(COOLDOWN);
        let alone = health.seat("b");
        assert_eq!(alone.stalled(), None);
        let five = seats(&health, 5);
        assert_eq!(five[0].stalled(), None);
        assert_eq!(five[1].stalled(), None);
        assert!(five[2].stalled().is_some(), "three of five");
        let other = health.seat("b");
        assert!(other.stalled().is_some(), "two of two, at another provider");
    }

    #[tokio::test(start_paused = true)]
    async fn one_stream_that_stalls_twice_counts_once_and_who_has_left_counts_no_more() {
        let health = ProviderHealth::new(COOLDOWN);
        let mut seats = seats(&health, 4);
        assert_eq!(seats[0].stalled(), None);
        assert_eq!(seats[0].stalled(), None);
        seats.truncate(3);
        drop(seats.remove(0));
        assert_eq!(seats[0].stalled(), None, "one of two");
    }

    #[tokio::test(start_paused = true)]
    async fn after_an_outage_a_provider_cools_down_and_one_stream_tries_it_for_all() {
        let health = ProviderHealth::new(COOLDOWN);
        let seats = seats(&health, 2);
        seats[0].stalled();
        seats[1].stalled().expect("an outage");
        let (first, second) = (health.seat("a"), health.seat("a"));
        assert!(!first.may_ask() && health.is_cooling("a"));
        tokio::time::advance(COOLDOWN).await;
        assert!(!health.is_cooling("a"));
        assert!(first.may_ask() && first.may_ask(), "the one that tries it");
        assert!(!second.may_ask() && health.is_cooling("a"));
        first.failed();
        tokio::time::advance(COOLDOWN - Duration::from_millis(1)).await;
        assert!(!second.may_ask(), "it cools down once more");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(second.may_ask());
        drop(second);
        assert!(first.may_ask(), "who tried it has left without an answer");
        first.answered();
        assert!(
            health.seat("a").may_ask() && !health.is_cooling("a"),
            "it is over"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_healthy_stream_that_goes_on_does_not_end_an_outage() {
        let health = ProviderHealth::new(COOLDOWN);
        let seats = seats(&health, 3);
        seats[0].stalled();
        seats[1].stalled().expect("an outage");
        seats[2].answered();
        assert!(health.is_cooling("a"));
    }
}
