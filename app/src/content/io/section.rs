//! One channel of a call: in the form that fits it, its size, and the ways to all of it and to the text as it came.

use std::borrow::Cow;
use std::sync::Arc;

use leptos::either::Either;
use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::model::{Node, Output};
use protocol::state::{Channel, NodeStatus};

use crate::content::partial_json::Fields;
use crate::content::pieces::{CODE, Cut, MARKDOWN, Measure, PLAIN, PieceControls, PieceList, Pieces, cut};
use crate::content::registry::{self, Variant};
use crate::content::scope::scoped;
use crate::content::views::{Answer, Draw, Drawing, Form, Shape, ansi};
#[cfg(feature = "hydrate")]
use crate::data::guide::Guide;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{CopyButton, format};

/// So many lines, and about so many bytes, are shown at first.
const STEP: (usize, usize) = (200, 32 * 1024);

/// One channel: its beginning, its size, and the ways to all of it.
#[component]
pub fn OutputSection(
    /// The run.
    run: RunStore,
    /// The node.
    node_id: NodeId,
    /// The channel.
    channel: Channel,
) -> impl IntoView {
    // Whether the text is shown as it came, though there is a view of it.
    let is_raw = RwSignal::new(false);
    let most = if is_alone() {
        (usize::MAX, usize::MAX)
    } else {
        STEP
    };
    #[cfg(feature = "hydrate")]
    {
        let (guide, subject) = (Guide::use_context(), node_id.to_string());
        crate::ui::dynamic::effect(move || {
            let place = guide.place_in(&subject, Some(channel));
            if place.is_some_and(|place| place.is_raw) {
                is_raw.set(true);
            }
        });
    }
    let shown = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            for piece in [channel, Channel::Arguments] {
                run.track(Piece::Output(node_id.clone(), piece));
            }
            run.node(&node_id, |node| Shown::of(node, channel, is_raw.get(), most))
                .flatten()
                .unwrap_or_else(|| Shown::nothing(channel))
        })
    };
    let title = memo(move || shown.with(|shown| shown.title));
    let form = memo(move || shown.with(|shown| (shown.form.clone(), shown.is_own)));
    let has_view = memo(move || shown.with(|shown| shown.has_view));
    let size = dynamic(move || {
        shown.with(|shown| {
            if shown.total > 0 {
                format::bytes(shown.total)
            } else {
                String::new()
            }
        })
    });
    let note = dynamic_view(move || {
        shown
            .with(|shown| (!shown.note.is_empty()).then(|| shown.note.clone()))
            .map(|note| view! { <span class="io__note">{note}</span> })
    });
    let copied = {
        let (run, node_id) = (run.clone(), node_id.clone());
        Arc::new(move || {
            run.peek(|state| copy(state.node(&node_id)?, channel, is_raw.get_untracked()))
                .unwrap_or_default()
        })
    };
    let copy_button = dynamic_view(move || {
        let (label, text) = (copy_label(title.get()), copied.clone());
        view! { <CopyButton label icon_only=true text/> }
    });
    let raw_button = dynamic_view(move || {
        (has_view.get() && most == STEP).then(|| {
            view! {
                <button
                    type="button"
                    class="btn btn--quiet btn--sm"
                    aria-pressed=dynamic(move || is_raw.get().to_string())
                    title="The text as it came"
                    on:click=handler(move |_| is_raw.update(|is_raw| *is_raw = !*is_raw))
                >
                    "Raw"
                </button>
            }
        })
    });
    let body = dynamic_view(move || {
        let (run, node_id) = (run.clone(), node_id.clone());
        let (form, _) = form.get();
        let is_raw = is_raw.get();
        view! { <SectionBody run node_id channel is_raw form shown/> }
    });
    view! {
        <section class="io" data-channel=channel.as_str()>
            <div class="io__head">
                <span class="io__title">{dynamic(move || title.get())}</span>
                {note}
                <span class="num">{size}</span>
                {raw_button}
                {copy_button}
            </div>
            {body}
        </section>
    }
}

/// The text of a channel in one form.
#[component]
fn SectionBody(
    run: RunStore,
    node_id: NodeId,
    channel: Channel,
    is_raw: bool,
    form: Form,
    shown: Memo<Shown>,
) -> impl IntoView {
    let address = format!("/api/nodes/{node_id}/output?channel={channel}");
    let prefix = scoped(format_args!("{node_id}-{channel}"));
    let subject = node_id.to_string();
    let measure = measure(&form);
    let local = move |start: u64| {
        run.peek(|state| {
            let node = state.node(&node_id)?;
            let (text, is_whole) = text_of(node, channel, is_raw)?;
            let rest = text.get(usize::try_from(start).ok()?..)?;
            let length = usize::try_from(measure.step).unwrap_or(usize::MAX);
            let piece = rest.get(..rest.floor_char_boundary(length))?;
            // The rest of what is here of a longer text is fetched with what follows it.
            let is_enough = piece.len() < rest.len() || is_whole;
            (is_enough && !piece.is_empty()).then(|| piece.to_owned())
        })
    };
    let extent = Signal::derive(move || shown.with(|shown| (shown.bytes, shown.total)));
    let pieces = Pieces::new(address, extent, measure)
        .with_local(Arc::new(local))
        .follow(subject, Some(channel));
    let has_more = memo(move || shown.with(|shown| shown.bytes < shown.total));
    let class = match &form {
        Form::Wrapped => "pre pre--wrap",
        Form::Diff => "pre diff",
        Form::Terminal => "pre pre--wrap ansi",
        Form::Hits { .. } => "pre pre--hits",
        Form::Markdown => "io__md",
        Form::Plain | Form::Code { .. } => "pre",
    };
    let is_markdown = form == Form::Markdown;
    let draw = Draw::new(form, prefix);
    let first = dynamic(move || {
        shown.with(|shown| {
            draw.piece(Drawing {
                start: 0,
                text: &shown.text,
                is_settled: shown.is_settled,
            })
        })
    });
    let rest = dynamic_view(move || {
        has_more.get().then(|| {
            let later = move |start: u64, text: String| {
                draw.piece(Drawing {
                    start,
                    text: &text,
                    is_settled: true,
                })
            };
            view! { <PieceList pieces draw=Arc::new(later)/> }
        })
    });
    let more = dynamic_view(move || has_more.get().then(|| view! { <PieceControls pieces/> }));
    let title = dynamic(move || shown.with(|shown| shown.title));
    let text = if is_markdown {
        Either::Left(view! { <div class=class>{first}{rest}</div> })
    } else {
        Either::Right(
            view! { <pre class=class tabindex="0" role="group" aria-label=title>{first}{rest}</pre> },
        )
    };
    view! {
        {text}
        {more}
    }
}

/// Forms that make many elements are loaded in smaller pieces.
fn measure(form: &Form) -> Measure {
    match form {
        Form::Plain | Form::Wrapped => PLAIN,
        Form::Markdown => MARKDOWN,
        Form::Code { .. } | Form::Diff | Form::Terminal | Form::Hits { .. } => CODE,
    }
}

/// The labels of the copy buttons are fixed.
fn copy_label(title: &str) -> &'static str {
    match title {
        "Arguments" => "Copy arguments",
        "Change" => "Copy change",
        "Command" => "Copy command",
        "Content" => "Copy content",
        "Log" => "Copy log",
        "Program" => "Copy program",
        "Prompt" => "Copy prompt",
        "Return value" => "Copy return value",
        _ => "Copy",
    }
}

/// The channel as it came.
fn raw(channel: Channel) -> Shape {
    match channel {
        Channel::Arguments => Shape::of("Arguments", Form::Wrapped),
        Channel::Log => Shape::of("Log", Form::Plain),
        Channel::Result => Shape::of("Return value", Form::Plain),
    }
}

/// The view of a channel, where its tool has one and the data fits.
fn view_of(node: &Node, channel: Channel) -> Option<Shape> {
    let output = node.outputs.get(&channel)?;
    let view = registry::view_of(&node.name);
    let arguments = || node.outputs.get(&Channel::Arguments);
    let raw = || arguments().map_or("", |arguments| arguments.text.as_str());
    match channel {
        // A text of its own is made of the whole only.
        Channel::Arguments if left_out(output).is_some() => None,
        Channel::Arguments => (view.arguments)(&Fields::read(raw()), raw()),
        Channel::Log => {
            let has_escapes = output.text.contains(['\u{1b}', '\u{9b}', '\r', '\u{8}']);
            has_escapes.then(|| Shape::of("Log", Form::Terminal))
        }
        Channel::Result => {
            let fields = Fields::read(raw());
            let shape = (view.output)(&Answer {
                fields: &fields,
                output,
                is_whole: left_out(output).is_none(),
            })?;
            let exit = node.state.end().and_then(|end| end.exit_code);
            Some(match exit {
                Some(code) if view.variant == Variant::Shell && shape.note.is_empty() => {
                    shape.noted(format!("exit {code}"))
                }
                _ => shape,
            })
        }
    }
}

/// The shape in which a channel is shown.
fn shape_of(node: &Node, channel: Channel, is_raw: bool) -> Shape {
    let view = if is_raw { None } else { view_of(node, channel) };
    view.unwrap_or_else(|| raw(channel))
}

/// The text that is shown, as far as it is at hand, and whether that is all of it.
fn text_of(node: &Node, channel: Channel, is_raw: bool) -> Option<(Cow<'_, str>, bool)> {
    let output = node.outputs.get(&channel)?;
    Some(match shape_of(node, channel, is_raw).text {
        Some(text) => (Cow::Owned(text), true),
        None => (Cow::Borrowed(&output.text), left_out(output).is_none()),
    })
}

/// What the copy button gives: the text that is shown; where only a part of it is at hand, that is said.
fn copy(node: &Node, channel: Channel, is_raw: bool) -> Option<String> {
    let (text, is_whole) = text_of(node, channel, is_raw)?;
    let text = match shape_of(node, channel, is_raw).form {
        Form::Terminal => ansi::plain(&text),
        _ => text.into_owned(),
    };
    if is_whole {
        return Some(text);
    }
    let (at_hand, bytes) = (text.len(), node.outputs.get(&channel).and_then(left_out)?);
    Some(text + &format!("\n[{at_hand} of {bytes} bytes: the rest is behind “Open whole”]"))
}

/// The beginning of a text, as much of it as is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Shown {
    title: &'static str,
    note: String,
    form: Form,
    /// Whether the text is one of its own and not that of the channel.
    is_own: bool,
    /// Whether there is a view beside the text as it came.
    has_view: bool,
    is_settled: bool,
    text: String,
    bytes: u64,
    total: u64,
}

impl Shown {
    /// Nothing has come yet.
    fn nothing(channel: Channel) -> Self {
        let Shape { title, form, .. } = raw(channel);
        Self {
            title,
            form,
            ..Self::default()
        }
    }

    /// At most so many lines and bytes of what a channel holds.
    fn of(node: &Node, channel: Channel, is_raw: bool, most: (usize, usize)) -> Option<Self> {
        let output = node.outputs.get(&channel)?;
        let view = view_of(node, channel).filter(|shape| !shape.is_raw());
        let has_view = view.is_some();
        let shape = view
            .filter(|_| !is_raw)
            .unwrap_or_else(|| shape_of(node, channel, is_raw));
        let known = shape.text.as_deref().unwrap_or(&output.text);
        let mut text = beginning(known, most);
        let total = match (&shape.text, left_out(output)) {
            (None, Some(bytes)) => bytes,
            _ => known.len() as u64,
        };
        if shape.form == Form::Markdown && (text.len() as u64) < total {
            text = text.get(..cut(text, Cut::Paragraph)).unwrap_or(text);
        }
        let status = node.state.status();
        let is_settled = match channel {
            Channel::Arguments => !matches!(status, NodeStatus::Pending),
            Channel::Log | Channel::Result => status.is_final(),
        };
        Some(Self {
            title: shape.title,
            bytes: text.len() as u64,
            text: text.to_owned(),
            note: shape.note,
            is_own: shape.text.is_some(),
            form: shape.form,
            has_view,
            is_settled,
            total,
        })
    }
}

/// At most so many lines and bytes of a text, cut at a character.
fn beginning(text: &str, (lines, bytes): (usize, usize)) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        let room = bytes.saturating_sub(end);
        end += line.floor_char_boundary(room);
        if line.len() > room {
            break;
        }
    }
    text.get(..end).unwrap_or(text)
}

/// How long the whole is, when only its beginning is here.
fn left_out(output: &Output) -> Option<u64> {
    match &output.content_ref {
        Some(whole) => Some(whole.bytes),
        None => output.is_open_preview().then_some(output.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_lines_bytes_and_characters() {
        let text = "a\nbé\nc";
        assert_eq!(beginning(text, (2, 100)), "a\nbé\n");
        assert_eq!(beginning(text, (9, 4)), "a\nb");
        assert_eq!(beginning(text, (9, 100)), text);
        assert_eq!(beginning("", (9, 100)), "");
    }
}
