//! States and figures in words, the same everywhere on the page.

use std::borrow::Cow;

use protocol::model::{AttemptState, BlockState, Node, Timestamp, Usage};
use protocol::state::{AttemptReason, AttemptStatus, NodeStatus, RunStatus};

use super::go_on::Wish;
use crate::data::clock::PageClock;
use crate::ui::StateKind;
use crate::ui::format;

/// The mark of a node's state.
pub fn node_state(status: NodeStatus) -> StateKind {
    match status {
        NodeStatus::Pending => StateKind::Pending,
        NodeStatus::AwaitingApproval => StateKind::AwaitingApproval,
        NodeStatus::Running => StateKind::Running,
        NodeStatus::Succeeded => StateKind::Succeeded,
        NodeStatus::Failed => StateKind::Failed,
        NodeStatus::Cancelled => StateKind::Cancelled,
        NodeStatus::Interrupted => StateKind::Interrupted,
        NodeStatus::Denied => StateKind::Denied,
        NodeStatus::NotRun => StateKind::NotRun,
        NodeStatus::TimedOut => StateKind::TimedOut,
    }
}

/// The mark of an attempt's state.
pub fn attempt_state(status: AttemptStatus) -> StateKind {
    match status {
        AttemptStatus::Running => StateKind::Running,
        AttemptStatus::Completed => StateKind::Completed,
        AttemptStatus::Failed => StateKind::Failed,
        AttemptStatus::Cancelled => StateKind::Cancelled,
        AttemptStatus::Interrupted => StateKind::Interrupted,
        AttemptStatus::Stalled => StateKind::Stalled,
        AttemptStatus::Partial => StateKind::Partial,
        AttemptStatus::Superseded => StateKind::Superseded,
    }
}

/// The mark of a run's state.
pub fn run_state(status: RunStatus) -> StateKind {
    match status {
        RunStatus::Queued => StateKind::Pending,
        RunStatus::Running => StateKind::Running,
        RunStatus::Waiting => StateKind::AwaitingApproval,
        RunStatus::Succeeded => StateKind::Succeeded,
        RunStatus::Failed => StateKind::Failed,
        RunStatus::Cancelled => StateKind::Cancelled,
        RunStatus::Interrupted => StateKind::Interrupted,
    }
}

/// The word for a run's state.
pub fn run_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "queued",
        other => run_state(other).word(),
    }
}

/// Why an attempt was started, as it stands in the boundary before it.
pub fn reason(reason: AttemptReason) -> &'static str {
    match reason {
        AttemptReason::Initial => "first attempt",
        AttemptReason::StallRetry => "again after a stall",
        AttemptReason::ErrorRetry => "again after an error",
        AttemptReason::ProviderRotation => "moved to another provider",
        AttemptReason::OutputRepair => "the output did not fit the asked schema",
        AttemptReason::Resume => "resumed",
        AttemptReason::Regenerate => "another answer was asked for",
        AttemptReason::Legacy => "from a record of an older form",
    }
}

/// What a person can wish of a run that is over, and what is said once it was wished.
pub fn wish(wish: Wish, is_pending: bool) -> &'static str {
    match (wish, is_pending) {
        (Wish::Resume, false) => "Resume",
        (Wish::Resume, true) => "Resuming",
        (Wish::Regenerate, false) => "Regenerate",
        (Wish::Regenerate, true) => "Asking again",
    }
}

/// How a model stopped, where that is worth a word: a plain end is not.
pub fn stop_reason(reason: &str) -> Option<String> {
    match reason {
        "end_turn" | "stop" | "stop_sequence" | "tool_use" | "tool_calls" => None,
        "length" | "max_tokens" => Some("The model reached its output limit: the text ends here.".to_owned()),
        "refusal" => Some("The model declined to go on.".to_owned()),
        "content_filter" => Some("The provider's filter stopped the output.".to_owned()),
        other => Some(format!("The model stopped: {other}.")),
    }
}

/// How long something took, or takes: `unknown` where its end is not known to have been seen, `–` where it never began.
pub fn span(started_at: Option<Timestamp>, finished_at: Option<Timestamp>, clock: PageClock) -> String {
    let Some(start) = started_at else {
        return "–".to_owned();
    };
    match finished_at {
        // What is over took some time, however little.
        Some(end) => format::duration(u64::try_from(end - start).unwrap_or(0).max(1)),
        None => format::duration(clock.since(start)),
    }
}

/// The same words with a capital letter at their start.
pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// How long a node took, or takes.
pub fn node_span(node: &Node, clock: PageClock) -> String {
    match node.state.end() {
        // Nobody saw its end.
        Some(end) if end.status == NodeStatus::Interrupted && node.started_at.is_some() => {
            "unknown".to_owned()
        }
        Some(end) => span(node.started_at, Some(end.finished_at), clock),
        None => span(node.started_at, None, clock),
    }
}

/// When an attempt ended.
pub fn attempt_end(state: &AttemptState) -> Option<Timestamp> {
    state.end().map(|end| end.finished_at)
}

/// When a block ended.
pub fn block_end(state: &BlockState) -> Option<Timestamp> {
    match state {
        BlockState::Streaming => None,
        BlockState::Ended(end) => Some(end.finished_at),
    }
}

/// A number and its thing: `1 call`, `4 calls`.
pub fn counted(number: usize, thing: &str) -> String {
    counted_as(number, thing, &format!("{thing}s"))
}

/// A number and its thing, whose plural is not regular.
pub fn counted_as(number: usize, one: &str, more: &str) -> String {
    format!(
        "{} {}",
        format::count(number as u64),
        if number == 1 { one } else { more }
    )
}

/// Tokens in words.
pub fn tokens(usage: &Usage) -> String {
    let mut words = format!(
        "{} in, {} out",
        format::count(usage.input_tokens),
        format::count(usage.output_tokens)
    );
    if let Some(reasoning) = usage.reasoning_tokens {
        words.push_str(&format!(" ({} reasoning)", format::count(reasoning)));
    }
    if let Some(cached) = usage.cache_read_tokens {
        words.push_str(&format!(", {} from cache", format::count(cached)));
    }
    words
}

/// One line of a text, at most so many characters.
pub fn line(text: &str, most: usize) -> String {
    let mut words = String::new();
    for (place, character) in text
        .trim_start()
        .chars()
        .take_while(|character| *character != '\n')
        .enumerate()
    {
        if place == most {
            words.push('…');
            break;
        }
        words.push(if character.is_control() { ' ' } else { character });
    }
    words.truncate(words.trim_end().len());
    words
}

/// The first line of a text that says anything, at most so many characters.
pub fn first_line(text: &str, most: usize) -> String {
    line(
        text.lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
        most,
    )
}

/// A line of Markdown without the marks that are read as such: those of strong words, of code and of headings.
pub fn unmarked(line: &str) -> String {
    line.trim_start_matches('#')
        .trim_start()
        .replace("**", "")
        .replace('`', "")
}

/// The last line of a text that says anything, at most so many characters. Looks at the end of the text only.
pub fn last_line(text: &str, most: usize) -> String {
    let tail = &text[text.floor_char_boundary(text.len().saturating_sub(4_096))..];
    line(
        tail.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
        most,
    )
}

/// Raw output as it can be shown: control characters (of ANSI escapes, NUL) become their symbols.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |character: char| character.is_control() && !matches!(character, '\n' | '\r' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let symbol = |character: char| match character {
        '\u{7f}' => '\u{2421}',
        control if is_hidden(control) => char::from_u32(0x2400 + control as u32)
            .filter(|_| control < ' ')
            .unwrap_or(char::REPLACEMENT_CHARACTER),
        plain => plain,
    };
    Cow::Owned(text.chars().map(symbol).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_characters_and_say_so() {
        assert_eq!(line("  ábc\ndef", 10), "ábc");
        assert_eq!(line("ábcdef", 3), "ábc…");
        assert_eq!(first_line("\n \n x\u{1b}y\nz", 10), "x y");
        assert_eq!(last_line("a\nb é\n\n", 10), "b é");
        assert_eq!(last_line(&"é".repeat(5_000), 3), "ééé…");
    }

    #[test]
    fn a_line_of_markdown_is_read_without_its_marks() {
        assert_eq!(
            unmarked("## The **order** of `a` and 2 * 3"),
            "The order of a and 2 * 3"
        );
        assert_eq!(unmarked("#"), "");
    }

    #[test]
    fn control_characters_are_shown_as_symbols() {
        assert_eq!(visible("a\tb\n"), "a\tb\n");
        assert_eq!(visible("\u{1b}[31mred\0\u{7f}\u{85}"), "␛[31mred␀␡\u{fffd}");
    }
}
