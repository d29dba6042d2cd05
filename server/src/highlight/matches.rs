//! The matches of a regular expression, line by line, by the engine that searches files: its time is linear.

use grep_matcher::Matcher;
use protocol::api::{Highlighted, PlaceClass};

use super::{Places, units};
use crate::tool::search_files::line_matcher;

/// The places that the pattern matches.
pub(super) fn places(text: &str, pattern: &str, case_sensitive: bool) -> Result<Highlighted, String> {
    let matcher = line_matcher(pattern, case_sensitive).map_err(|error| error.to_string())?;
    let mut places = Places::default();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let content = content.strip_suffix('\r').unwrap_or(content);
        let mut add = |found: grep_matcher::Match| {
            // A pattern may match within a character; there is no such place in a text.
            if let (Some(before), Some(matched)) = (
                content.get(..found.start()),
                content.get(found.start()..found.end()),
            ) {
                places.add(PlaceClass::Match, start + units(before), units(matched));
            }
            true
        };
        matcher
            .find_iter(content.as_bytes(), &mut add)
            .map_err(|error| error.to_string())?;
        start += units(line);
    }
    Ok(places.0)
}
