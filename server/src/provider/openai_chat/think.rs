//! Splits `<think>…</think>` out of content, for endpoints that leave the tags in.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of content after splitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// What stands outside the tags.
    Text(String),
    /// What stands between them.
    Reasoning(String),
}

/// Holds back what may be the beginning of a tag until it is decided.
#[derive(Debug, Default)]
pub(super) struct ThinkSplitter {
    inside: bool,
    held: String,
}

impl ThinkSplitter {
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        loop {
            let tag = if self.inside { CLOSE } else { OPEN };
            match self.held.find(tag) {
                Some(at) => {
                    let rest = self.held.split_off(at + tag.len());
                    self.held.truncate(at);
                    self.release(&mut pieces);
                    self.held = rest;
                    self.inside = !self.inside;
                }
                None => {
                    let keep = longest_suffix_that_begins(&self.held, tag);
                    let rest = self.held.split_off(self.held.len() - keep);
                    self.release(&mut pieces);
                    self.held = rest;
                    return pieces;
                }
            }
        }
    }

    /// The content is over: what was held back was no tag.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.release(&mut pieces);
        pieces
    }

    fn release(&mut self, pieces: &mut Vec<Piece>) {
        let text = std::mem::take(&mut self.held);
        if !text.is_empty() {
            pieces.push(if self.inside {
                Piece::Reasoning(text)
            } else {
                Piece::Text(text)
            });
        }
    }
}

fn longest_suffix_that_begins(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|length| tag.get(..*length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(chunks: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let mut pieces: Vec<Piece> = chunks.iter().flat_map(|chunk| splitter.push(chunk)).collect();
        pieces.extend(splitter.finish());
        let (mut text, mut reasoning) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(piece) => text.push_str(&piece),
                Piece::Reasoning(piece) => reasoning.push_str(&piece),
            }
        }
        (text, reasoning)
    }

    #[test]
    fn tags_are_found_however_the_text_is_cut() {
        let whole = "a < b <think>so <b> é</think>done </think> <thin";
        let expected = ("a < b done </think> <thin".to_owned(), "so <b> é".to_owned());
        assert_eq!(joined(&[whole]), expected);
        for cut in (0..=whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            assert_eq!(joined(&[&whole[..cut], &whole[cut..]]), expected, "cut at {cut}");
        }
        let single: Vec<String> = whole.chars().map(String::from).collect();
        assert_eq!(
            joined(&single.iter().map(String::as_str).collect::<Vec<_>>()),
            expected
        );
    }
}
