//! How the HTML of an open tail became longer: most often by some text at its end, so that the page need not draw the rest
//! of it again.

/// What was added to an HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Added<'h> {
    /// The element that it was added to, at the end: so many levels down, each time the last element.
    pub(super) depth: usize,
    /// Text, as HTML, that goes on with what stands there.
    pub(super) text: &'h str,
    /// Whole elements, and text between and after them.
    pub(super) markup: &'h str,
}

/// What makes the new HTML of the old one, if it was added to the end of one element. Both are what the writer writes:
/// tags are whole, and `<` and `>` stand in tags alone.
pub(super) fn added<'h>(old: &str, new: &'h str) -> Option<Added<'h>> {
    let mut start = start_of_closers(old);
    loop {
        let (head, closers) = old.split_at_checked(start)?;
        let rest = new.strip_prefix(head)?;
        if let Some(added) = rest.strip_suffix(closers).filter(|added| is_whole(added)) {
            let (text, markup) = added.split_at_checked(added.find('<').unwrap_or(added.len()))?;
            return Some(Added {
                depth: closers.matches('<').count(),
                text,
                markup,
            });
        }
        start += closers.find('>')? + 1;
    }
}

/// Where the closing tags at the end begin.
fn start_of_closers(html: &str) -> usize {
    let mut start = html.len();
    while let Some(head) = html.get(..start).filter(|head| head.ends_with('>')) {
        match head.rfind('<') {
            Some(tag) if html.get(tag..start).is_some_and(|tag| tag.starts_with("</")) => start = tag,
            _ => break,
        }
    }
    start
}

/// Whether each element that begins here also ends here, and no other does.
fn is_whole(html: &str) -> bool {
    let mut depth = 0_usize;
    for tag in html.split('<').skip(1) {
        let name = tag.split(['>', ' ']).next().unwrap_or_default();
        depth = match name {
            "br" | "hr" | "input" | "img" => depth,
            _ if !name.starts_with('/') => depth + 1,
            _ => match depth.checked_sub(1) {
                Some(depth) => depth,
                None => return false,
            },
        };
    }
    depth == 0
}
