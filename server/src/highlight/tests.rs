//! Places in texts of many languages, and in hostile ones.

use super::*;

/// Enough for any text on any machine.
const LONG: Duration = Duration::from_secs(600);

fn all(request: &HighlightText) -> Highlighted {
    let found = find(request, LONG).unwrap();
    assert!(found.is_whole);
    found.places
}

fn request(text: &str, language: &str) -> HighlightText {
    HighlightText {
        text: text.to_owned(),
        language: Some(language.to_owned()),
        ..HighlightText::default()
    }
}

/// Of each class the words at its places.
fn words(text: &str, found: &Highlighted, class: PlaceClass) -> Vec<String> {
    let text: Vec<u16> = text.encode_utf16().collect();
    let places = found.places.get(&class).map(Vec::as_slice).unwrap_or_default();
    let (pairs, rest) = places.as_chunks::<2>();
    assert!(rest.is_empty());
    let word = |[start, length]: &[u32; 2]| {
        let (start, length) = (*start as usize, *length as usize);
        String::from_utf16(&text[start..start + length]).unwrap()
    };
    pairs.iter().map(word).collect()
}

fn of(text: &str, language: &str, class: PlaceClass) -> Vec<String> {
    words(text, &all(&request(text, language)), class)
}

/// A language as it stands behind a fence, a text in it, and of some classes a word that has to be among its places.
type Example = (&'static str, &'static str, &'static [(PlaceClass, &'static str)]);

const CORPUS: &[Example] = &[
    (
        "rust",
        "// why\npub fn add(a: u32) -> String { return \"é\".into(); }\n",
        &[
            (PlaceClass::Comment, "// why"),
            (PlaceClass::Function, "add"),
            (PlaceClass::Keyword, "return"),
            (PlaceClass::String, "\"é\""),
        ],
    ),
    (
        "python",
        "# why\ndef add(a):\n    return 12\n",
        &[
            (PlaceClass::Comment, "# why"),
            (PlaceClass::Function, "add"),
            (PlaceClass::Number, "12"),
        ],
    ),
    (
        "javascript",
        "const a = 'x'; // why\nif (a) { await f(1); }\n",
        &[
            (PlaceClass::Keyword, "if"),
            (PlaceClass::String, "'x'"),
            (PlaceClass::Comment, "// why"),
        ],
    ),
    (
        "typescript",
        "interface A { b: string }\nexport function f(): A { return 'x'; }\n",
        &[(PlaceClass::Keyword, "return"), (PlaceClass::String, "'x'")],
    ),
    (
        "tsx",
        "export const A = () => <b title=\"x\">y</b>;\n",
        &[(PlaceClass::String, "\"x\"")],
    ),
    (
        "go",
        "package main\nfunc main() { return }\n",
        &[(PlaceClass::Keyword, "return")],
    ),
    (
        "java",
        "class A { int b() { return 12; } }\n",
        &[(PlaceClass::Keyword, "return"), (PlaceClass::Number, "12")],
    ),
    (
        "c",
        "#include <a.h>\nint main(void) { return 12; }\n",
        &[(PlaceClass::Keyword, "return"), (PlaceClass::Function, "main")],
    ),
    (
        "c++",
        "class A { public: int b() { return 12; } };\n",
        &[(PlaceClass::Number, "12")],
    ),
    (
        "c#",
        "class A { string B() { return \"x\"; } }\n",
        &[(PlaceClass::String, "\"x\"")],
    ),
    (
        "ruby",
        "def add(a)\n  return \"x\"\nend\n",
        &[(PlaceClass::Function, "add")],
    ),
    (
        "php",
        "<?php\nfunction add($a) { return 'x'; }\n",
        &[(PlaceClass::Keyword, "return")],
    ),
    (
        "swift",
        "func add(a: Int) -> Int { return 12 }\n",
        &[(PlaceClass::Number, "12")],
    ),
    (
        "kotlin",
        "fun add(a: Int): Int { return 12 }\n",
        &[(PlaceClass::Number, "12")],
    ),
    (
        "bash",
        "# why\nif true; then echo \"x\"; fi\n",
        &[(PlaceClass::Comment, "# why")],
    ),
    (
        "sql",
        "SELECT a FROM b WHERE c = 'x' -- why\n",
        &[(PlaceClass::Keyword, "SELECT")],
    ),
    (
        "json",
        "{\"key\": \"value\", \"n\": 12}\n",
        &[(PlaceClass::String, "\"value\""), (PlaceClass::Number, "12")],
    ),
    (
        "yaml",
        "# why\nkey: 'x'\n",
        &[(PlaceClass::Comment, "# why"), (PlaceClass::String, "'x'")],
    ),
    (
        "toml",
        "# why\nkey = \"x\"\n",
        &[(PlaceClass::Comment, "# why"), (PlaceClass::String, "\"x\"")],
    ),
    (
        "html",
        "<b class=\"x\">y</b><!-- why -->\n",
        &[(PlaceClass::Keyword, "b"), (PlaceClass::Function, "class")],
    ),
    (
        "css",
        "/* why */\na { color: red; width: 12px }\n",
        &[(PlaceClass::Comment, "/* why */")],
    ),
    (
        "dockerfile",
        "FROM debian\nRUN echo x\n",
        &[(PlaceClass::Keyword, "FROM")],
    ),
    (
        "lua",
        "local a = 'x' -- why\n",
        &[(PlaceClass::Comment, "-- why")],
    ),
    (
        "haskell",
        "-- why\nmain = print 12\n",
        &[(PlaceClass::Comment, "-- why")],
    ),
    (
        "elixir",
        "# why\ndef add(a), do: 12\n",
        &[(PlaceClass::Comment, "# why")],
    ),
    (
        "scala",
        "def add(a: Int): Int = 12 // why\n",
        &[(PlaceClass::Comment, "// why")],
    ),
    (
        "diff",
        "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n",
        &[(PlaceClass::Deleted, "-one"), (PlaceClass::Inserted, "+two")],
    ),
    (
        "makefile",
        "# why\nall:\n\techo x\n",
        &[(PlaceClass::Comment, "# why")],
    ),
];

#[test]
fn the_words_of_each_language_are_told_apart() {
    assert!(CORPUS.len() >= 20);
    for (language, text, expected) in CORPUS {
        let found = all(&request(text, language));
        for (class, word) in *expected {
            let words = words(text, &found, *class);
            assert!(
                words.iter().any(|known| known == word),
                "{language}: {word:?} is no {class:?}: {found:?}"
            );
        }
    }
}

#[test]
fn places_are_in_order_lie_in_the_text_and_touch_no_other() {
    for (language, text, _) in CORPUS {
        // What came in the middle of anything, and between characters of more than one unit.
        for end in text.char_indices().map(|(end, _)| end) {
            let part = [&text[..end], "é😀"].concat();
            let found = all(&request(&part, language));
            let mut places_of_all: Vec<(u32, u32)> = Vec::new();
            for places in found.places.values() {
                let (pairs, rest) = places.as_chunks::<2>();
                assert!(rest.is_empty() && pairs.is_sorted());
                places_of_all.extend(pairs.iter().map(|[start, length]| (*start, start + length)));
            }
            places_of_all.sort_unstable();
            assert!(
                places_of_all.iter().all(|(start, end)| start < end),
                "{language}: {found:?}"
            );
            assert!(
                places_of_all.windows(2).all(|pair| pair[0].1 <= pair[1].0),
                "{language}: {part:?}: {found:?}"
            );
            assert!(
                places_of_all
                    .last()
                    .is_none_or(|(_, end)| *end as usize <= units(&part))
            );
        }
    }
}

#[test]
fn a_language_has_many_names_and_one_that_is_not_known_has_no_words() {
    let text = "let a = \"x\";\n";
    for name in ["rust", "Rust", "rs", " RS "] {
        assert_eq!(of(text, name, PlaceClass::String), ["\"x\""], "{name}");
    }
    for name in ["sh", "shell", "console", "zsh", "bash"] {
        assert_eq!(of("# why\n", name, PlaceClass::Comment), ["# why"], "{name}");
    }
    for name in [
        "",
        "text",
        "plaintext",
        "klingon",
        "../../etc/passwd",
        "\0",
        "<script>",
    ] {
        assert_eq!(all(&request(text, name)), Highlighted::default(), "{name:?}");
    }
}

#[test]
fn lines_that_are_too_long_and_time_that_is_up_leave_the_rest_plain() {
    let long = format!("let a = \"{}\";\nlet b = 12;\n", "x".repeat(5_000));
    let found = all(&request(&long, "rust"));
    assert_eq!(words(&long, &found, PlaceClass::Number), ["12"]);
    assert!(!found.places.contains_key(&PlaceClass::String));
    let syntax = language::syntax("rust").unwrap();
    let found = tokens::places("let a = 12;\n", syntax, Duration::ZERO);
    assert_eq!((found.places, found.is_whole), (Highlighted::default(), false));
}

#[test]
fn a_pattern_marks_its_matches_in_each_line_by_itself() {
    let of = |text: &str, pattern: &str, case_sensitive| {
        let found = matches::places(text, pattern, case_sensitive)?;
        Ok::<_, String>(words(text, &found, PlaceClass::Match))
    };
    assert_eq!(
        of("é next_seq\r\nNEXT next\n", "next(_seq)?", true).unwrap(),
        ["next_seq", "next"]
    );
    assert_eq!(of("é next\nNEXT", "next", false).unwrap(), ["next", "NEXT"]);
    assert_eq!(of("ab\nab\n", "^a", true).unwrap(), ["a", "a"]);
    assert!(
        of("a\nb\n", "x*", true).unwrap().is_empty(),
        "what is empty is no place"
    );
    assert!(of("a", "(", true).is_err());
    // An engine that tries all ways would never end.
    let hostile = format!("{}!\n", "a".repeat(20_000));
    assert!(of(&hostile, "(a+)+$", true).unwrap().is_empty());
}

#[tokio::test]
async fn the_same_text_is_read_once() {
    let text = "fn kept_in_memory() {}\n";
    let first = places(request(text, "rust")).await.unwrap();
    let again = places(request(text, "rust")).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let other = places(request(text, "python")).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
}
