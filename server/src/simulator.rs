//! A provider without a model: it speaks the real wire formats over real HTTP and plays scenarios from data files.
//!
//! It serves `runloom simulate`, the provider `demo` inside the server, and tests. The same request gives the same
//! bytes; ids are made of a seed and a counter. Gates hold a stream at a named place until a test opens them.

mod catalogue;
mod control;
mod failure;
mod gates;
mod generator;
mod ledger;
mod outlet;
mod pace;
mod parameters;
mod player;
mod repeats;
mod request;
pub mod sample_workspace;
mod scenario;
mod serving;
mod wire;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clock::{SharedClock, SystemClock};

pub use catalogue::{ScenarioInfo, markdown_table};
pub use gates::GateState;
pub use ledger::{ConnectionEnd, ConnectionRecord, ConnectionReport, LoadRecord, RequestRecord};
pub use pace::{Speed, SpeedError};
pub use scenario::{Scenario, ScenarioError};
pub use wire::WireFormat;

use catalogue::Catalogue;
use control::Control;
use gates::Gates;
use ledger::Ledger;
use repeats::Repeats;

/// How a simulator behaves.
#[derive(Clone)]
pub struct SimulatorOptions {
    /// How fast scenarios run.
    pub speed: Speed,
    /// Goes into every id, so that two simulators make different ones.
    pub seed: u64,
    /// Where the times in the control API come from. The send times of load streams are the machine's.
    pub clock: SharedClock,
    /// Scenarios beside the built-in ones; one with the name of a built-in one replaces it.
    pub more_scenarios: Vec<Scenario>,
}

impl Default for SimulatorOptions {
    fn default() -> Self {
        Self {
            speed: Speed::REAL,
            seed: 1,
            clock: Arc::new(SystemClock),
            more_scenarios: Vec::new(),
        }
    }
}

/// A provider that plays scenarios. All clones of the `Arc` share gates, counters and records.
pub struct Simulator {
    speed: Speed,
    seed: u64,
    counter: AtomicU64,
    catalogue: Catalogue,
    gates: Gates,
    repeats: Repeats,
    ledger: Arc<Ledger>,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator")
            .field("speed", &self.speed)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Simulator {
    /// A simulator with the built-in scenarios.
    pub fn new(options: SimulatorOptions) -> Arc<Self> {
        let catalogue = Catalogue::new(options.more_scenarios);
        let gates = Gates::new(catalogue.iter().flat_map(|scenario| scenario.gates()));
        Arc::new(Self {
            speed: options.speed,
            seed: options.seed,
            counter: AtomicU64::new(0),
            gates,
            repeats: Repeats::default(),
            catalogue,
            ledger: Arc::new(Ledger::new(options.clock)),
        })
    }

    /// The provider's routes and the control routes.
    pub fn router(self: &Arc<Self>) -> Router {
        self.router_until(CancellationToken::new())
    }

    /// The control routes under `/_sim/` alone, to be mounted on another server in tests and demonstrations.
    pub fn control_router(self: &Arc<Self>) -> Router {
        control::router(Control {
            simulator: self.clone(),
            shutdown: CancellationToken::new(),
        })
    }

    /// The scenarios in the order in which they are offered.
    pub fn scenarios(&self) -> Vec<ScenarioInfo> {
        self.catalogue.infos()
    }

    /// The replies that are open, and how the last ones ended.
    pub fn connections(&self) -> ConnectionReport {
        self.ledger.connections()
    }

    /// All routes; `shutdown` ends open streams and long polls.
    fn router_until(self: &Arc<Self>, shutdown: CancellationToken) -> Router {
        let control = Control {
            simulator: self.clone(),
            shutdown,
        };
        serving::router(control.clone()).merge(control::router(control))
    }

    fn next_number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Serves the provider and its control routes until `cancel`; open streams are then ended without their end marker.
pub async fn serve(
    listener: TcpListener,
    simulator: Arc<Simulator>,
    cancel: CancellationToken,
) -> io::Result<()> {
    let router = simulator.router_until(cancel.clone());
    let listener = listener.tap_io(|stream| {
        // A delta is a small packet; it must not wait for the one before to be acknowledged.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("simulator: TCP_NODELAY could not be set: {error}");
        }
    });
    axum::serve(listener, router)
        .with_graceful_shutdown(cancel.cancelled_owned())
        .await
}

#[cfg(test)]
mod tests;
