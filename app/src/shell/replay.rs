//! A run as it was: a bar with which the page goes to any op of a run's journal, and plays on from there. The content is
//! the page's own, of the same fold. Without script the bar is a form and links.

use leptos::prelude::*;
use protocol::api::{Mark, MarkKind};
use protocol::fold::RunState;
use protocol::id::{RunId, SessionId};
use protocol::model::Timestamp;

use crate::data::clock::{PageClock, TimeOfDay};
use crate::data::port::Replay;
use crate::data::run_store::RunStore;
use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{Icon, IconName, format};

#[cfg(feature = "hydrate")]
mod browser;

/// How fast it plays: so many milliseconds of the run in one of the reader's.
const SPEEDS: [u32; 5] = [1, 2, 5, 20, 100];

/// So many marks are drawn.
const MOST_MARKS: usize = 300;

/// The run that the page replays, in context.
#[derive(Clone)]
pub struct Replaying(pub RunId);

/// Whether the page replays a run.
pub fn is_replaying() -> bool {
    use_context::<Replaying>().is_some()
}

/// The address of a run at an op.
pub fn href(session: &SessionId, run: &RunId, seq: u64) -> String {
    format!("/s/{session}?run={run}&at={seq}")
}

/// The time of the last thing that a state knows of.
pub fn moment_of(state: &RunState) -> Timestamp {
    let nodes = state.nodes().iter().flat_map(|node| {
        let end = node.state.end().map(|end| end.finished_at);
        [Some(node.announced_at), node.started_at, end]
    });
    let attempts = state.attempts().iter().map(|attempt| {
        Some(
            attempt
                .state
                .end()
                .map_or(attempt.started_at, |end| end.finished_at),
        )
    });
    let blocks = state.blocks().iter().map(|block| Some(block.started_at));
    let messages = state.messages().iter().map(|message| Some(message.at));
    let times = nodes.chain(attempts).chain(blocks).chain(messages);
    times.flatten().max().unwrap_or_default()
}

/// What the bar does. A copy is another handle on it.
#[derive(Clone, Copy)]
struct Player {
    run: StoredValue<RunStore>,
    /// The op that is shown, or was asked for last.
    seq: RwSignal<u64>,
    last: u64,
    is_playing: RwSignal<bool>,
    speed: RwSignal<u32>,
    failed: RwSignal<Option<String>>,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser plays")
    )]
    clock: PageClock,
}

/// The bar over the content of a run that is replayed.
#[component]
pub fn ReplayBar(
    /// What the page was loaded with.
    replay: Replay,
    /// The run.
    run: RunStore,
    /// The session.
    session: SessionStore,
) -> impl IntoView {
    let clock = PageClock::use_context();
    clock.stand_at(run.peek(moment_of));
    on_cleanup(move || clock.go_on());
    let player = Player {
        run: StoredValue::new(run.clone()),
        seq: RwSignal::new(replay.seq),
        last: replay.last,
        is_playing: RwSignal::new(false),
        speed: RwSignal::new(SPEEDS[0]),
        failed: RwSignal::new(None),
        clock,
    };
    #[cfg(feature = "hydrate")]
    browser::start(player);
    let session_id = untrack(|| session.session_id());
    let run_id = run.run_id().clone();
    let link = {
        let (session, run) = (session_id.clone(), run_id.clone());
        move |seq: u64| href(&session, &run, seq)
    };
    let marks = StoredValue::new(replay.marks);
    let seq = player.seq;
    let before =
        memo(move || marks.with_value(|marks| marks.iter().rev().find(|mark| mark.seq < seq.get()).cloned()));
    let after =
        memo(move || marks.with_value(|marks| marks.iter().find(|mark| mark.seq > seq.get()).cloned()));
    let step = {
        let link = link.clone();
        move |mark: Memo<Option<Mark>>, words: &'static str, icon: IconName| {
            let link = link.clone();
            dynamic_view(move || {
                let link = link.clone();
                mark.get().map(|mark| {
                    let title = format!("{words}: {}", mark.words);
                    let to = mark.seq;
                    view! {
                        <a
                            class="btn btn--quiet btn--sm btn--icon"
                            href=link(to)
                            aria-label=title.clone()
                            title=title
                            on:click=handler(move |event: leptos::ev::MouseEvent| {
                                event.prevent_default();
                                player.go(to);
                            })
                        >
                            <Icon icon/>
                        </a>
                    }
                })
            })
        }
    };
    let words = dynamic(move || {
        format!(
            "op {} of {}",
            format::count(seq.get()),
            format::count(player.last)
        )
    });
    let time = dynamic_view(move || Some(view! { <TimeOfDay at=clock.now()/> }));
    let address = {
        let link = link.clone();
        dynamic(move || link(seq.get()))
    };
    let speeds: Vec<_> = SPEEDS
        .into_iter()
        .map(|speed| view! { <option value=speed.to_string()>{format!("{speed}×")}</option> })
        .collect();
    view! {
        <form class="replay" method="get" action=format!("/s/{session_id}") role="group" aria-label="Replay">
            <input type="hidden" name="run" value=run_id.to_string()/>
            <div class="replay__line">
                <Marks marks player/>
                <input
                    type="range"
                    class="replay__range"
                    name="at"
                    min="0"
                    max=player.last.to_string()
                    step="1"
                    value=replay.seq.to_string()
                    prop:value=move || seq.get().to_string()
                    aria-label="Op of the run"
                    aria-valuetext=words.clone()
                    on:input=handler(move |event: leptos::ev::Event| player.drag(&event))
                />
            </div>
            <div class="replay__bar">
                <span class="replay__play"><PlayButton player/></span>
                {step(before, "Mark before", IconName::Up)}
                {step(after, "Next mark", IconName::Down)}
                <label class="replay__speed">
                    <span class="sr-only">"Speed"</span>
                    <select class="btn btn--sm" on:change=handler(move |event: leptos::ev::Event| player.choose(&event))>
                        {speeds}
                    </select>
                </label>
                <span class="num" role="status">{words}</span>
                {time}
                {dynamic_view(move || player.failed.get().map(|failed| view! { <span class="tag tag--warn" role="alert">{failed}</span> }))}
                <span class="topbar__gap"></span>
                <noscript><button type="submit" class="btn btn--sm">"Show"</button></noscript>
                <a class="btn btn--quiet btn--sm" href=address rel="external">"Link to here"</a>
                <a class="btn btn--sm" href=format!("/s/{session_id}") rel="external">"End replay"</a>
            </div>
        </form>
    }
}

#[component]
fn PlayButton(player: Player) -> impl IntoView {
    let label = dynamic(move || if player.is_playing.get() { "Pause" } else { "Play" });
    let icon = Signal::derive(move || match player.is_playing.get() {
        true => IconName::Stop,
        false => IconName::Play,
    });
    view! {
        <button
            type="button"
            class="btn btn--sm"
            aria-pressed=dynamic(move || player.is_playing.get().to_string())
            on:click=handler(move |_| player.toggle())
        >
            <Icon icon small=true/>
            {label}
        </button>
    }
}

/// The marks over the range: attempts, calls, stalls, notices.
#[component]
fn Marks(marks: StoredValue<Vec<Mark>>, player: Player) -> impl IntoView {
    let last = player.last.max(1);
    let drawn: Vec<_> = marks.with_value(|marks| {
        let step = marks.len().div_ceil(MOST_MARKS).max(1);
        let shown = marks.iter().enumerate().filter(|(place, mark)| {
            // Of very many calls some are left out; the rest is rare.
            mark.kind != MarkKind::Tool || place % step == 0
        });
        let draw = |(_, mark): (usize, &Mark)| {
            #[expect(clippy::cast_precision_loss, reason = "a place on the screen")]
            let place = mark.seq as f64 / last as f64 * 100.0;
            view! {
                <line class=class(mark.kind) x1=format!("{place:.3}%") x2=format!("{place:.3}%") y1="0" y2="100%">
                    <title>{format!("op {}: {}", mark.seq, mark.words)}</title>
                </line>
            }
        };
        shown.map(draw).collect()
    });
    view! { <svg class="replay__marks" aria-hidden="true" width="100%" height="10">{drawn}</svg> }
}

fn class(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Attempt => "mark mark--attempt",
        MarkKind::Tool => "mark mark--tool",
        MarkKind::Stall => "mark mark--stall",
        MarkKind::Notice => "mark mark--notice",
    }
}

#[cfg(not(feature = "hydrate"))]
impl Player {
    fn go(self, _: u64) {}
    fn drag(self, _: &leptos::ev::Event) {}
    fn choose(self, _: &leptos::ev::Event) {}
    fn toggle(self) {
        let _ = (self.run, self.speed);
    }
}
