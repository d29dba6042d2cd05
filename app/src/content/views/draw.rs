//! Draws a text in its form, piece by piece.

use std::collections::BTreeMap;

use leptos::either::Either;
use leptos::prelude::*;

use super::ansi::{self, Style};
use super::change::{Sign, Signs};
use super::hits::{self, Part};
use super::{Form, lines_read};
use crate::content::words::visible;
use crate::markdown::MarkdownText;

/// The longest name of a language.
const LONGEST_NAME: usize = 40;

/// What a piece must know of the text before it.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    lines: u64,
    style: Style,
    signs: Signs,
}

/// Draws the pieces of one text. A copy draws the same text.
#[derive(Clone, Copy)]
pub struct Draw {
    form: StoredValue<Form>,
    prefix: StoredValue<String>,
    before: StoredValue<BTreeMap<u64, Before>>,
}

/// One piece.
pub struct Drawing<'a> {
    /// Where it begins.
    pub start: u64,
    /// The piece.
    pub text: &'a str,
    /// Whether it will not change any more: then its words may have their colours.
    pub is_settled: bool,
}

impl Draw {
    /// For a text in a form; `prefix` goes before ids within.
    pub fn new(form: Form, prefix: String) -> Self {
        Self {
            form: StoredValue::new(form),
            prefix: StoredValue::new(prefix),
            before: StoredValue::new(BTreeMap::new()),
        }
    }

    /// Draws a piece.
    pub fn piece(self, drawing: Drawing<'_>) -> AnyView {
        let Drawing { start, text, .. } = drawing;
        let before = self
            .before
            .with_value(|before| before.get(&start).copied())
            .unwrap_or_default();
        let mut after = Before {
            lines: before.lines + text.matches('\n').count() as u64,
            ..before
        };
        let drawn = self.form.with_value(|form| match form {
            Form::Plain | Form::Wrapped => view! { <span>{visible(text).into_owned()}</span> }.into_any(),
            Form::Code { language, first } => {
                code(&drawing, language, first.map(|first| first + before.lines))
            }
            Form::Diff => diff(text, &mut after.signs),
            Form::Terminal => terminal(text, &mut after.style),
            Form::Hits {
                pattern,
                case_sensitive,
            } => found(&drawing, pattern, *case_sensitive),
            Form::Markdown => {
                let prefix = self.prefix.with_value(|prefix| format!("{prefix}-{start}"));
                view! { <MarkdownText id_prefix=prefix source=text.to_owned() mini=true/> }.into_any()
            }
        });
        self.before.update_value(|all| {
            all.insert(start + text.len() as u64, after);
        });
        drawn
    }
}

/// The numbers stand in an attribute, so that they are neither selected nor copied with the text.
fn code(drawing: &Drawing<'_>, language: &str, first: Option<u64>) -> AnyView {
    let numbers = first.map(|first| {
        let last = first + lines_read(drawing.text);
        (first..last)
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join("\n")
    });
    // What no language is called is not asked for.
    let is_name = !language.is_empty()
        && language.len() <= LONGEST_NAME
        && language.chars().all(|letter| letter.is_ascii_graphic());
    let language = (drawing.is_settled && is_name).then(|| language.to_owned());
    let text = visible(drawing.text).into_owned();
    view! { <span class="code" data-lines=numbers data-language=language>{text}</span> }.into_any()
}

/// Lines with one sign are one element.
fn diff(text: &str, signs: &mut Signs) -> AnyView {
    let mut parts: Vec<(Sign, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let sign = signs.next(line);
        match parts.last_mut() {
            Some((known, lines)) if *known == sign => lines.push_str(&visible(line)),
            _ => parts.push((sign, visible(line).into_owned())),
        }
    }
    let part = |(sign, lines)| {
        let class = match sign {
            Sign::Same => "ctx",
            Sign::Added => "add",
            Sign::Removed => "del",
            Sign::Head => "hunk",
        };
        view! { <span class=class>{lines}</span> }
    };
    parts.into_iter().map(part).collect_view().into_any()
}

fn terminal(text: &str, style: &mut Style) -> AnyView {
    let (runs, after) = ansi::runs(text, *style);
    *style = after;
    let run = |run: ansi::Run| {
        let text = visible(&run.text).into_owned();
        match run.style.class() {
            class if class.is_empty() => Either::Left(text),
            class => Either::Right(view! { <span class=class>{text}</span> }),
        }
    };
    view! { <span>{runs.into_iter().map(run).collect_view()}</span> }.into_any()
}

fn found(drawing: &Drawing<'_>, pattern: &str, case_sensitive: bool) -> AnyView {
    let part = |part| match part {
        Part::File { path, numbers, text } => Either::Left(view! {
            <b class="hits__file" data-plain="">{visible(&path).into_owned()}"\n"</b>
            <span class="code" data-lines=numbers.join("\n")>{visible(&text).into_owned()}</span>
        }),
        Part::Other(line) => Either::Right(
            view! { <span class="hits__other" data-plain="">{visible(&line).into_owned()}</span> },
        ),
    };
    let parts = hits::parts(drawing.text).into_iter().map(part).collect_view();
    // An attribute cannot hold every character.
    let can_be_held = !pattern.contains(char::is_control);
    let pattern = (drawing.is_settled && can_be_held).then(|| pattern.to_owned());
    let ignores_case = (!case_sensitive).then_some("");
    view! { <span class="hits" data-pattern=pattern data-ignore-case=ignores_case>{parts}</span> }.into_any()
}
