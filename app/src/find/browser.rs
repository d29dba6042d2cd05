//! What only the browser does: asks the server, goes from hit to hit, and shows the place of one.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use leptos::prelude::*;
use protocol::search::{SearchField, SearchHit, query};
use web_sys::{Element, Range};

use super::marks::{self, Wanted};
use super::{Find, Search};
use crate::data::api;
use crate::data::expansion::Expansion;
use crate::data::guide::{self, Arrived, Goal, TextPlace};
use crate::data::run_store::RunStore;
use crate::data::selection::{Part, Selection};
use crate::shell::focus::{active, find as find_element, focus_in_place, scroll_to};
use crate::shell::keys::{self, Command, Region};
use crate::ui::dynamic::effect;

/// After so long without a further letter the server is asked.
const PAUSE: Duration = Duration::from_millis(200);

/// Hits that are asked for at once.
const MOST: u32 = 200;

/// So long a place may be on its way into the page, in milliseconds: pieces of long texts are loaded meanwhile.
const PATIENCE: f64 = 10_000.0;

/// Where nothing is loaded, what is not found within so many frames is not drawn as it was written.
const FRAMES: u32 = 40;

thread_local! {
    /// Where the focus was when the bar was opened.
    static OPENED_FROM: RefCell<Option<Element>> = const { RefCell::new(None) };
    /// Counts what the user did: an answer to something earlier is not heeded.
    static TURN: Cell<u32> = const { Cell::new(0) };
    /// How far the runs were when the server answered.
    static ANSWERED_AT: Cell<u64> = const { Cell::new(0) };
}

fn next_turn() -> u32 {
    TURN.with(|turn| {
        turn.set(turn.get().wrapping_add(1));
        turn.get()
    })
}

fn is_turn(turn: u32) -> bool {
    TURN.with(Cell::get) == turn
}

pub(super) fn start(find: Find) {
    marks::start();
    let selection = Selection::use_context();
    let expansion = Expansion::use_context();
    GOING.with_borrow_mut(|going| *going = Some((selection, expansion)));
    on_cleanup(|| {
        next_turn();
        marks::clear();
        GOING.with_borrow_mut(|going| *going = None);
        OPENED_FROM.with_borrow_mut(|opener| *opener = None);
    });
    // An address may ask for something.
    let asked = leptos_router::hooks::use_query_map().with_untracked(|query| query.get("q"));
    if let Some(asked) = asked.filter(|asked| !asked.trim().is_empty()) {
        effect(move || {
            find.query.set(asked.clone());
            find.open();
        });
    }
}

thread_local! {
    static GOING: RefCell<Option<(Selection, Expansion)>> = const { RefCell::new(None) };
}

impl Find {
    /// Opens the bar and gives its field the focus.
    pub fn open(self) {
        let focused = active().filter(|element| element.closest(".find").ok().flatten().is_none());
        if !self.is_open.get_untracked() {
            OPENED_FROM.with_borrow_mut(|opener| *opener = focused);
            self.is_open.set(true);
            if !self.query.with_untracked(String::is_empty) {
                self.ask(None);
            }
        }
        request_animation_frame(move || {
            if let Some(Some(field)) = self.field.try_get_untracked() {
                let _ = field.focus();
                field.select();
            }
        });
    }

    /// Whether the bar is there.
    pub fn is_open(self) -> bool {
        self.is_open.get_untracked()
    }

    /// Closes it, and gives the focus back.
    pub fn close(self) {
        next_turn();
        self.is_open.set(false);
        self.current.set(None);
        self.note.set(None);
        self.search.set(Search::None);
        self.hits.set(Vec::new());
        self.next.set(None);
        self.guide.lead_to_text(None);
        marks::clear();
        let opener = OPENED_FROM.with_borrow_mut(Option::take);
        let opener = opener.filter(|element| element.is_connected() && element.tag_name() != "BODY");
        if let Some(element) = opener.or_else(|| find_element(".main__scroll")) {
            focus_in_place(&element);
        }
    }

    /// Something was written.
    pub(super) fn written(self) {
        let Some(Some(field)) = self.field.try_get_untracked() else {
            return;
        };
        let text = field.value();
        self.query.set(text.clone());
        let turn = next_turn();
        self.current.set(None);
        self.note.set(None);
        // Of other words nothing is known yet.
        self.hits.set(Vec::new());
        self.next.set(None);
        if query(&text).is_err() {
            self.search.set(Search::None);
            return marks::clear();
        }
        self.search.set(Search::Asked);
        set_timeout(
            move || {
                if is_turn(turn) {
                    self.ask(None);
                }
            },
            PAUSE,
        );
    }

    /// A key within the bar.
    pub(super) fn key(self, event: &leptos::ev::KeyboardEvent) {
        let in_field = active().is_some_and(|element| element.id() == "find");
        match keys::pressed(Region::Find, event) {
            // On a button they press it.
            Some(Command::NextHit) if !in_field && event.key() == "Enter" => return,
            Some(Command::NextHit) if event.shift_key() => self.step(-1),
            Some(Command::NextHit) => self.step(1),
            Some(Command::PreviousHit) => self.step(-1),
            Some(Command::Close) => self.close(),
            _ => return,
        }
        event.prevent_default();
    }

    /// Asks the server, and goes on with a step then.
    fn ask(self, then: Option<isize>) {
        let text = self.query.get_untracked();
        let Ok(words) = query(&text).map(str::to_owned) else {
            return;
        };
        let turn = next_turn();
        let kept = untrack(|| self.hit());
        self.search.set(Search::Asked);
        ANSWERED_AT.set(self.seq());
        leptos::task::spawn_local(async move {
            let answer = self.read(&words, None, turn).await;
            if !is_turn(turn) || self.is_open.try_get_untracked() != Some(true) {
                return;
            }
            match answer {
                Ok((hits, next)) => {
                    let is_kept = |hit: &SearchHit| kept.as_ref().is_some_and(|kept| is_same(kept, hit));
                    let current = hits.iter().position(is_kept);
                    self.hits.set(hits);
                    self.next.set(next);
                    self.search.set(Search::Done);
                    self.current.set(current);
                    marks::look_for(&words);
                    if let Some(by) = then {
                        self.step_known(by);
                    }
                }
                Err(problem) => {
                    self.hits.set(Vec::new());
                    self.next.set(None);
                    self.current.set(None);
                    self.search.set(Search::Failed(problem));
                    marks::clear();
                }
            }
        });
    }

    /// Reads hits until there are enough; a long search is answered in several parts.
    async fn read(
        self,
        words: &str,
        after: Option<String>,
        turn: u32,
    ) -> Result<(Vec<SearchHit>, Option<String>), String> {
        let session = untrack(|| self.session.session_id());
        let (mut hits, mut next) = (Vec::new(), after);
        loop {
            let page = api::search(&session, words, next.as_deref(), MOST).await;
            let page = page.map_err(|problem| problem.detail)?;
            hits.extend(page.hits);
            next = page.next;
            if next.is_none() || hits.len() >= MOST as usize || !is_turn(turn) {
                return Ok((hits, next));
            }
        }
    }

    /// Goes to the next hit, or to the one before.
    pub fn step(self, by: isize) {
        if query(&self.query.get_untracked()).is_err() {
            return;
        }
        let is_done = self.search.with_untracked(|search| *search == Search::Done);
        // What has been written since is found too.
        if !is_done || ANSWERED_AT.get() != self.seq() {
            return self.ask(Some(by));
        }
        self.step_known(by);
    }

    fn step_known(self, by: isize) {
        let count = self.hits.with_untracked(Vec::len);
        if count == 0 {
            return;
        }
        let Some(current) = self.current.get_untracked() else {
            let place = self.hits.with_untracked(|hits| marks::nearest(hits, by > 0));
            return self.go(place);
        };
        let next = current.checked_add_signed(by);
        match next {
            Some(place) if place < count => self.go(place),
            Some(_) if self.next.with_untracked(Option::is_some) => self.more(),
            Some(_) => self.go(0),
            None => self.go(count - 1),
        }
    }

    /// Asks for further hits, and goes to the first of them.
    fn more(self) {
        let text = self.query.get_untracked();
        let turn = next_turn();
        let (count, after) = (self.hits.with_untracked(Vec::len), self.next.get_untracked());
        leptos::task::spawn_local(async move {
            let Ok(words) = query(&text) else { return };
            let answer = self.read(words, after, turn).await;
            if !is_turn(turn) || self.is_open.try_get_untracked() != Some(true) {
                return;
            }
            match answer {
                Ok((more, next)) => {
                    let is_any = !more.is_empty();
                    self.hits.update(|hits| hits.extend(more));
                    self.next.set(next);
                    self.go(if is_any { count } else { 0 });
                }
                Err(problem) => self.search.set(Search::Failed(problem)),
            }
        });
    }

    /// Leads the page to a hit.
    fn go(self, place: usize) {
        let Some(hit) = self.hits.with_untracked(|hits| hits.get(place).cloned()) else {
            return;
        };
        let Some((selection, expansion)) = GOING.with_borrow(Clone::clone) else {
            return;
        };
        let turn = next_turn();
        self.current.set(Some(place));
        self.note.set(None);
        self.follow.leave();
        self.guide.lead_to_text(TextPlace::of(&hit));
        let means = guide::Means {
            session: self.session,
            selection,
            guide: self.guide,
            expansion,
        };
        guide::go(means, Goal::of(&hit), move |arrived| {
            if !is_turn(turn) {
                return;
            }
            match arrived {
                Some(arrived) => {
                    let until = js_sys::Date::now() + PATIENCE;
                    self.show(turn, hit, arrived, until, 0);
                }
                None => self.note.set(Some("It cannot be loaded now.")),
            }
        });
    }

    /// Marks the place once it is drawn, and scrolls there.
    fn show(self, turn: u32, hit: SearchHit, arrived: Arrived, until: f64, frame: u32) {
        if !is_turn(turn) || self.is_open.try_get_untracked() != Some(true) {
            return;
        }
        let wanted = self.wanted(&hit);
        let found = marks::occurrence(&roots(&hit, &arrived), &wanted);
        let is_late = js_sys::Date::now() > until || (frame >= FRAMES && !self.guide.is_loading());
        match found {
            Some((range, is_sure)) if is_sure || is_late => {
                bring(&range);
                let again = move || {
                    let is_there = arrived.element.is_connected();
                    let found = is_there.then(|| marks::occurrence(&roots(&hit, &arrived), &wanted));
                    found.flatten().map(|(range, _)| range)
                };
                marks::set_current(range, again);
                if !is_sure {
                    self.note.set(Some("The nearest place is marked."));
                }
            }
            None if is_late => {
                scroll_to(&arrived.element);
                marks::set_row(&arrived.element);
                self.note
                    .set(Some("Its row is in sight; the place itself is not drawn."));
            }
            _ => {
                // A view shows some of what a call was given; the text as it came holds all of it.
                if frame == FRAMES / 2 {
                    let raw = TextPlace::of(&hit).filter(|place| place.channel.is_some());
                    if let Some(place) = raw {
                        self.guide.lead_to_text(Some(TextPlace {
                            is_raw: true,
                            ..place
                        }));
                    }
                }
                if frame % 8 == 4 {
                    self.approach(&hit, &arrived.element);
                }
                request_animation_frame(move || self.show(turn, hit, arrived, until, frame + 1));
            }
        }
    }

    /// Of a long text only what is near is in the page: it is scrolled to about where the place is.
    fn approach(self, hit: &SearchHit, element: &Element) {
        let is_partial = element
            .query_selector(":scope > .md__space")
            .ok()
            .flatten()
            .is_some();
        let (Some(block), true) = (&hit.block_id, is_partial) else {
            return;
        };
        let run = untrack(|| self.session.runs())
            .into_iter()
            .find(|run| *run.run_id() == hit.run_id);
        let total =
            run.and_then(|run| run.peek(|state| Some(state.block(block)?.body.content()?.text.len())));
        let share = hit.offset as f64 / total.unwrap_or(0).max(1) as f64;
        let bounds = element.get_bounding_client_rect();
        if let Some(scroller) = element.closest(".main__scroll, #details").ok().flatten() {
            let view = scroller.get_bounding_client_rect();
            let at = bounds.top() + share.min(1.0) * bounds.height();
            let by = at - (view.top() + view.height() / 2.0);
            scroller.set_scroll_top(scroller.scroll_top() + by as i32);
        }
    }

    /// What is to be found in the page, and which of its likes it is.
    fn wanted(self, hit: &SearchHit) -> Wanted {
        let left_out = self.guide.left_out();
        let is_left_out = |offset: u64| left_out.is_some_and(|(from, to)| (from..to).contains(&offset));
        let rank = self.hits.with_untracked(|hits| {
            let same_text = hits.iter().filter(|other| is_of_text(other, hit));
            let before = same_text.filter(|other| other.offset < hit.offset && !is_left_out(other.offset));
            before
                .filter(|other| other.before == hit.before && other.after == hit.after)
                .count()
        });
        Wanted {
            found: hit.found.clone(),
            before: hit.before.clone(),
            after: hit.after.clone(),
            rank,
        }
    }

    /// How far the runs are.
    fn seq(self) -> u64 {
        let runs = untrack(|| self.session.runs());
        runs.iter()
            .map(|run: &RunStore| run.peek(protocol::fold::RunState::seq))
            .sum()
    }
}

fn is_of_text(one: &SearchHit, other: &SearchHit) -> bool {
    one.field == other.field
        && one.node_id == other.node_id
        && one.block_id == other.block_id
        && one.message_id == other.message_id
        && one.attempt_id == other.attempt_id
        && one.run_id == other.run_id
}

fn is_same(one: &SearchHit, other: &SearchHit) -> bool {
    is_of_text(one, other) && one.offset == other.offset
}

/// The elements in which the text of a hit is drawn.
fn roots(hit: &SearchHit, arrived: &Arrived) -> Vec<Element> {
    let within = |selector: &str| arrived.element.query_selector(selector).ok().flatten();
    match hit.field {
        SearchField::Arguments | SearchField::Log | SearchField::Result => {
            let section = format!("[data-channel=\"{}\"]", hit.field.as_str());
            let found = match arrived.part {
                Part::Details => find_element(&format!("#details .sheet {section}")),
                Part::Content | Part::Tree => within(&format!(":scope > .row__body {section}")),
            };
            found.into_iter().collect()
        }
        SearchField::Name | SearchField::Title => {
            let toggle = within(":scope > .row__toggle");
            vec![toggle.unwrap_or_else(|| arrived.element.clone())]
        }
        SearchField::Error | SearchField::Progress if arrived.part == Part::Details => {
            find_element("#details .sheet").into_iter().collect()
        }
        SearchField::Text | SearchField::Reasoning => {
            let mut roots = vec![arrived.element.clone()];
            if let Some(block) = &hit.block_id {
                roots.extend(marks::all(&format!("[data-part-of=\"{block}\"]")));
            }
            roots
        }
        _ => vec![arrived.element.clone()],
    }
}

/// Scrolls all that scrolls around a place as little as is needed to see it.
fn bring(range: &Range) {
    /// What lies over the top of the content, and some room.
    const ABOVE: f64 = 96.0;
    const BELOW: f64 = 48.0;
    let mut next = range
        .start_container()
        .ok()
        .and_then(|node| node.parent_element());
    while let Some(element) = next {
        let is_page = element.matches(".main__scroll, #details") == Ok(true);
        let can_scroll =
            is_page || element.tag_name() == "PRE" || element.class_list().contains("md__scroll");
        if can_scroll {
            let (place, view) = (
                range.get_bounding_client_rect(),
                element.get_bounding_client_rect(),
            );
            let (above, below) = if is_page { (ABOVE, BELOW) } else { (8.0, 8.0) };
            let (top, bottom) = (view.top() + above, view.bottom() - below);
            if place.top() < top || place.bottom() > bottom {
                // A third of the way down.
                let by =
                    place.top() - (view.top() + (view.height() / 3.0).max(above.min(view.height() / 2.0)));
                element.set_scroll_top(element.scroll_top() + by as i32);
            }
            if place.left() < view.left() || place.right() > view.right() {
                let by = place.left() - (view.left() + view.width() / 3.0);
                element.set_scroll_left(element.scroll_left() + by as i32);
            }
        }
        next = element.parent_element();
    }
}
