//! The last line of a text that grows, as far as it can be judged by itself.

/// Whether a line without its end is, so far, nothing but markers of which the next characters decide what they are: a list's
/// dash, a rule, a setext underline, a table's second line, a fence, the marks of a heading.
pub(super) fn is_undecided(line: &str) -> bool {
    let mut rest = line.trim_end_matches([' ', '\t', '\r']);
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() || is_marks(rest) {
            return true;
        }
        if let Some(quoted) = rest.strip_prefix('>') {
            rest = quoted;
            continue;
        }
        match list_marker(rest) {
            Some(item) => rest = item,
            None => return is_number(rest) || opens_fence(rest) || opens_tag(rest),
        }
    }
}

/// The line without a last run of marks whose meaning hangs on the next character.
pub(super) fn without_last_marks(line: &str) -> &str {
    let mut shown = line;
    loop {
        let before = shown.len();
        if let Some(mark) = shown
            .chars()
            .next_back()
            .filter(|mark| matches!(mark, '*' | '_' | '~' | '`' | '[' | '!' | '<' | '\\'))
        {
            shown = shown.trim_end_matches(mark);
        }
        // The longest name of a character reference has 31 letters and digits.
        let name =
            shown.trim_end_matches(|character: char| character.is_ascii_alphanumeric() || character == '#');
        if shown.len() - name.len() <= 32
            && let Some(text) = name.strip_suffix('&')
        {
            shown = text;
        }
        if shown.len() == before {
            return shown;
        }
    }
}

fn is_marks(text: &str) -> bool {
    let only = |marks: &[char]| text.chars().all(|character| marks.contains(&character));
    only(&['|', ':', '-', '=', ' ', '\t'])
        || only(&['*', ' ', '\t'])
        || only(&['_', ' ', '\t'])
        || only(&['`'])
        || only(&['~'])
        || text == "+"
        || (only(&['#']) && text.len() <= 6)
}

/// What follows a list's marker and its space.
fn list_marker(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let after = match text.len() - digits.len() {
        0 => text.strip_prefix(['-', '+', '*'])?,
        1..=9 => digits.strip_prefix(['.', ')'])?,
        _ => return None,
    };
    after.starts_with([' ', '\t']).then_some(after)
}

/// The name of a tag that may become another one, or an address.
fn opens_tag(text: &str) -> bool {
    let Some(name) = text.strip_prefix('<') else {
        return false;
    };
    let name = name.strip_prefix('/').unwrap_or(name);
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A number that may become a list's marker.
fn is_number(text: &str) -> bool {
    let digits = text.strip_suffix(['.', ')']).unwrap_or(text);
    digits.len() <= 9 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn opens_fence(text: &str) -> bool {
    let marks = |mark| text.len() - text.trim_start_matches(mark).len();
    marks('~') >= 3 || (marks('`') >= 3 && !text.trim_start_matches('`').contains('`'))
}
