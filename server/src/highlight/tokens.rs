//! The words of a language, by its grammar.

use std::sync::LazyLock;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use protocol::api::PlaceClass;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference};

use super::language::SYNTAXES;
use super::{Found, Places, units};

/// Longer lines (minified ones) are passed over: a grammar may take a time that grows faster than they do.
const LONGEST_LINE: usize = 2_000;

/// What a scope means; the first line that fits counts. Within what is `None`, nothing is told apart.
const MEANINGS: &[(&str, Option<PlaceClass>)] = &[
    ("comment", Some(PlaceClass::Comment)),
    ("constant.character.escape", Some(PlaceClass::Number)),
    ("string", Some(PlaceClass::String)),
    ("constant", Some(PlaceClass::Number)),
    ("keyword.operator", None),
    ("keyword", Some(PlaceClass::Keyword)),
    ("storage", Some(PlaceClass::Keyword)),
    ("variable.language", Some(PlaceClass::Keyword)),
    ("entity.name.tag", Some(PlaceClass::Keyword)),
    ("entity.name", Some(PlaceClass::Function)),
    ("entity.other.attribute-name", Some(PlaceClass::Function)),
    ("entity.other.inherited-class", Some(PlaceClass::Function)),
    ("support", Some(PlaceClass::Function)),
    ("variable.function", Some(PlaceClass::Function)),
    ("markup.inserted", Some(PlaceClass::Inserted)),
    ("markup.deleted", Some(PlaceClass::Deleted)),
    ("markup.heading", Some(PlaceClass::Keyword)),
    ("markup.raw", Some(PlaceClass::String)),
    // What stands in the holes of a string is not string; nor is one language within another.
    ("meta.interpolation", None),
    ("meta.template.expression", None),
    ("source", None),
    ("text", None),
];

static TABLE: LazyLock<Vec<(Scope, Option<PlaceClass>)>> = LazyLock::new(|| {
    let known = MEANINGS
        .iter()
        .filter_map(|(name, class)| Some((Scope::new(name).ok()?, *class)));
    known.collect()
});
static KEY: LazyLock<Option<Scope>> = LazyLock::new(|| Scope::new("meta.mapping.key").ok());

/// What stands under a stack of scopes, of which the last is the innermost.
fn class_of(stack: &[Scope]) -> Option<PlaceClass> {
    let class = stack.iter().rev().find_map(|scope| {
        TABLE
            .iter()
            .find(|(prefix, _)| prefix.is_prefix_of(*scope))
            .map(|(_, class)| *class)
    })??;
    let is_key = |scope: &Scope| KEY.is_some_and(|key| key.is_prefix_of(*scope));
    if class == PlaceClass::String && stack.iter().any(is_key) {
        return Some(PlaceClass::Function);
    }
    Some(class)
}

/// How long this thread has computed: what others do on a busy machine is not counted.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// The places of a text, as far as the time allows.
pub(super) fn places(text: &str, syntax: &SyntaxReference, time: Duration) -> Found {
    let begun = worked();
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut places = Places::default();
    let mut is_whole = true;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if worked().saturating_sub(begun) >= time {
            is_whole = false;
            break;
        }
        if line.len() <= LONGEST_LINE {
            let Ok(operations) = state.parse_line(line, &SYNTAXES) else {
                break;
            };
            let mut done = 0;
            let mut at = start;
            let mut take = |end: usize, stack: &ScopeStack| {
                let part = line.get(done..end).unwrap_or_default();
                let length = units(part);
                // A line's end belongs to nothing that can be seen.
                let shown = part.trim_end_matches(['\n', '\r']);
                if let Some(class) = class_of(stack.as_slice()).filter(|_| !shown.trim().is_empty()) {
                    places.add(class, at, units(shown));
                }
                at += length;
                done = done.max(end);
            };
            let mut is_sound = true;
            for (place, operation) in &operations {
                take(*place, &stack);
                is_sound &= stack.apply(operation).is_ok();
            }
            take(line.len(), &stack);
            if !is_sound {
                break;
            }
        }
        start += units(line);
    }
    Found {
        places: places.0,
        is_whole,
    }
}
