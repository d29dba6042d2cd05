//! What was found, by what was asked; the least used goes first.

use std::sync::Arc;

use hashlink::LruCache;
use protocol::api::{HighlightText, Highlighted};
use sha2::{Digest, Sha256};

/// The hash of a request.
pub(super) type Key = [u8; 32];

/// What the entry itself takes beside its places, about.
const ENTRY_BYTES: usize = 256;

/// Answers, at most so many bytes of them.
pub(super) struct Cache {
    entries: LruCache<Key, Arc<Highlighted>>,
    bytes: usize,
    most: usize,
}

/// Two requests with one key have the same answer.
pub(super) fn key(request: &HighlightText) -> Key {
    let mut hash = Sha256::new();
    for part in [request.language.as_deref(), request.pattern.as_deref()] {
        hash.update([u8::from(part.is_some())]);
        hash.update((part.map_or(0, str::len) as u64).to_le_bytes());
        hash.update(part.unwrap_or_default());
    }
    hash.update([u8::from(request.case_sensitive != Some(false))]);
    hash.update(&request.text);
    hash.finalize().into()
}

fn weight(answer: &Highlighted) -> usize {
    let numbers: usize = answer.places.values().map(Vec::len).sum();
    numbers * size_of::<u32>() + ENTRY_BYTES
}

impl Cache {
    pub(super) fn new(most: usize) -> Self {
        Self {
            entries: LruCache::new_unbounded(),
            bytes: 0,
            most,
        }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<Arc<Highlighted>> {
        self.entries.get(key).cloned()
    }

    pub(super) fn put(&mut self, key: Key, answer: Arc<Highlighted>) {
        self.bytes += weight(&answer);
        if let Some(before) = self.entries.insert(key, answer) {
            self.bytes -= weight(&before);
        }
        while self.bytes > self.most {
            let Some((_, oldest)) = self.entries.remove_lru() else {
                return;
            };
            self.bytes -= weight(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::api::PlaceClass;

    use super::*;

    fn answer(places: usize) -> Arc<Highlighted> {
        let numbers = vec![1; places * 2];
        Arc::new(Highlighted {
            places: [(PlaceClass::Keyword, numbers)].into(),
        })
    }

    #[test]
    fn the_least_used_goes_when_there_is_no_room() {
        let mut cache = Cache::new(3 * weight(&answer(10)));
        for name in 1..=3 {
            cache.put([name; 32], answer(10));
        }
        assert!(cache.get(&[1; 32]).is_some());
        cache.put([4; 32], answer(10));
        assert!(cache.get(&[2; 32]).is_none());
        for name in [1, 3, 4] {
            assert!(cache.get(&[name; 32]).is_some(), "{name}");
        }
        // The same once more takes no further room.
        cache.put([4; 32], answer(10));
        assert!(cache.get(&[1; 32]).is_some());
        cache.put([5; 32], answer(1_000));
        assert_eq!(cache.bytes, 0, "what is larger than all room is not kept");
    }

    #[test]
    fn requests_that_differ_in_anything_have_keys_of_their_own() {
        let of = |text: &str, language: Option<&str>, pattern: Option<&str>, case_sensitive| {
            key(&HighlightText {
                text: text.to_owned(),
                language: language.map(str::to_owned),
                pattern: pattern.map(str::to_owned),
                case_sensitive,
            })
        };
        let keys = [
            of("a", Some("rs"), None, None),
            of("a", None, Some("rs"), None),
            of("a", None, Some("rs"), Some(false)),
            of("sa", Some("r"), None, None),
            of("b", Some("rs"), None, None),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(
            of("a", None, Some("b"), None),
            of("a", None, Some("b"), Some(true))
        );
    }
}
