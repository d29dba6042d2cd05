//! Where tools come from that are not there from the start: they come and go while the server runs.

use std::pin::Pin;
use std::sync::Arc;

use super::Tool;

/// What waits for a source.
pub type SourceFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A source of tools.
pub trait ToolSource: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// Ends when it is known whether there are tools. Bounded.
    fn settled(&self) -> SourceFuture<'_>;

    /// The tools that there are now.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Why there are none now, in words for people; none where all is well.
    fn problem(&self) -> Option<String>;
}
