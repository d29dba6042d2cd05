//! A change of a text, line by line.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// More lines than these that differ are not compared further: all go, all come.
const MOST_COMPARED: usize = 2_000;

/// How many lines came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
}

/// The lines of both texts, each with its sign: a space for what stays, `-` for what goes, `+` for what comes.
pub fn unified(old: &str, new: &str) -> String {
    let (old, new) = (lines(old), lines(new));
    let head = old
        .iter()
        .zip(&new)
        .take_while(|(one, other)| one == other)
        .count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let (old_middle, new_middle) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let mut text = String::new();
    write(&mut text, ' ', &old[..head]);
    if old_middle.len() + new_middle.len() > MOST_COMPARED {
        write(&mut text, '-', old_middle);
        write(&mut text, '+', new_middle);
    } else {
        for step in capture_diff_slices(Algorithm::Myers, old_middle, new_middle) {
            let (tag, old_range, new_range) = step.as_tag_tuple();
            if tag == DiffTag::Equal {
                write(&mut text, ' ', &old_middle[old_range]);
            } else {
                write(&mut text, '-', &old_middle[old_range]);
                write(&mut text, '+', &new_middle[new_range]);
            }
        }
    }
    write(&mut text, ' ', &old_rest[old_rest.len() - tail..]);
    text
}

/// The lines of a text; a line end at its end begins no further line.
fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\n').unwrap_or(text).split('\n').collect()
}

fn write(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        text.push('\n');
    }
}

/// How many lines a change brings and takes.
pub fn count(text: &str) -> Change {
    let mut change = Change::default();
    let mut signs = Signs::default();
    for line in text.lines() {
        match signs.next(line) {
            Sign::Added => change.added += 1,
            Sign::Removed => change.removed += 1,
            Sign::Same | Sign::Head => {}
        }
    }
    change
}

/// What a line of a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It stays.
    Same,
    /// It comes.
    Added,
    /// It goes.
    Removed,
    /// It says where.
    Head,
}

/// Tells the lines of a change apart, one after the other.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    /// Lines may be the names of files: a patch has begun, and no hunk of it.
    is_head: bool,
}

impl Signs {
    pub(super) fn next(&mut self, line: &str) -> Sign {
        let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
        if begins(&["diff --git ", "Index: ", "*** "]) {
            self.is_head = true;
            return Sign::Head;
        }
        if line.starts_with("@@") {
            self.is_head = false;
            return Sign::Head;
        }
        if begins(&["--- a/", "--- /dev/null", "+++ b/", "+++ /dev/null"])
            || (self.is_head
                && begins(&[
                    "--- ",
                    "+++ ",
                    "index ",
                    "new file",
                    "deleted file",
                    "similarity",
                    "rename ",
                ]))
        {
            return Sign::Head;
        }
        match line.as_bytes().first() {
            Some(b'+') => Sign::Added,
            Some(b'-') => Sign::Removed,
            _ => Sign::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stay_come_and_go_are_told_apart() {
        assert_eq!(unified("a\nb\nc\n", "a\nx\nc\n"), " a\n-b\n+x\n c\n");
        assert_eq!(unified("", "a\nb"), "+a\n+b\n");
        assert_eq!(unified("a\n", ""), "-a\n");
        assert_eq!(unified("a\nb\nc\nd", "a\nc\nd\ne"), " a\n-b\n c\n d\n+e\n");
        assert_eq!(unified("a", "a"), " a\n");
        assert_eq!(unified("", ""), "");
        assert_eq!(unified("a\r\nb", "a\nb"), "-a\r\n+a\n b\n");
    }

    #[test]
    fn each_line_of_both_texts_is_in_the_change_however_many_there_are() {
        let old: String = (0..3_000).map(|line| format!("old {line}\n")).collect();
        let new: String = (0..3_000).map(|line| format!("new {line}\n")).collect();
        let change = unified(&old, &new);
        assert_eq!(
            count(&change),
            Change {
                added: 3_000,
                removed: 3_000
            }
        );
    }

    #[test]
    fn the_names_of_files_in_a_patch_are_no_lines_of_it() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-- one\n+two\n";
        assert_eq!(count(patch), Change { added: 1, removed: 1 });
        let other = "*** Begin Patch\n*** Update File: x\n@@\n-one\n+two\n+three\n*** End Patch\n";
        assert_eq!(count(other), Change { added: 2, removed: 1 });
        // Of texts that are compared, a line of dashes is a line.
        assert_eq!(count(&unified("-- \n", "")), Change { added: 0, removed: 1 });
    }
}
