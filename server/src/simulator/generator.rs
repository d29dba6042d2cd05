//! Text that is made instead of written down: always the same for the same parameters.

use serde::Deserialize;

use super::parameters::Parameters;

/// What makes the text of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// Varied Markdown of about `characters` characters.
    Markdown,
    /// Plain sentences that last `seconds` at `rate` characters per second.
    Prose,
    /// The beginning of the prompt and what can be asked instead.
    Echo,
    /// `rate` × `seconds` deltas of 4 bytes whose send times are kept; see [`load_token`].
    Load,
}

impl Generator {
    /// The parameters that a scenario with this generator must have.
    pub(super) fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Markdown => &["characters", "rate"],
            Self::Prose | Self::Load => &["rate", "seconds"],
            Self::Echo => &[],
        }
    }
}

/// A small linear congruential generator (the constants of Knuth's MMIX): choice without state between streams.
struct Choice(u64);

impl Choice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = usize::try_from(self.0 >> 33).unwrap_or(0);
        high % limit.max(1)
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words.get(self.below(words.len())).copied().unwrap_or_default()
    }
}

const SUBJECTS: &[&str] = &[
    "The log",
    "A reader",
    "The index",
    "Each segment",
    "The writer",
    "A snapshot",
    "The cache",
    "Every key",
    "A lost page",
    "The merge",
];
const VERBS: &[&str] = &[
    "keeps",
    "finds",
    "moves",
    "checks",
    "writes",
    "reads back",
    "gives up",
    "counts",
    "orders",
    "hands over",
];
const OBJECTS: &[&str] = &[
    "the newest value",
    "its own **checksum**",
    "one record at a time",
    "the offset of `record[3]`",
    "a short list of *names*",
    "what the last round left open",
    "nothing that it cannot prove",
    "the bytes in their order",
    "a copy, never the original",
    "the [table of contents](https://example.org/contents)",
];
const ENDINGS: &[&str] = &[
    "before the next one begins",
    "as soon as the lock is free",
    "even after a crash",
    "while others wait",
    "in a single pass",
    "without asking twice",
    "and says so",
    "until the file is closed",
    "— naïve as that may sound",
    "in about 3 µs",
];
const TOPICS: &[&str] = &[
    "Writing",
    "Reading",
    "Recovery",
    "Compaction",
    "Locks",
    "Checksums",
    "Naming",
    "Limits",
    "Measuring",
    "What is left open",
];

fn sentence(choice: &mut Choice) -> String {
    format!(
        "{} {} {} {}.",
        choice.of(SUBJECTS),
        choice.of(VERBS),
        choice.of(OBJECTS),
        choice.of(ENDINGS)
    )
}

fn paragraph(choice: &mut Choice, sentences: usize) -> String {
    (0..sentences)
        .map(|_| sentence(choice))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Sentences of about `characters` characters, in paragraphs.
pub(super) fn prose(characters: usize) -> String {
    let mut choice = Choice(7);
    let mut text = String::new();
    let mut count = 0;
    while count < characters {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let piece = paragraph(&mut choice, 4);
        count += piece.chars().count() + 2;
        text.push_str(&piece);
    }
    text
}

/// Headings, paragraphs, lists, quotes, code and tables of about `characters` characters, never cut inside one.
pub(super) fn markdown(characters: usize) -> String {
    let mut choice = Choice(1);
    let mut text = String::from(
        "# A long answer\n\nEverything below is made by rule, so that the same request gives the same text.\n",
    );
    let mut count = text.chars().count();
    let mut number = 0;
    while count < characters {
        let piece = section(&mut choice, number);
        count += piece.chars().count();
        text.push_str(&piece);
        number += 1;
    }
    text.push_str("\n---\n\nThat was the last section.\n");
    text
}

fn section(choice: &mut Choice, number: usize) -> String {
    let mut out = String::new();
    if number.is_multiple_of(6) {
        out.push_str(&format!("\n## {}. {}\n", number / 6 + 1, choice.of(TOPICS)));
    }
    match number % 6 {
        0 | 3 => out.push_str(&format!("\n{}\n", paragraph(choice, 5))),
        1 => {
            out.push_str(&format!("\n### {}\n\n", choice.of(TOPICS)));
            for _ in 0..4 {
                out.push_str(&format!("- {}\n", sentence(choice)));
            }
            out.push_str(&format!("  - {}\n  - {}\n", sentence(choice), sentence(choice)));
        }
        2 => {
            out.push_str("\n```rust\n");
            for line in 0..6 {
                out.push_str(&format!(
                    "    let value_{line} = store.get(\"{}\")?; // {}\n",
                    choice.of(TOPICS),
                    choice.of(ENDINGS)
                ));
            }
            out.push_str("```\n");
        }
        4 => {
            out.push_str("\n| What | Does | Records |\n|:-----|:-----|--------:|\n");
            for _ in 0..5 {
                let records = choice.below(100_000);
                out.push_str(&format!(
                    "| {} | {} | {records} |\n",
                    choice.of(SUBJECTS),
                    choice.of(VERBS)
                ));
            }
        }
        _ => {
            out.push_str(&format!("\n> {}\n\n", sentence(choice)));
            for index in 1..=3 {
                out.push_str(&format!("{index}. {}\n", sentence(choice)));
            }
        }
    }
    out
}

/// The prompt's beginning as a quotation, and the sample prompts.
pub(super) fn echo(prompt: &str, samples: &[(String, String)]) -> String {
    let shown: String = prompt.trim().chars().take(200).collect();
    let cut = if prompt.trim().chars().count() > 200 {
        " …"
    } else {
        ""
    };
    let mut text = String::from("You wrote:\n\n");
    let lines: Vec<&str> = shown.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let mark = if index + 1 == lines.len() { cut } else { "" };
        text.push_str(&format!("> {line}{mark}\n"));
    }
    if lines.is_empty() {
        text.push_str("> (nothing)\n");
    }
    text.push_str(
        "\nThis is the **demo provider**: no model is behind it, only scenarios that are built into Runloom. \
         Configure a provider to get real answers. These prompts show something:\n\n",
    );
    for (prompt, title) in samples {
        text.push_str(&format!("- `{prompt}`: {title}\n"));
    }
    text
}

/// The most deltas that one load stream can number.
const LOAD_LIMIT: usize = 36 * 36 * 36;

/// The text of the delta with this index: its number as three base-36 digits, and one white space, 4 bytes in all. With
/// white space removed, the text of a whole stream is the numbers in a row. Each 64 deltas make one paragraph.
pub(super) fn load_token(index: usize) -> String {
    let digit = |value: usize| char::from_digit(u32::try_from(value % 36).unwrap_or(0), 36).unwrap_or('0');
    let number: String = [index / 1296, index / 36, index].into_iter().map(digit).collect();
    match index % 64 {
        63 => format!("{number}\n"),
        0 if index > 0 => format!("\n{number}"),
        _ => format!("{number} "),
    }
}

/// Whether a load stream of this size can be numbered.
pub(super) fn check_load(parameters: &Parameters) -> Result<(), String> {
    let count = parameters.number("rate") * parameters.number("seconds");
    if (1.0..=LOAD_LIMIT as f64).contains(&count) {
        return Ok(());
    }
    Err(format!(
        "rate × seconds is {count}: expected 1 to {LOAD_LIMIT} deltas"
    ))
}

/// How many deltas a load stream has and how many a second: from its parameters `rate` and `seconds`.
pub(super) fn load_size(parameters: &Parameters) -> (usize, f64) {
    let rate = parameters.number("rate");
    let count = (rate * parameters.number("seconds"))
        .round()
        .clamp(0.0, LOAD_LIMIT as f64);
    (count as usize, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_answer_is_long_varied_and_always_the_same() {
        let text = markdown(60_000);
        let count = text.chars().count();
        assert!((59_000..62_000).contains(&count), "{count} characters");
        assert_eq!(text, markdown(60_000));
        for mark in [
            "\n## ",
            "\n### ",
            "\n- ",
            "\n  - ",
            "\n```rust\n",
            "\n| ",
            "\n> ",
            "\n1. ",
        ] {
            assert!(text.contains(mark), "no {mark:?}");
        }
        assert_eq!(text.matches("```").count() % 2, 0);
    }

    #[test]
    fn a_load_token_has_four_bytes_and_tells_its_index() {
        let mut all = String::new();
        for index in 0..2000 {
            let token = load_token(index);
            assert_eq!(token.len(), 4);
            all.push_str(&token);
        }
        let digits: String = all.split_whitespace().collect();
        for index in 0..2000 {
            let number = &digits[index * 3..index * 3 + 3];
            assert_eq!(usize::from_str_radix(number, 36).unwrap(), index);
        }
        assert_eq!(all.matches("\n\n").count(), 2000 / 64);
    }

    #[test]
    fn an_echo_quotes_the_beginning_of_the_prompt() {
        let text = echo(
            &"abc ".repeat(100),
            &[("slow".to_owned(), "A slow stream".to_owned())],
        );
        assert!(text.contains("> abc abc"));
        assert!(text.contains(" …\n"));
        assert!(text.contains("- `slow`: A slow stream"));
        assert!(!text.contains(&"abc ".repeat(60)));
    }
}
