//! Characters that must not stand in HTML as they are, and escapes in Markdown.

/// Whether an odd number of backslashes stands before this place.
pub(in crate::markdown) fn is_escaped(source: &str, at: usize) -> bool {
    let before = source.get(..at).unwrap_or_default();
    (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
}

/// Writes text as HTML: in an attribute's value or between tags. Characters that HTML has no place for become visible.
pub(super) fn escape(out: &mut String, text: &str, in_attribute: bool) {
    let mut written = 0;
    for (at, character) in text.char_indices() {
        let mut picture = [0; 4];
        let replacement = match character {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' if in_attribute => "&quot;",
            '\u{a0}' => "&nbsp;",
            '\0' => "\u{fffd}",
            '\t' | '\n' => continue,
            '\r' => "\n",
            // The control pictures stand in the order of the controls.
            '\u{1}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character))
                .unwrap_or('\u{fffd}')
                .encode_utf8(&mut picture),
            _ => continue,
        };
        out.push_str(text.get(written..at).unwrap_or_default());
        out.push_str(replacement);
        written = at + character.len_utf8();
    }
    out.push_str(text.get(written..).unwrap_or_default());
}

/// The text that was written between tags.
#[cfg(any(test, feature = "hydrate"))]
pub(in crate::markdown) fn unescape(html: &str) -> String {
    let text = html.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}
