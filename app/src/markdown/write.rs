//! The one way from the parser's events to HTML: the filter and the writer in one.
//!
//! Every tag and attribute below is written here by name, and every text and value is escaped; nothing of the source gets
//! through as markup. The spelling is that of the HTML standard's serialiser, so that a sanitiser that parses and writes it
//! again changes no byte.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Tag};

use super::definitions::{Definitions, footnote_key, id_of, label_key};
use super::parse::Spanned;
use super::target::target;

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
    let mut index = 0;
    while let Some((event, range)) = events.get(index) {
        index += match writer.footnote_reference(events, index) {
            Some(consumed) => consumed,
            None => {
                writer.event(event, range, events.get(index + 1..).unwrap_or_default());
                1
            }
        };
    }
    Written {
        html: writer.out,
        open_labels: writer.open_labels,
    }
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
                escape(&mut self.out, text, false);
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

    /// Destination and title of a link: those of the label's first definition, which may stand in an earlier piece.
    fn destination(&mut self, link_type: LinkType, url: &str, title: &str, id: &str) -> (String, String) {
        let is_reference = !matches!(link_type, LinkType::Inline | LinkType::Autolink | LinkType::Email);
        if is_reference {
            if let Some((url, title)) = self.scope.definitions.link(id) {
                return (url.to_owned(), title.to_owned());
            }
            self.open_labels.push(label_key(id));
        }
        let mail = if link_type == LinkType::Email {
            "mailto:"
        } else {
            ""
        };
        ([mail, url].concat(), title.to_owned())
    }

    fn link(&mut self, link_type: LinkType, url: &str, title: &str, id: &str) -> Closer {
        let (url, title) = self.destination(link_type, url, title, id);
        let Some(target) = target(&url).filter(|_| !self.in_link) else {
            return Closer::Plain("");
        };
        self.in_link = true;
        self.out.push_str("<a href=\"");
        self.link_rest(&target.url, target.external, &title);
        Closer::Link
    }

    /// The rest of an `a` element's tag, from within the value of `href`.
    fn link_rest(&mut self, url: &str, external: bool, title: &str) {
        escape(&mut self.out, url, true);
        self.out.push_str("\" rel=\"noopener noreferrer\"");
        if external {
            self.out.push_str(" target=\"_blank\"");
        }
        if !title.is_empty() {
            self.out.push_str(" title=\"");
            escape(&mut self.out, title, true);
            self.out.push('"');
        }
        self.out.push('>');
    }

    /// An image is a chip: a link to it, which the page replaces by the image on a click.
    fn image(&mut self, link_type: LinkType, url: &str, title: &str, id: &str) -> Closer {
        let (url, title) = self.destination(link_type, url, title, id);
        let target = target(&url).filter(|target| !self.in_link && !target.url.starts_with("mailto:"));
        match target {
            Some(target) => {
                self.out.push_str("<a class=\"md__image\" data-src=\"");
                escape(&mut self.out, &target.url, true);
                self.out.push_str("\" href=\"");
                self.link_rest(&target.url, target.external, &title);
                self.open("<b>Image</b> ", Closer::Image("</a>"))
            }
            None => self.open(
                "<span class=\"md__image\"><b>Image</b> ",
                Closer::Image("</span>"),
            ),
        }
    }

    fn footnote(&mut self, label: &str) -> Closer {
        self.out.push_str("<div class=\"md__footnote\"");
        let owner = self.scope.definitions.footnote(label);
        let is_first = self.footnotes.insert(footnote_key(label));
        if is_first && owner.is_none_or(|owner| owner == self.scope.piece) {
            self.out.push_str(" id=\"");
            self.footnote_id(label);
            self.out.push('"');
        }
        self.out.push_str("><sup class=\"md__mark\">");
        escape(&mut self.out, label, false);
        self.open("</sup>", Closer::Plain("</div>"))
    }

    fn footnote_id(&mut self, label: &str) {
        self.out.push_str(self.scope.prefix);
        self.out.push_str("-note-");
        self.out.push_str(&id_of(&footnote_key(label)));
    }

    /// A reference to a footnote that is defined in another stretch of the text: the parser left it as text, `[`, `^…`,
    /// `]`. Returns how many events it took.
    fn footnote_reference(&mut self, events: &[Spanned<'_>], index: usize) -> Option<usize> {
        let text_at = |index: usize| match events.get(index) {
            Some((Event::Text(text), range)) => Some((text, range)),
            _ => None,
        };
        let (opener, range) = text_at(index)?;
        if opener.as_ref() != "[" || self.is_escaped(range.start) {
            return None;
        }
        let mut label = String::new();
        let mut end = index + 1;
        loop {
            let (text, _) = text_at(end)?;
            if text.as_ref() == "]" {
                break;
            }
            label.push_str(text);
            end += 1;
        }
        let label = label.strip_prefix('^').filter(|label| !label.is_empty())?;
        if self.scope.definitions.footnote(label).is_none() {
            self.open_labels.push(footnote_key(label));
            return None;
        }
        self.mark(label);
        Some(end + 1 - index)
    }

    fn mark(&mut self, label: &str) {
        if self.images > 0 {
            return escape(&mut self.out, label, false);
        }
        self.out.push_str("<sup class=\"md__mark\">");
        if !self.in_link {
            self.out.push_str("<a href=\"#");
            self.footnote_id(label);
            self.out.push_str("\" rel=\"noopener noreferrer\">");
        }
        escape(&mut self.out, label, false);
        self.out
            .push_str(if self.in_link { "</sup>" } else { "</a></sup>" });
    }

    fn text(&mut self, text: &str, range: &Range<usize>) {
        let Some(live) = self.live.filter(|_| text.len() == range.len()) else {
            return escape(&mut self.out, text, false);
        };
        let plain = live.plain.as_ref().filter(|(at, _)| range.contains(at));
        for (offset, character) in text.char_indices() {
            let at = range.start + offset;
            if let Some((_, plain)) = plain.filter(|(place, _)| *place == at) {
                escape(&mut self.out, plain, false);
            } else if !live.hidden.iter().any(|hidden| hidden.contains(&at)) {
                escape(&mut self.out, character.encode_utf8(&mut [0; 4]), false);
            }
        }
    }

    /// `~a~` is text (about 5 is often written `~5`), `~~a~~` is struck through.
    fn is_single_tilde(&self, range: &Range<usize>) -> bool {
        !self
            .source
            .get(range.start..)
            .unwrap_or_default()
            .starts_with("~~")
    }

    fn is_escaped(&self, at: usize) -> bool {
        is_escaped(self.source, at)
    }
}

/// Whether an odd number of backslashes stands before this place.
pub(super) fn is_escaped(source: &str, at: usize) -> bool {
    let before = source.get(..at).unwrap_or_default();
    (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
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

/// Writes text as HTML: in an attribute's value or between tags. Characters that HTML has no place for become visible.
fn escape(out: &mut String, text: &str, in_attribute: bool) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            '\u{a0}' => out.push_str("&nbsp;"),
            '\0' => out.push('\u{fffd}'),
            '\t' | '\n' => out.push(character),
            '\r' => out.push('\n'),
            '\u{1}'..='\u{1f}' => {
                out.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'))
            }
            _ => out.push(character),
        }
    }
}
