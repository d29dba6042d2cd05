//! The one way from the parser's events to HTML: the filter and the writer in one.
//!
//! Every tag and attribute below is written here by name, and every text and value is escaped; nothing of the source gets
//! through as markup. The spelling is that of the HTML standard's serialiser, so that a sanitiser that parses and writes it
//! again changes no byte.

mod escape;
mod reference;

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Tag};

use super::definitions::Definitions;
use super::parse::Spanned;
use escape::escape;
pub(super) use escape::is_escaped;
#[cfg(any(test, feature = "hydrate"))]
pub(super) use escape::unescape;

/// Elements within elements; deeper ones are left out, their text stays. Browsers nest up to 512.
const MAX_DEPTH: usize = 48;

/// What the writer must know of the whole text.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s> {
    /// Goes before the ids of footnotes.
    pub(super) prefix: &'s str,
    pub(super) definitions: &'s Definitions,
    /// The index of the piece that is written.
    pub(super) piece: usize,
}

/// What is different in a text that is still growing. All places are in the source that was parsed.
#[derive(Debug, Default, Clone)]
pub(super) struct Live {
    /// Markers that are not decided and not shown.
    pub(super) hidden: Vec<Range<usize>>,
    /// Whether pipes that are hidden are so within code spans, too.
    pub(super) hides_in_code: bool,
    /// A text to be written as it is in the place of the one character [`PLACEHOLDER`].
    pub(super) plain: Option<(usize, String)>,
}

/// Stands in the parsed source for text that must not be parsed: the parser takes it for a letter.
pub(super) const PLACEHOLDER: char = '\u{e000}';

/// A written piece.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) html: String,
    /// Keys of labels whose definition may come later or become another.
    pub(super) open_labels: Vec<String>,
}

/// Writes events that were parsed from `source`.
pub(super) fn write(events: &[Spanned<'_>], source: &str, scope: &Scope<'_>, live: Option<&Live>) -> Written {
    let mut writer = Writer {
        source,
        scope,
        live,
        out: String::with_capacity(events.last().map_or(0, |(_, range)| range.end) / 2 + 64),
        open_labels: Vec::new(),
        closers: Vec::new(),
        footnotes: BTreeSet::new(),
        alignments: Vec::new(),
        cell: 0,
        in_head: false,
        in_body: false,
        in_link: false,
        images: 0,
    };
    for (index, (event, range)) in events.iter().enumerate() {
        writer.event(event, range, events.get(index + 1..).unwrap_or_default());
    }
    Written {
        html: writer.out,
        open_labels: writer.open_labels,
    }
}

/// A text without pipes, and what escapes them in a cell.
pub(super) fn without_pipes(text: &str) -> String {
    text.replace("\\|", "").replace('|', "")
}

struct Writer<'w> {
    source: &'w str,
    scope: &'w Scope<'w>,
    live: Option<&'w Live>,
    out: String,
    open_labels: Vec<String>,
    /// How each open element ends.
    closers: Vec<Closer>,
    footnotes: BTreeSet<String>,
    alignments: Vec<Alignment>,
    cell: usize,
    in_head: bool,
    in_body: bool,
    in_link: bool,
    /// Images within images: only the text of the inner ones counts.
    images: usize,
}

impl Writer<'_> {
    fn event(&mut self, event: &Event<'_>, range: &Range<usize>, following: &[Spanned<'_>]) {
        match event {
            Event::Start(tag) => self.start(tag, range, following),
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(text, range),
            Event::Code(text) if self.images > 0 => self.text(text, range),
            Event::Code(text) => {
                self.out.push_str("<code>");
                if self.hides_in(range) && self.live.is_some_and(|live| live.hides_in_code) {
                    escape(&mut self.out, &without_pipes(text), false);
                } else {
                    escape(&mut self.out, text, false);
                }
                self.out.push_str("</code>");
            }
            // Raw HTML is text.
            Event::Html(text) | Event::InlineHtml(text) => self.text(text, range),
            Event::InlineMath(text) | Event::DisplayMath(text) => escape(&mut self.out, text, false),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak if self.images > 0 => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::FootnoteReference(label) => self.mark(label),
            Event::TaskListMarker(done) => self.out.push_str(if *done {
                "<input type=\"checkbox\" disabled=\"\" checked=\"\" aria-label=\"done\">"
            } else {
                "<input type=\"checkbox\" disabled=\"\" aria-label=\"open\">"
            }),
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: &Range<usize>, following: &[Spanned<'_>]) {
        let is_image = matches!(tag, Tag::Image { .. });
        if self.images > 0 || self.closers.len() >= MAX_DEPTH {
            if is_image {
                self.images += 1;
            }
            if self.images == 0 && matches!(tag, Tag::Item | Tag::Paragraph) {
                self.out.push('\n');
            }
            self.closers.push(if is_image {
                Closer::Image("")
            } else {
                Closer::Plain("")
            });
            return;
        }
        let closer = match tag {
            Tag::Paragraph => self.open("<p>", Closer::Plain("</p>")),
            Tag::Heading { level, .. } => self.heading(*level),
            Tag::BlockQuote(_) => self.open("<blockquote>", Closer::Plain("</blockquote>")),
            Tag::CodeBlock(kind) => self.code_block(kind),
            Tag::HtmlBlock => self.open("<p class=\"md__html\">", Closer::Html),
            Tag::List(first) => self.list(*first, following),
            Tag::Item => self.open("<li>", Closer::Plain("</li>")),
            Tag::FootnoteDefinition(label) => self.footnote(label),
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                self.in_body = false;
                self.open(
                    "<div class=\"md__scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>",
                    Closer::Table,
                )
            }
            Tag::TableHead => {
                self.in_head = true;
                self.cell = 0;
                self.open("<thead><tr>", Closer::TableHead)
            }
            Tag::TableRow => {
                self.cell = 0;
                if !self.in_body {
                    self.in_body = true;
                    self.out.push_str("<tbody>");
                }
                self.open("<tr>", Closer::Plain("</tr>"))
            }
            Tag::TableCell => self.table_cell(),
            Tag::Emphasis => self.open("<em>", Closer::Plain("</em>")),
            Tag::Strong => self.open("<strong>", Closer::Plain("</strong>")),
            Tag::Strikethrough if self.is_single_tilde(range) => self.open("~", Closer::Plain("~")),
            Tag::Strikethrough => self.open("<del>", Closer::Plain("</del>")),
            Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            } => self.link(*link_type, dest_url, title, id),
            Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            } => {
                self.images += 1;
                self.image(*link_type, dest_url, title, id)
            }
            // Not asked of the parser.
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => Closer::Plain(""),
        };
        self.closers.push(closer);
    }

    fn open(&mut self, opener: &str, closer: Closer) -> Closer {
        self.out.push_str(opener);
        closer
    }

    fn end(&mut self) {
        match self.closers.pop() {
            Some(Closer::Plain(closer)) => self.out.push_str(closer),
            Some(Closer::Code) => self.end_trimmed("</code></pre></figure>"),
            Some(Closer::Html) => self.end_trimmed("</p>"),
            Some(Closer::TableHead) => {
                self.in_head = false;
                self.out.push_str("</tr></thead>");
            }
            Some(Closer::Table) => self.out.push_str(if self.in_body {
                "</tbody></table></div>"
            } else {
                "</table></div>"
            }),
            Some(Closer::Link) => {
                self.in_link = false;
                self.out.push_str("</a>");
            }
            Some(Closer::Image(closer)) => {
                self.images = self.images.saturating_sub(1);
                self.out.push_str(closer);
            }
            None => {}
        }
    }

    /// Ends an element whose text ends with a line end that is not part of it.
    fn end_trimmed(&mut self, closer: &str) {
        if self.out.ends_with('\n') {
            self.out.pop();
        }
        self.out.push_str(closer);
    }

    /// A page has its own first level, so a text's headings start at the second.
    fn heading(&mut self, level: HeadingLevel) -> Closer {
        match level {
            HeadingLevel::H1 => self.open("<h2>", Closer::Plain("</h2>")),
            HeadingLevel::H2 => self.open("<h3>", Closer::Plain("</h3>")),
            HeadingLevel::H3 => self.open("<h4>", Closer::Plain("</h4>")),
            HeadingLevel::H4 => self.open("<h5>", Closer::Plain("</h5>")),
            HeadingLevel::H5 | HeadingLevel::H6 => self.open("<h6>", Closer::Plain("</h6>")),
        }
    }

    fn code_block(&mut self, kind: &CodeBlockKind<'_>) -> Closer {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info
                .split([' ', '\t', ',', '{'])
                .next()
                .unwrap_or_default()
                .trim_start_matches('.'),
            CodeBlockKind::Indented => "",
        };
        self.out
            .push_str("<figure class=\"codeblock\"><figcaption class=\"codeblock__head\">");
        if !language.is_empty() {
            self.out.push_str("<span>");
            escape(&mut self.out, language, false);
            self.out.push_str("</span>");
        }
        self.out.push_str(
            "<button type=\"button\" class=\"btn btn--quiet btn--sm\" data-copy=\"code\">Copy</button></figcaption>\
             <pre class=\"pre\" tabindex=\"0\" role=\"group\" aria-label=\"",
        );
        if !language.is_empty() {
            escape(&mut self.out, language, true);
            self.out.push(' ');
        }
        self.open("code\"><code>", Closer::Code)
    }

    fn list(&mut self, first: Option<u64>, following: &[Spanned<'_>]) -> Closer {
        // The first item decides: `Item`, then perhaps a paragraph, then the box.
        let has_boxes = following
            .iter()
            .take(3)
            .any(|(event, _)| matches!(event, Event::TaskListMarker(_)));
        self.out.push_str(if first.is_some() { "<ol" } else { "<ul" });
        if has_boxes {
            self.out.push_str(" class=\"md__tasks\"");
        }
        if let Some(first) = first.filter(|first| *first != 1) {
            self.out.push_str(" start=\"");
            self.out.push_str(&first.to_string());
            self.out.push('"');
        }
        self.out.push('>');
        Closer::Plain(if first.is_some() { "</ol>" } else { "</ul>" })
    }

    fn table_cell(&mut self) -> Closer {
        self.out.push_str(if self.in_head { "<th" } else { "<td" });
        match self.alignments.get(self.cell) {
            Some(Alignment::Center) => self.out.push_str(" class=\"md__center\">"),
            Some(Alignment::Right) => self.out.push_str(" class=\"md__right\">"),
            _ => self.out.push('>'),
        }
        self.cell += 1;
        Closer::Plain(if self.in_head { "</th>" } else { "</td>" })
    }

    fn text(&mut self, text: &str, range: &Range<usize>) {
        let Some(live) = self.live.filter(|_| text.len() == range.len()) else {
            return escape(&mut self.out, text, false);
        };
        let plain = live.plain.as_ref().filter(|(at, _)| range.contains(at));
        if plain.is_none() && !self.hides_in(range) {
            return escape(&mut self.out, text, false);
        }
        for (offset, character) in text.char_indices() {
            let at = range.start + offset;
            if let Some((_, plain)) = plain.filter(|(place, _)| *place == at) {
                escape(&mut self.out, plain, false);
            } else if !live.hidden.iter().any(|hidden| hidden.contains(&at)) {
                escape(&mut self.out, character.encode_utf8(&mut [0; 4]), false);
            }
        }
    }

    /// Whether a mark is hidden within this range.
    fn hides_in(&self, range: &Range<usize>) -> bool {
        self.live.is_some_and(|live| {
            live.hidden
                .iter()
                .any(|hidden| hidden.start < range.end && hidden.end > range.start)
        })
    }

    /// `~a~` is text (about 5 is often written `~5`), `~~a~~` is struck through.
    fn is_single_tilde(&self, range: &Range<usize>) -> bool {
        !self
            .source
            .get(range.start..)
            .unwrap_or_default()
            .starts_with("~~")
    }
}

/// How an open element ends.
#[derive(Debug, Clone, Copy)]
enum Closer {
    /// With this text only.
    Plain(&'static str),
    Code,
    Html,
    TableHead,
    Table,
    Link,
    Image(&'static str),
}
