//! Links, images and footnotes: what refers to something.

use pulldown_cmark::{Event, LinkType};

use super::escape::escape;
use super::{Closer, Writer, is_escaped};
use crate::markdown::definitions::{footnote_key, id_of, label_key};
use crate::markdown::parse::Spanned;
use crate::markdown::target::target;

impl Writer<'_> {
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

    pub(super) fn link(&mut self, link_type: LinkType, url: &str, title: &str, id: &str) -> Closer {
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
    pub(super) fn image(&mut self, link_type: LinkType, url: &str, title: &str, id: &str) -> Closer {
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

    pub(super) fn footnote(&mut self, label: &str) -> Closer {
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
    pub(super) fn footnote_reference(&mut self, events: &[Spanned<'_>], index: usize) -> Option<usize> {
        let text_at = |index: usize| match events.get(index) {
            Some((Event::Text(text), range)) => Some((text, range)),
            _ => None,
        };
        let (opener, range) = text_at(index)?;
        if opener.as_ref() != "[" || is_escaped(self.source, range.start) {
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

    pub(super) fn mark(&mut self, label: &str) {
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
}
