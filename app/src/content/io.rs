//! What a call was given, reported and gave back: error, arguments, progress, log and return value, each apart.

use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::model::Output;
use protocol::state::{Channel, NodeStatus};

use super::partial_json::Fields;
use super::pieces::{PLAIN, PieceControls, PieceList, Pieces};
use super::registry;
use super::words;
use crate::data::run_store::RunStore;
use crate::ui::{CopyButton, Icon, IconName, format};

/// So many lines, and about so many bytes, are shown at first.
const STEP: (usize, usize) = (200, 32 * 1024);

/// All parts of a call, in the body of its row and in the details panel alike.
#[component]
pub fn IoSections(
    /// The run.
    run: RunStore,
    /// The node.
    node_id: NodeId,
) -> impl IntoView {
    let (title, field) = run
        .peek(|state| {
            state
                .node(&node_id)
                .map(|node| registry::view_of(&node.name).arguments)
        })
        .unwrap_or(("Arguments", None));
    let log =
        {
            let (run, node_id) = (run.clone(), node_id.clone());
            let has_log = Memo::new({
                let (run, node_id) = (run.clone(), node_id.clone());
                move |_| {
                    run.output(&node_id, Channel::Log, |output| {
                        output.bytes > 0 || !output.text.is_empty()
                    }) == Some(true)
                }
            });
            move || {
                has_log.get().then(|| view! {
                <OutputSection run=run.clone() node_id=node_id.clone() channel=Channel::Log title="Log"/>
            })
            }
        };
    view! {
        <ErrorSection run=run.clone() node_id=node_id.clone()/>
        <OutputSection run=run.clone() node_id=node_id.clone() channel=Channel::Arguments title field/>
        <ProgressSection run=run.clone() node_id=node_id.clone()/>
        {log}
        <ResultSection run node_id/>
    }
}

#[component]
fn ErrorSection(run: RunStore, node_id: NodeId) -> impl IntoView {
    let error = Memo::new(move |_| {
        run.node(&node_id, |node| {
            node.state.end().and_then(|end| end.error.clone())
        })
        .flatten()
    });
    move || {
        error.get().map(|error| {
            let copied = format!("{}: {}", error.code, error.message);
            view! {
                <section class="io io--error">
                    <div class="io__head">
                        <span class="io__title"><Icon icon=IconName::StateFailed small=true/>"Error"</span>
                        <span class="num">{error.code}</span>
                        <CopyButton label="Copy error" icon_only=true text=std::sync::Arc::new(move || copied.clone())/>
                    </div>
                    <pre class="pre pre--wrap" tabindex="0" role="group" aria-label="Error">
                        {words::visible(&error.message).into_owned()}
                    </pre>
                </section>
            }
        })
    }
}

#[component]
fn ProgressSection(run: RunStore, node_id: NodeId) -> impl IntoView {
    let progress = Memo::new(move |_| {
        run.node(&node_id, |node| {
            node.progress.clone().filter(|_| node.state.end().is_none())
        })
        .flatten()
    });
    move || {
        progress.get().map(|progress| {
            let of = progress
                .total
                .map(|total| format!(" of {}", format::count(total)))
                .unwrap_or_default();
            view! {
                <section class="io">
                    <div class="io__head">
                        <span class="io__title">"Progress"</span>
                        <span class="num">{format!("{}{of}", format::count(progress.done))}</span>
                    </div>
                    {progress.note.map(|note| view! { <p class="io__none">{note}</p> })}
                </section>
            }
        })
    }
}

/// The return value, or that there is none.
#[component]
fn ResultSection(run: RunStore, node_id: NodeId) -> impl IntoView {
    let has_result = {
        let (run, node_id) = (run.clone(), node_id.clone());
        Memo::new(move |_| {
            run.output(&node_id, Channel::Result, |output| {
                output.bytes > 0 || !output.text.is_empty()
            }) == Some(true)
        })
    };
    let status = {
        let (run, node_id) = (run.clone(), node_id.clone());
        Memo::new(move |_| run.node(&node_id, |node| node.state.status()))
    };
    move || {
        if has_result.get() {
            leptos::either::EitherOf3::A(view! {
                <OutputSection run=run.clone() node_id=node_id.clone() channel=Channel::Result title="Return value"/>
            })
        } else if let Some(words) = status.get().and_then(no_result) {
            leptos::either::EitherOf3::B(view! {
                <section class="io">
                    <div class="io__head"><span class="io__title">"Return value"</span></div>
                    <p class="io__none">{words}</p>
                </section>
            })
        } else {
            leptos::either::EitherOf3::C(())
        }
    }
}

/// Why a call that is over gave nothing back.
fn no_result(status: NodeStatus) -> Option<&'static str> {
    match status {
        NodeStatus::Pending | NodeStatus::AwaitingApproval | NodeStatus::Running => None,
        NodeStatus::Succeeded => Some("No return value: the call ended well and gave nothing back."),
        NodeStatus::Failed => Some("No return value: the call ended with an error."),
        NodeStatus::Cancelled => Some("No return value: the call was cancelled."),
        NodeStatus::Interrupted => Some("No return value: the owner of the call went away."),
        NodeStatus::Denied => Some("No return value: a person refused the call."),
        NodeStatus::NotRun => Some("No return value: the call was announced, but never started."),
        NodeStatus::TimedOut => Some("No return value: the time limit ended the call."),
    }
}

/// One channel: its beginning, its size, and the ways to all of it.
#[component]
fn OutputSection(
    run: RunStore,
    node_id: NodeId,
    channel: Channel,
    title: &'static str,
    /// The one field of an object that is all there is to show.
    #[prop(optional_no_strip)]
    field: Option<&'static str>,
) -> impl IntoView {
    let whole = {
        let (run, node_id) = (run.clone(), node_id.clone());
        move || {
            run.output(&node_id, channel, |output| {
                let text = value(output, field).unwrap_or_else(|| output.text.clone());
                match left_out(output) {
                    // Whoever copies a part has to know it.
                    Some(bytes) => {
                        let at_hand = text.len();
                        text + &format!("\n[{at_hand} of {bytes} bytes: the rest is behind “Open whole”]")
                    }
                    None => text,
                }
            })
            .unwrap_or_default()
        }
    };
    let shown = {
        let (run, node_id) = (run.clone(), node_id.clone());
        Memo::new(move |_| {
            run.output(&node_id, channel, |output| Shown::of(output, field, STEP))
                .unwrap_or_default()
        })
    };
    let text = move || shown.with(|shown| words::visible(&shown.text).into_owned());
    let size = move || {
        shown.with(|shown| {
            if shown.total > 0 {
                format::bytes(shown.total)
            } else {
                String::new()
            }
        })
    };
    let local = {
        let (run, node_id) = (run.clone(), node_id.clone());
        move |start: u64| {
            run.peek(|state| {
                let output = state.node(&node_id)?.outputs.get(&channel)?;
                let value = value(output, field);
                let known = value.as_deref().unwrap_or(&output.text);
                let rest = known.get(usize::try_from(start).ok()?..)?;
                let length = usize::try_from(PLAIN.step).unwrap_or(usize::MAX);
                let piece = rest.get(..rest.floor_char_boundary(length))?;
                // The rest of what is here of a longer text is fetched with what follows it.
                let is_enough = piece.len() < rest.len() || left_out(output).is_none();
                (is_enough && !piece.is_empty()).then(|| piece.to_owned())
            })
        }
    };
    let extent = Signal::derive(move || shown.with(|shown| (shown.bytes, shown.total)));
    let address = format!("/api/nodes/{node_id}/output?channel={channel}");
    let pieces = Pieces::new(address, extent, PLAIN).with_local(std::sync::Arc::new(local));
    let has_more = Memo::new(move |_| shown.with(|shown| shown.left_out));
    let rest = move || {
        has_more.get().then(|| {
            let draw =
                |_: u64, text: String| view! { <span>{words::visible(&text).into_owned()}</span> }.into_any();
            view! { <PieceList pieces draw=std::sync::Arc::new(draw)/> }
        })
    };
    let more = move || has_more.get().then(|| view! { <PieceControls pieces/> });
    let copy = ["Copy ", &title.to_lowercase()].concat();
    let wrap = if channel == Channel::Arguments && field.is_none() {
        "pre pre--wrap"
    } else {
        "pre"
    };
    view! {
        <section class="io" data-channel=channel.as_str()>
            <div class="io__head">
                <span class="io__title">{title}</span>
                <span class="num">{size}</span>
                <CopyButton label=copy_label(&copy) icon_only=true text=std::sync::Arc::new(whole)/>
            </div>
            <pre class=wrap tabindex="0" role="group" aria-label=title>{text}{rest}</pre>
            {more}
        </section>
    }
}

/// The labels of the copy buttons are fixed.
fn copy_label(label: &str) -> &'static str {
    match label {
        "Copy arguments" => "Copy arguments",
        "Copy program" => "Copy program",
        "Copy log" => "Copy log",
        "Copy return value" => "Copy return value",
        _ => "Copy",
    }
}

/// The beginning of a text, as much of it as is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Shown {
    text: String,
    bytes: u64,
    total: u64,
    left_out: bool,
}

impl Shown {
    /// At most so many lines and bytes of what the output holds.
    fn of(output: &Output, field: Option<&str>, (lines, bytes): (usize, usize)) -> Self {
        let value = value(output, field);
        let known = value.as_deref().unwrap_or(&output.text);
        let mut text = String::new();
        for line in known.split_inclusive('\n').take(lines) {
            let room = bytes.saturating_sub(text.len());
            text.push_str(&line[..line.floor_char_boundary(room)]);
            if line.len() > room {
                break;
            }
        }
        let total = left_out(output).unwrap_or(known.len() as u64);
        let bytes = text.len() as u64;
        Self {
            text,
            bytes,
            total,
            left_out: bytes < total,
        }
    }
}

/// How long the whole is, when only its beginning is here.
fn left_out(output: &Output) -> Option<u64> {
    match &output.content_ref {
        Some(whole) => Some(whole.bytes),
        None => output.is_open_preview().then_some(output.bytes),
    }
}

/// The one field that is to be shown; none where it cannot be told, or not all of it is here.
fn value(output: &Output, field: Option<&str>) -> Option<String> {
    let field = field.filter(|_| left_out(output).is_none())?;
    Fields::read(&output.text).get(field).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_lines_bytes_and_characters_and_says_how_much_there_is() {
        let output = Output {
            text: "a\nbé\nc".to_owned(),
            bytes: 6,
            ..Output::default()
        };
        let of = |most| Shown::of(&output, None, most);
        assert_eq!(
            of((2, 100)),
            Shown {
                text: "a\nbé\n".to_owned(),
                bytes: 6,
                total: 7,
                left_out: true
            }
        );
        assert_eq!(of((9, 4)).text, "a\nb");
        assert_eq!(
            of((9, 100)),
            Shown {
                text: "a\nbé\nc".to_owned(),
                bytes: 7,
                total: 7,
                left_out: false
            }
        );
    }

    #[test]
    fn a_program_is_shown_as_written() {
        let output = Output {
            text: r#"{"code": "let a = \"b\";\n1", "description": "x"}"#.to_owned(),
            ..Output::default()
        };
        assert_eq!(
            Shown::of(&output, Some("code"), (9, 100)).text,
            "let a = \"b\";\n1"
        );
    }
}
