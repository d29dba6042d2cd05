//! Lines that a search found: `path:line: text`, or a path above its lines.

use super::{Answer, Form, RESULT, Shape};

/// The lines that were found, by file.
pub fn hits(answer: &Answer<'_>) -> Option<Shape> {
    let fields = answer.fields;
    let pattern = fields.any(&["pattern", "query", "regex", "search_term", "search", "q"])?;
    // Enough of the lines have to be of that form.
    let lines = answer
        .output
        .text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(50);
    let (mut all, mut found) = (0, 0);
    for line in lines {
        all += 1;
        found += usize::from(located(line).is_some());
    }
    if found == 0 || found * 2 < all {
        return None;
    }
    let case_sensitive = fields.get("case_sensitive") != Some("false")
        && fields.get("case_insensitive") != Some("true")
        && fields.get("ignore_case") != Some("true")
        && fields.get("-i") != Some("true");
    let form = Form::Hits {
        pattern: pattern.to_owned(),
        case_sensitive,
    };
    Some(Shape::of(RESULT, form))
}

/// A line that was found: the path where the line names it, its number, its text.
pub(super) struct Located<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) number: &'a str,
    pub(super) text: &'a str,
}

/// Takes a line apart.
pub(super) fn located(line: &str) -> Option<Located<'_>> {
    let numbered = |text: &str| {
        let digits = text.len()
            - text
                .trim_start_matches(|digit: char| digit.is_ascii_digit())
                .len();
        (digits > 0 && text[digits..].starts_with(':')).then_some(digits)
    };
    let of = |path, start: usize, digits: usize| {
        let text = &line[start + digits + 1..];
        Located {
            path,
            number: &line[start..start + digits],
            text: text.strip_prefix(' ').unwrap_or(text),
        }
    };
    if let Some(digits) = numbered(line) {
        return Some(of(None, 0, digits));
    }
    line.match_indices(':').find_map(|(place, _)| {
        let digits = numbered(&line[place + 1..])?;
        (place > 0).then(|| of(Some(&line[..place]), place + 1, digits))
    })
}

/// A part of what a search gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The lines of one file, with their numbers.
    File {
        path: String,
        numbers: Vec<String>,
        text: String,
    },
    /// Any other line.
    Other(String),
}

/// The lines by file, in the order in which they came.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    // A path alone on its line is that of the lines below it; without such lines it is a line like any other.
    let mut above: Option<&str> = None;
    let mut is_used = false;
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let content = content.strip_suffix('\r').unwrap_or(content);
        let found = located(content);
        let path = found
            .as_ref()
            .and_then(|found| found.path.or(above.map(str::trim_end)));
        if let (Some(found), Some(path)) = (found, path) {
            if found.path.is_some() {
                parts.extend(above.take().filter(|_| !is_used).map(other));
            } else {
                is_used = true;
            }
            add(&mut parts, path, &found);
            continue;
        }
        parts.extend(above.take().filter(|_| !is_used).map(other));
        is_used = false;
        if content.trim().is_empty() || content.starts_with(['[', ' ', '\t']) {
            parts.push(other(line));
        } else {
            above = Some(line);
        }
    }
    parts.extend(above.filter(|_| !is_used).map(other));
    parts
}

fn other(line: &str) -> Part {
    Part::Other(line.to_owned())
}

fn add(parts: &mut Vec<Part>, path: &str, found: &Located<'_>) {
    let shown = [found.text, "\n"].concat();
    let number = found.number.to_owned();
    if let Some(Part::File {
        path: known,
        numbers,
        text,
    }) = parts.last_mut()
        && known == path
    {
        numbers.push(number);
        text.push_str(&shown);
    } else {
        parts.push(Part::File {
            path: path.to_owned(),
            numbers: vec![number],
            text: shown,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, numbers: &[&str], text: &str) -> Part {
        Part::File {
            path: path.to_owned(),
            numbers: numbers.iter().map(|&number| number.to_owned()).collect(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn lines_are_grouped_by_file_and_what_is_none_stays_in_its_place() {
        let text = "src/a.rs:4: fn a()\nsrc/a.rs:12:     b: 3: c\nC:\\x.rs:7:fn d()\n[2 more lines]\n";
        assert_eq!(
            parts(text),
            [
                file("src/a.rs", &["4", "12"], "fn a()\n    b: 3: c\n"),
                file("C:\\x.rs", &["7"], "fn d()\n"),
                Part::Other("[2 more lines]\n".to_owned()),
            ]
        );
    }

    #[test]
    fn a_path_above_its_lines_is_their_file() {
        let text = "src/a.rs\n4:fn a()\n9:fn b()\n\nsrc/c.rs\n1:fn c()\nno lines\n";
        assert_eq!(
            parts(text),
            [
                file("src/a.rs", &["4", "9"], "fn a()\nfn b()\n"),
                Part::Other("\n".to_owned()),
                file("src/c.rs", &["1"], "fn c()\n"),
                Part::Other("no lines\n".to_owned()),
            ]
        );
    }
}
