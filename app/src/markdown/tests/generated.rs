//! The rules over generated documents: sound Markdown of every kind, nested, cut anywhere.

use proptest::prelude::*;

use super::rules::{grow, sizes};

const WORDS: &[&str] = &[
    "stream",
    "block",
    "Ordnung",
    "größer",
    "файл",
    "重点",
    "강조",
    "עולם",
    "👩\u{200d}🚀",
    "3",
    "v2.1",
    "a_b",
    "e.g.",
];

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(WORDS).prop_map(str::to_owned)
}

fn words(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 1..most).prop_map(|words| words.join(" "))
}

/// A stretch of a line.
fn span() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => words(5),
        1 => words(3).prop_map(|text| format!("**{text}**")),
        1 => words(3).prop_map(|text| format!("*{text}*")),
        1 => words(3).prop_map(|text| format!("***{text}***")),
        1 => words(3).prop_map(|text| format!("_{text}_")),
        1 => words(3).prop_map(|text| format!("~~{text}~~")),
        1 => words(3).prop_map(|text| format!("`{text}`")),
        1 => words(3).prop_map(|text| format!("``{text} ` {text}``")),
        1 => (words(3), word()).prop_map(|(text, to)| format!("[{text}](https://example.org/{to} \"{text}\")")),
        1 => (words(3), word()).prop_map(|(text, to)| format!("[**{text}** `{to}`](/{to})")),
        1 => (words(3), word()).prop_map(|(text, to)| format!("![{text}](/{to}.png)")),
        1 => Just("<https://example.org/a_b>".to_owned()),
        1 => word().prop_map(|tag| format!("<b title=\"{tag}\">{tag}</b>")),
        1 => Just("&amp; &lt;tag&gt; \\*stars\\*".to_owned()),
        1 => Just("$x_1 * y$ and 2 * 3".to_owned()),
        1 => Just("[ref] and [a *b*][Ref]".to_owned()),
        1 => Just("noted[^1]".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop::collection::vec(span(), 1..4).prop_map(|spans| spans.join(" "))
}

/// Lines of a block that holds no others.
fn leaf() -> impl Strategy<Value = Vec<String>> {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    prop_oneof![
        4 => prop::collection::vec(line(), 1..4),
        1 => (1usize..7, line()).prop_map(|(level, text)| vec![format!("{} {text}", "#".repeat(level))]),
        1 => (line(), prop::sample::select(vec!["===", "---"])).prop_map(|(text, under)| vec![text, under.to_owned()]),
        1 => (word(), prop::collection::vec(words(4), 0..4)).prop_map(|(language, mut code)| {
            code.insert(0, format!("```{language}"));
            code.push("```".to_owned());
            code
        }),
        1 => prop::collection::vec(words(4), 1..4)
            .prop_map(|code| code.into_iter().map(|line| format!("    {line}")).collect()),
        1 => prop::collection::vec(prop::collection::vec(words(3), 2..4), 1..4).prop_map(move |rows| {
            let columns = rows[0].len();
            let mut lines: Vec<String> = rows.into_iter().map(row).collect();
            lines.insert(1, row(vec![":-:".to_owned(); columns]));
            lines
        }),
        1 => Just(vec!["***".to_owned()]),
        1 => words(3).prop_map(|text| vec!["<div class=\"x\">".to_owned(), text, "</div>".to_owned()]),
    ]
}

/// Lines of any block.
fn block() -> impl Strategy<Value = Vec<String>> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        let blocks = prop::collection::vec(inner, 1..4);
        let marker = prop::sample::select(vec!["- ", "* ", "1. ", "- [ ] ", "7) "]);
        prop_oneof![
            (prop::collection::vec(blocks.clone(), 1..4), marker, any::<bool>()).prop_map(
                |(items, marker, loose)| {
                    let indent = " ".repeat(marker.trim_end_matches("[ ] ").len());
                    let items = items
                        .into_iter()
                        .map(|blocks| within(&joined(blocks), marker, &indent));
                    let mut lines = Vec::new();
                    for item in items {
                        if loose && !lines.is_empty() {
                            lines.push(String::new());
                        }
                        lines.extend(item);
                    }
                    lines
                }
            ),
            blocks.prop_map(|blocks| within(&joined(blocks), "> ", "> ")),
        ]
    })
}

/// Blocks with a blank line between them.
fn joined(blocks: Vec<Vec<String>>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for block in blocks {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(block);
    }
    lines
}

fn within(lines: &[String], first: &str, others: &str) -> Vec<String> {
    let lines = lines.iter().enumerate();
    let prefixed = lines.map(|(place, line)| format!("{}{line}", if place == 0 { first } else { others }));
    prefixed.map(|line| line.trim_end().to_owned()).collect()
}

fn document() -> impl Strategy<Value = String> {
    (prop::collection::vec(block(), 1..6), any::<bool>(), any::<bool>()).prop_map(
        |(blocks, is_defined, is_windows)| {
            let mut text = joined(blocks).join("\n");
            if is_defined {
                text.push_str(
                    "\n\n[ref]: https://example.org/ref 'Ref'\n\n[^1]: A note with `code`.\n\nEnd [ref].",
                );
            }
            text.push('\n');
            if is_windows {
                text.replace('\n', "\r\n")
            } else {
                text
            }
        },
    )
}

// PROPTEST_CASES sets the count for long runs.
proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_for_any_document_in_any_deltas(text in document(), seed in any::<u64>()) {
        grow(&text, [1]);
        grow(&text, sizes(seed));
    }
}
