//! What identifies a run and proves its content: ids, clocks, tokens, and the digest over what is shown.

use leptos::prelude::*;
use protocol::api::RunDigest;
use protocol::digest::digest;
use protocol::fold::RunState;

use super::words;
use crate::data::clock::{PageClock, TimeOfDay};
use crate::data::run_store::{Piece, RunStore};
use crate::data::session_store::SessionStore;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_view, effect, handler, memo};
use crate::ui::{CopyButton, format};

/// The digest of a run: on the server once the run is over; in the browser too, after hydration, or when it is asked for.
/// It is computed from what the page holds, not taken from anyone's word; where the page holds a part of the run, the
/// server computes it from the whole record, once the run `is_shown`.
pub fn digest_of(run: &RunStore, asked: Signal<bool>, is_shown: Signal<bool>) -> Memo<Option<String>> {
    let ready = RwSignal::new(cfg!(not(feature = "hydrate")));
    effect(move || ready.set(true));
    let told = RwSignal::new(None::<RunDigest>);
    #[cfg(feature = "hydrate")]
    ask(run.clone(), asked, is_shown, told);
    #[cfg(not(feature = "hydrate"))]
    let _ = is_shown;
    let run = run.clone();
    memo(move || {
        let is_over = run.status().is_final();
        let of_page = |state: &RunState| state.is_whole().then(|| digest(state));
        if !ready.get() {
            None
        } else if is_over {
            let (of_page, seq) = run.read(Piece::Seq, |state| (of_page(state), state.seq()));
            of_page.or_else(|| told.with(|told| known(told.as_ref(), |told| told == seq)))
        } else {
            // Of a run that goes on: as it stood when it was asked for.
            let of_page = asked.get().then(|| run.peek(of_page)).flatten();
            of_page.or_else(|| told.with(|told| known(told.as_ref(), |_| true)))
        }
    })
}

/// What the server told, where it is about such an op.
fn known(told: Option<&RunDigest>, fits: impl FnOnce(u64) -> bool) -> Option<String> {
    told.filter(|told| fits(told.seq)).map(|told| told.digest.clone())
}

/// Asks the server for the digest of a run of which the page holds a part.
#[cfg(feature = "hydrate")]
fn ask(run: RunStore, asked: Signal<bool>, is_shown: Signal<bool>, told: RwSignal<Option<RunDigest>>) {
    effect(move || {
        let is_over = run.status().is_final();
        let seq = if is_over {
            run.read(Piece::Seq, RunState::seq)
        } else {
            run.peek(RunState::seq)
        };
        let is_wanted = asked.get() || (is_over && is_shown.get());
        let is_known = told.with_untracked(|told| told.as_ref().is_some_and(|told| told.seq >= seq));
        if !is_wanted || is_known || run.peek(RunState::is_whole) {
            return;
        }
        let id = run.run_id().clone();
        leptos::task::spawn_local(async move {
            // Without it the page says that it is not known.
            if let Ok(answer) = crate::data::api::run_digest(&id).await {
                let _ = told.try_set(Some(answer));
            }
        });
    });
}

/// The information about a run: a disclosure, which also works without script.
#[component]
pub fn RunInfo(
    /// The run.
    run: RunStore,
    /// The digest, once it is known.
    digest: Memo<Option<String>>,
    /// Whether the information is looked at.
    asked: RwSignal<bool>,
) -> impl IntoView {
    let clock = PageClock::use_context();
    let run_id = run.run_id().to_string();
    let seq = {
        let run = run.clone();
        move || run.read(Piece::Seq, |state| format::count(state.seq()))
    };
    let generation = {
        let run = run.clone();
        move || run.read(Piece::Seq, protocol::fold::RunState::generation)
    };
    let status = {
        let run = run.clone();
        move || words::run_word(run.status())
    };
    let usage = {
        let run = run.clone();
        move || {
            run.run(|run| run.usage.as_ref().map(words::tokens))
                .unwrap_or_else(|| "not known yet".to_owned())
        }
    };
    let cost = {
        let run = run.clone();
        move || {
            run.run(|run| run.usage.as_ref().and_then(|usage| usage.cost))
                .map(|cost| format!("${cost:.4}"))
        }
    };
    let root = {
        let run = run.clone();
        memo(move || {
            run.read(Piece::Nodes, |state| {
                let root = state.root()?;
                let model = state
                    .children(&root.node_id)
                    .next()
                    .map(|node| node.node_id.clone());
                Some((
                    root.announced_at,
                    root.state.end().map(|end| end.finished_at),
                    model,
                ))
            })
        })
    };
    let provider = {
        let run = run.clone();
        memo(move || {
            let model = root.get().and_then(|root| root.2)?;
            let attempt = run.attempts(&model).pop()?;
            run.attempt(&attempt, |attempt| {
                format!("{} / {}", attempt.provider, attempt.model)
            })
        })
    };
    let times = dynamic_view(move || {
        root.get().map(|(start, end, _)| {
            view! {
                <dt>"Started"</dt>
                <dd><TimeOfDay at=start/></dd>
                {end.map(|end| view! { <dt>"Finished"</dt><dd><TimeOfDay at=end/></dd> })}
                <dt>"Duration"</dt>
                <dd>{dynamic(move || words::span(Some(start), end, clock))}</dd>
            }
        })
    });
    let digest_words = dynamic(move || match digest.get() {
        Some(digest) => digest,
        None => "computed when it is looked at".to_owned(),
    });
    let copied = std::sync::Arc::new(move || digest.get_untracked().unwrap_or_default());
    let exports = (!is_alone()).then(|| {
        let link = |format: &str, words: &'static str| {
            let href = format!("/api/runs/{run_id}/export?format={format}");
            view! { <a class="btn btn--quiet btn--sm" href=href download=true rel="external">{words}</a> }
        };
        let replay = use_context::<SessionStore>().map(|session| {
            let href = format!(
                "/s/{}?run={run_id}&at={}",
                untrack(|| session.session_id()),
                run.peek(RunState::seq)
            );
            view! { <a class="btn btn--quiet btn--sm" href=href rel="external">"Replay"</a> }
        });
        view! {
            <span class="runinfo__exports" role="group" aria-label="Export this run">
                {link("html", "Export as HTML")}
                {link("markdown", "as Markdown")}
                {link("json", "as JSON")}
                {replay}
            </span>
        }
    });
    let run_id = run_id.clone();
    view! {
        <details class="runinfo" on:toggle=handler(move |event| asked.set(is_open(&event)))>
            <summary class="btn btn--quiet btn--sm">"Run information"</summary>
            <dl class="facts">
                <dt>"Run"</dt>
                <dd class="mono">{run_id}</dd>
                <dt>"State"</dt>
                <dd>{status}</dd>
                <dt>"Model"</dt>
                <dd>{dynamic(move || provider.get().unwrap_or_else(|| "not chosen yet".to_owned()))}</dd>
                <dt>"Tokens"</dt>
                <dd>{usage}</dd>
                {dynamic_view(move || cost().map(|cost| view! { <dt>"Cost"</dt><dd>{cost}</dd> }))}
                {times}
                <dt>"Last op"</dt>
                <dd>{seq}</dd>
                <dt>"Generation"</dt>
                <dd>{generation}</dd>
                <dt>"Digest"</dt>
                <dd class="mono">{digest_words}</dd>
            </dl>
            <CopyButton label="Copy digest" text=copied/>
            {exports}
        </details>
    }
}

#[cfg(feature = "hydrate")]
fn is_open(event: &leptos::ev::Event) -> bool {
    event_target::<web_sys::Element>(event).has_attribute("open")
}

#[cfg(not(feature = "hydrate"))]
fn is_open(_: &leptos::ev::Event) -> bool {
    false
}
