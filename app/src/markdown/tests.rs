//! Every prefix of a text against the whole, hostile texts, and what a long text costs.

mod corpus;
mod generated;
mod grown;
mod hostile;
mod parts;
mod prefixes;
mod rendering;
mod rules;
mod specification;

use super::closed_length;

#[test]
fn a_text_that_broke_off_is_whole_up_to_its_last_closed_piece() {
    for (text, whole) in [
        ("", ""),
        ("half a sen", ""),
        ("One.\n\nhalf", "One."),
        ("One.\n\n1. first\n2. sec", "One."),
        ("One.\n\n```python\nfor x\n\n    y", "One."),
        ("One.\n\n```\nx\n```\n", "One.\n\n```\nx\n```"),
        ("# Title\nhalf", "# Title"),
        ("Grüße.\n\n😀 ha", "Grüße."),
    ] {
        assert_eq!(&text[..closed_length(text)], whole, "{text:?}");
    }
}
