//! Text that grows at its end, by ops that say where they begin.

/// What an op does to a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Growth<'a> {
    /// This is to be appended; empty when all of it is known.
    Append(&'a str),
    /// It begins after the end of what is known.
    Gap,
    /// Where it overlaps, it is not the same.
    Differs,
}

/// Compares an op's text, which begins at `offset` bytes, with what is known.
pub(super) fn growth<'a>(known: &str, offset: u64, text: &'a str) -> Growth<'a> {
    let length = known.len() as u64;
    if offset > length {
        return Growth::Gap;
    }
    // Within the known text, so it fits a usize.
    let overlap = &known.as_bytes()[offset as usize..];
    let shared = overlap.len().min(text.len());
    if overlap[..shared] != text.as_bytes()[..shared] {
        return Growth::Differs;
    }
    match text.get(shared..) {
        Some(rest) => Growth::Append(rest),
        None => Growth::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_known_is_appended() {
        assert_eq!(growth("ab", 2, "cd"), Growth::Append("cd"));
        assert_eq!(growth("ab", 1, "bcd"), Growth::Append("cd"));
        assert_eq!(growth("abc", 1, "b"), Growth::Append(""));
        assert_eq!(growth("ab", 3, "x"), Growth::Gap);
        assert_eq!(growth("ab", 1, "x"), Growth::Differs);
    }

    #[test]
    fn an_overlap_inside_a_character_differs() {
        assert_eq!(growth("aé", 2, "x"), Growth::Differs);
        assert_eq!(growth("a\u{e9}", 1, "é!"), Growth::Append("!"));
    }
}
