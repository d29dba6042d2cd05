//! Every key of the pages. The handler looks keys up here, and the sheet is written from here: they cannot differ.

#[cfg(feature = "hydrate")]
mod browser;
pub mod sheet;
#[cfg(test)]
mod tests;

use leptos::prelude::*;

use super::scroll::Follow;
use crate::data::selection::Selection;
use crate::data::session_store::SessionStore;
use crate::find::Find;

pub use sheet::{Keyboard, KeysButton};

/// A part of the page that has keys of its own while the focus is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Region {
    /// Everywhere.
    Page,
    /// The list of sessions.
    Sessions,
    /// A session's page, outside of the tree.
    Session,
    /// The rows of the content.
    Content,
    /// The execution tree.
    Tree,
    /// The field that searches the tree.
    TreeSearch,
    /// The details panel.
    Details,
    /// The bar that searches the content.
    Find,
    /// Where a prompt is written.
    Composer,
}

impl Region {
    /// What stands above its keys.
    pub fn title(self) -> &'static str {
        match self {
            Self::Page => "Everywhere",
            Self::Sessions => "List of sessions",
            Self::Session => "Session",
            Self::Content => "Rows of the content",
            Self::Tree => "Execution tree",
            Self::TreeSearch => "Search of the tree",
            Self::Details => "Details",
            Self::Find => "Search of the content",
            Self::Composer => "Prompt",
        }
    }

    /// Whose keys hold while the focus is in it; the first one that has a key decides. In the tree letters are looked for
    /// among the names, and in a field everything is written, so that keys of the page do not hold there.
    fn holds(self) -> &'static [Self] {
        match self {
            Self::Page => &[Self::Page],
            Self::Sessions => &[Self::Sessions, Self::Page],
            Self::Session => &[Self::Session, Self::Page],
            Self::Content => &[Self::Content, Self::Session, Self::Page],
            Self::Tree => &[Self::Tree, Self::Page],
            Self::TreeSearch => &[Self::TreeSearch],
            Self::Details => &[Self::Details, Self::Content, Self::Session, Self::Page],
            Self::Find => &[Self::Find],
            Self::Composer => &[Self::Composer],
        }
    }
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Shows the list of keys.
    Sheet,
    /// Closes what lies over or beside the page.
    Close,
    /// Goes to the next row.
    NextRow,
    /// Goes to the row before.
    PreviousRow,
    /// The control that has the focus does it by itself.
    Own,
    /// Selects the row's node in the tree.
    Locate,
    /// Shows the row's node in the details.
    Details,
    /// Goes to the prompt.
    Compose,
    /// Goes to the tree.
    Tree,
    /// Goes to the search of the region.
    Search,
    /// Goes to the end and follows it.
    Follow,
    /// Goes to the start.
    Start,
    /// Asks whether the run is to be stopped.
    Stop,
    /// Sends the prompt.
    Send,
    /// A step in the tree.
    Step(Step),
    /// From the field to what was found.
    Found,
    /// Goes to the next hit.
    NextHit,
    /// Goes to the hit before.
    PreviousHit,
    /// Empties the field.
    Clear,
}

/// A step in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// To the next item.
    Next,
    /// To the item before.
    Previous,
    /// To the first item.
    First,
    /// To the last item.
    Last,
    /// Opens the item, or goes to the first one within.
    In,
    /// Closes the item, or goes to the one it lies within.
    Out,
    /// Opens all items beside it.
    All,
    /// Selects it.
    Select,
    /// Goes to its row.
    Go,
}

/// A key, as the browser names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// By itself.
    Plain(&'static str),
    /// With Ctrl, or Cmd.
    WithControl(&'static str),
}

impl Key {
    fn is(self, key: &str, is_command: bool) -> bool {
        match self {
            Self::Plain(name) => !is_command && name == key,
            Self::WithControl(name) => is_command && name == key,
        }
    }

    /// What is written on it.
    pub fn caps(self) -> Vec<&'static str> {
        let cap = |name: &'static str| match name {
            " " => "Space",
            "ArrowUp" => "↑",
            "ArrowDown" => "↓",
            "ArrowLeft" => "←",
            "ArrowRight" => "→",
            "Enter" => "↵",
            "Escape" => "Esc",
            other => other,
        };
        match self {
            Self::Plain(name) => vec![cap(name)],
            Self::WithControl(name) => vec!["Ctrl", cap(name)],
        }
    }
}

/// What some keys do in a region.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Where.
    pub region: Region,
    /// The keys, each of which does it.
    pub keys: &'static [Key],
    /// What they do.
    pub command: Command,
    /// The same in words.
    pub words: &'static str,
}

const fn binding(region: Region, keys: &'static [Key], command: Command, words: &'static str) -> Binding {
    Binding {
        region,
        keys,
        command,
        words,
    }
}

/// All of them, in the order of the sheet.
pub const BINDINGS: &[Binding] = {
    use Command as C;
    use Key::{Plain, WithControl};
    use Region as R;
    &[
        binding(R::Page, &[Plain("?")], C::Sheet, "Show this list"),
        binding(
            R::Page,
            &[Plain("Escape")],
            C::Close,
            "Close what lies over the page, or the details",
        ),
        binding(R::Sessions, &[Plain("j")], C::NextRow, "Next session"),
        binding(R::Sessions, &[Plain("k")], C::PreviousRow, "Previous session"),
        binding(R::Sessions, &[Plain("Enter")], C::Own, "Open the session"),
        binding(R::Sessions, &[Plain("/")], C::Search, "Search the sessions"),
        binding(R::Sessions, &[Plain("c")], C::Compose, "Write a prompt"),
        binding(R::Session, &[Plain("c")], C::Compose, "Write a prompt"),
        binding(R::Session, &[Plain("t")], C::Tree, "Go to the execution tree"),
        binding(
            R::Session,
            &[Plain("/"), WithControl("f")],
            C::Search,
            "Search the content, also what is not in the page",
        ),
        binding(R::Session, &[Plain("F3")], C::NextHit, "Next hit of the search"),
        binding(
            R::Session,
            &[Plain("g"), Plain("End")],
            C::Follow,
            "Go to the end and follow it",
        ),
        binding(R::Session, &[Plain("Home")], C::Start, "Go to the start"),
        binding(
            R::Session,
            &[Plain("s")],
            C::Stop,
            "Stop the run, after a question",
        ),
        binding(R::Content, &[Plain("j")], C::NextRow, "Next row"),
        binding(R::Content, &[Plain("k")], C::PreviousRow, "Previous row"),
        binding(
            R::Content,
            &[Plain("Enter"), Plain(" ")],
            C::Own,
            "Open or close the row",
        ),
        binding(R::Content, &[Plain("l")], C::Locate, "Locate the row in the tree"),
        binding(
            R::Content,
            &[Plain("o")],
            C::Details,
            "Open the row in the details",
        ),
        binding(R::Tree, &[Plain("ArrowDown")], C::Step(Step::Next), "Next item"),
        binding(
            R::Tree,
            &[Plain("ArrowUp")],
            C::Step(Step::Previous),
            "Previous item",
        ),
        binding(
            R::Tree,
            &[Plain("ArrowRight")],
            C::Step(Step::In),
            "Open the item, or go into it",
        ),
        binding(
            R::Tree,
            &[Plain("ArrowLeft")],
            C::Step(Step::Out),
            "Close the item, or go out of it",
        ),
        binding(R::Tree, &[Plain("Home")], C::Step(Step::First), "First item"),
        binding(R::Tree, &[Plain("End")], C::Step(Step::Last), "Last item"),
        binding(
            R::Tree,
            &[Plain("*")],
            C::Step(Step::All),
            "Open all items beside it",
        ),
        binding(R::Tree, &[Plain(" ")], C::Step(Step::Select), "Select the item"),
        binding(
            R::Tree,
            &[Plain("Enter")],
            C::Step(Step::Go),
            "Go to its row in the content",
        ),
        binding(
            R::Tree,
            &[Plain("/")],
            C::Search,
            "Search the tree; letters go to a name",
        ),
        binding(
            R::TreeSearch,
            &[Plain("Enter"), Plain("ArrowDown")],
            C::Found,
            "Go to what was found",
        ),
        binding(
            R::TreeSearch,
            &[Plain("Escape")],
            C::Clear,
            "Show all items again",
        ),
        binding(
            R::Details,
            &[Plain("l")],
            C::Locate,
            "Locate the node in the tree",
        ),
        binding(R::Details, &[Plain("Escape")], C::Close, "Close the details"),
        binding(
            R::Find,
            &[Plain("Enter"), Plain("ArrowDown"), Plain("F3")],
            C::NextHit,
            "Next hit; with Shift the one before",
        ),
        binding(R::Find, &[Plain("ArrowUp")], C::PreviousHit, "The hit before"),
        binding(
            R::Find,
            &[Plain("Escape")],
            C::Close,
            "Close the search; Ctrl F here opens the browser's own",
        ),
        binding(R::Composer, &[WithControl("Enter")], C::Send, "Send the prompt"),
    ]
};

/// What a key does while the focus is in a region.
pub fn command(region: Region, key: &str, is_command: bool) -> Option<Command> {
    let mut regions = region.holds().iter();
    regions.find_map(|region| {
        let mut bindings = BINDINGS.iter().filter(|binding| binding.region == *region);
        bindings
            .find(|binding| binding.keys.iter().any(|known| known.is(key, is_command)))
            .map(|binding| binding.command)
    })
}

/// What a pressed key does while the focus is in a region. Keys that write something by an input method do nothing.
#[cfg(feature = "hydrate")]
pub fn pressed(region: Region, event: &leptos::ev::KeyboardEvent) -> Option<Command> {
    if event.is_composing() || event.alt_key() {
        return None;
    }
    command(region, &event.key(), event.ctrl_key() || event.meta_key())
}

/// What a page is, and what its keys act on.
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few handles, of which there is one set a page"
)]
pub enum Page {
    /// The list of sessions.
    Sessions,
    /// A session.
    Session {
        /// What is selected.
        selection: Selection,
        /// Following the end.
        follow: Follow,
        /// The session.
        session: SessionStore,
        /// Its search.
        find: Find,
    },
    /// A page without content.
    Other,
}

/// The regions of a session's page.
const SESSION: &[Region] = &[
    Region::Session,
    Region::Content,
    Region::Tree,
    Region::TreeSearch,
    Region::Details,
    Region::Find,
    Region::Composer,
    Region::Page,
];

impl Page {
    /// The regions that it has.
    fn regions(self) -> &'static [Region] {
        match self {
            Self::Sessions => &[Region::Sessions, Region::Composer, Region::Page],
            Self::Session { .. } => SESSION,
            Self::Other => &[Region::Page],
        }
    }
}

/// What lies over a page. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Overlay {
    /// The list of keys.
    pub sheet: RwSignal<bool>,
    /// The question whether the run is to be stopped.
    pub stop: RwSignal<bool>,
}

impl Overlay {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            sheet: RwSignal::new(false),
            stop: RwSignal::new(false),
        }
    }

    /// That of the application.
    pub fn use_context() -> Self {
        use_context().unwrap_or_default()
    }
}

impl Default for Overlay {
    fn default() -> Self {
        Self::new()
    }
}
