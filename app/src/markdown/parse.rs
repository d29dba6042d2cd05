//! One pass of the parser over a stretch of source: its events, cut into top-level blocks.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::definitions::{Definitions, LinkDefinition, label_key};

/// An event and its bytes in the source that was parsed.
pub(super) type Spanned<'a> = (Event<'a>, Range<usize>);

/// A top-level block: its events, and the start of its first line.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) events: Range<usize>,
    pub(super) start: usize,
}

/// What a pass found.
pub(super) struct Parsed<'a> {
    pub(super) events: Vec<Spanned<'a>>,
    pub(super) blocks: Vec<Block>,
    /// Link definitions, by their place.
    pub(super) definitions: Vec<LinkDefinition>,
    /// Keys of link labels that nothing defines, with the place of the reference.
    unresolved: Vec<(usize, String)>,
}

impl<'a> Parsed<'a> {
    /// The events of a block.
    pub(super) fn events_of(&self, block: &Block) -> &[Spanned<'a>] {
        self.events.get(block.events.clone()).unwrap_or_default()
    }

    /// The source of the block with this index: up to the next block, or to `end`.
    pub(super) fn range_of(&self, index: usize, end: usize) -> Range<usize> {
        let start = self.blocks.get(index).map_or(end, |block| block.start);
        let end = self.blocks.get(index + 1).map_or(end, |block| block.start);
        start..end
    }

    /// The source of a block, without the blank lines after it.
    pub(super) fn trimmed_range_of(&self, block: &Block, source: &str) -> Range<usize> {
        let end = self
            .events_of(block)
            .iter()
            .map(|(_, range)| range.end)
            .max()
            .unwrap_or(block.start);
        let text = source.get(block.start..end).unwrap_or_default();
        block.start..block.start + text.trim_end_matches(BLANKS).len()
    }

    /// Whether no further line can join the last block, as far as that is plain to see (for a fenced code block see
    /// [`last_fenced`](Self::last_fenced)). False if something follows it: a definition, whose title may still come.
    pub(super) fn last_is_closed(&self, source: &str, has_closed_fence: bool) -> bool {
        let Some(block) = self.blocks.last() else {
            return false;
        };
        let after = source
            .get(self.trimmed_range_of(block, source).end..)
            .unwrap_or_default();
        let is_closed = match self.events_of(block).first() {
            Some((Event::Rule | Event::Start(Tag::Heading { .. }), _)) => after.contains('\n'),
            Some((Event::Start(Tag::Paragraph | Tag::Table(_) | Tag::BlockQuote(_)), _)) => {
                after.matches('\n').count() > 1
            }
            _ => has_closed_fence,
        };
        is_closed && is_blank(after)
    }

    /// Whether this block must be parsed together with the one before it, because alone it would be read differently:
    ///
    /// - a line with a definition stands right before it, so that its first line is read as the next line of a paragraph;
    /// - its first line is indented like code and is none: it started within a block that ended there, as a footnote's
    ///   definition does that stands in another one.
    pub(super) fn leans_on_previous(&self, block: &Block, source: &str) -> bool {
        let before = source.get(..block.start).unwrap_or_default();
        let follows_definition = before
            .lines()
            .rev()
            .take_while(|line| !is_blank(line))
            .any(|line| line.contains("]:"));
        let is_code = matches!(
            self.events_of(block).first(),
            Some((Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)), _))
        );
        follows_definition
            || (!is_code && is_indented_like_code(source.get(block.start..).unwrap_or_default()))
    }

    /// The source of the last block if it is a fenced code block.
    pub(super) fn last_fenced<'s>(&self, source: &'s str) -> Option<&'s str> {
        let block = self.blocks.last()?;
        let first = self.events_of(block).first();
        let is_fenced = matches!(
            first,
            Some((Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))), _))
        );
        source.get(block.start..).filter(|_| is_fenced)
    }

    /// The labels of the footnotes that a block defines.
    pub(super) fn footnotes_of<'s>(&'s self, block: &Block) -> impl Iterator<Item = &'s str> + use<'s, 'a> {
        self.events_of(block).iter().filter_map(|(event, _)| match event {
            Event::Start(Tag::FootnoteDefinition(label)) => Some(label.as_ref()),
            _ => None,
        })
    }

    /// Keys of the link labels in this stretch that nothing defines.
    pub(super) fn unresolved_in(&self, range: &Range<usize>) -> Vec<String> {
        self.unresolved
            .iter()
            .filter(|(at, _)| range.contains(at))
            .map(|(_, key)| key.clone())
            .collect()
    }
}

/// Parses a stretch of source that starts where a top-level block may start. References that it does not define itself are
/// looked up in `definitions`.
pub(super) fn parse<'a>(source: &'a str, definitions: &Definitions) -> Parsed<'a> {
    let stubs = footnote_stubs(source, definitions);
    if stubs.is_empty() {
        return parse_with(source, definitions);
    }
    let text = [stubs.as_str(), source].concat();
    let parsed = parse_with(&text, definitions);
    let first = parsed
        .events
        .partition_point(|(_, range)| range.start < stubs.len());
    let shift = |at: usize| at.saturating_sub(stubs.len());
    let events: Vec<Spanned<'a>> = parsed
        .events
        .into_iter()
        .skip(first)
        .map(|(event, range)| (event.into_static(), shift(range.start)..shift(range.end)))
        .collect();
    let blocks = blocks(source, &events);
    let unresolved = parsed
        .unresolved
        .into_iter()
        .map(|(at, key)| (shift(at), key))
        .collect();
    let found = parsed.definitions.into_iter();
    let found = found
        .map(|found| LinkDefinition {
            start: shift(found.start),
            ..found
        })
        .collect();
    Parsed {
        events,
        blocks,
        definitions: found,
        unresolved,
    }
}

/// The parser takes `[^a]` for a footnote only if it is defined in the same text. These definitions, put before the text,
/// stand for those in other pieces; a rule ends the last of them.
fn footnote_stubs(source: &str, definitions: &Definitions) -> String {
    let mut stubs = String::new();
    for label in footnote_labels(source).filter(|label| definitions.footnote(label).is_some()) {
        stubs.push_str("[^");
        stubs.push_str(label);
        stubs.push_str("]:\n\n");
    }
    if !stubs.is_empty() {
        stubs.push_str("***\n\n");
    }
    stubs
}

/// What may be labels of footnotes in this source, doubles included.
pub(super) fn footnote_labels(source: &str) -> impl Iterator<Item = &str> {
    source.split("[^").skip(1).filter_map(|rest| {
        let label = rest.split(']').next().unwrap_or_default();
        let is_label = label.len() < rest.len() && !label.is_empty() && !label.contains(['[', '\n', '\r']);
        is_label.then_some(label)
    })
}

fn parse_with<'a>(source: &'a str, definitions: &Definitions) -> Parsed<'a> {
    let mut unresolved = Vec::new();
    let look_up = |link: BrokenLink<'a>| -> Option<(CowStr<'a>, CowStr<'a>)> {
        match definitions.link(&link.reference) {
            Some((destination, title)) => Some((destination.to_owned().into(), title.to_owned().into())),
            None => {
                unresolved.push((link.span.start, label_key(&link.reference)));
                None
            }
        }
    };
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_with_broken_link_callback(source, options, Some(look_up));
    let mut found: Vec<LinkDefinition> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| LinkDefinition {
            label: label.to_owned(),
            destination: definition.dest.to_string(),
            title: definition
                .title
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            start: definition.span.start,
        })
        .collect();
    found.sort_by_key(|definition| definition.start);
    let events: Vec<Spanned<'a>> = parser.into_offset_iter().collect();
    let blocks = blocks(source, &events);
    Parsed {
        events,
        blocks,
        definitions: found,
        unresolved,
    }
}

fn blocks(source: &str, events: &[Spanned<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    let mut first = 0;
    for (index, (event, range)) in events.iter().enumerate() {
        if depth == 0 {
            let start = line_start(source, range.start);
            match blocks.last() {
                // A footnote's definition within the line of another one starts a block there.
                Some(last) if last.start == start => {}
                _ => {
                    first = index;
                    blocks.push(Block {
                        events: first..first,
                        start,
                    });
                }
            }
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0
            && let Some(block) = blocks.last_mut()
        {
            block.events = first..index + 1;
        }
    }
    blocks
}

/// What stands in a blank line, and ends it. Other blanks, such as those that do not break, are text.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

fn is_blank(text: &str) -> bool {
    text.trim_matches(BLANKS).is_empty()
}

/// Whether a line starts with four columns of white space (CommonMark §2.2 and §4.4).
fn is_indented_like_code(line: &str) -> bool {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    spaces >= 4 || line.get(spaces..).is_some_and(|rest| rest.starts_with('\t'))
}

fn line_start(source: &str, at: usize) -> usize {
    let before = source.get(..at).unwrap_or_default();
    before.rfind('\n').map_or(0, |newline| newline + 1)
}

/// Whether an event stands within a line of text (and is not a block's border).
pub(super) fn is_inline(event: &Event<'_>) -> bool {
    match event {
        Event::Start(tag) => matches!(
            tag,
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }
        ),
        Event::End(tag) => {
            matches!(
                tag,
                TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
            )
        }
        Event::Rule | Event::Html(_) => false,
        _ => true,
    }
}
