//! How many programs compute at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets as many programs compute at once as leave one processor free.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    places: Arc<Semaphore>,
}

/// A place: its program may compute.
#[derive(Debug)]
pub(super) struct Place(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Gate {
    /// A gate for this machine.
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_places(processors.saturating_sub(1).max(1))
    }

    /// A gate with so many places.
    pub(super) fn with_places(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
        }
    }

    /// Waits for a place. Who came first gets it first.
    pub(super) async fn enter(&self) -> Place {
        match Arc::clone(&self.places).acquire_owned().await {
            Ok(permit) => Place(permit),
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }
}
