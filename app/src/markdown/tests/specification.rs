//! The examples of the specifications, where the parser's package is on this machine: it carries them as tests.

use std::path::PathBuf;

use super::rules::{grow, sizes};

/// The folder of the parser's own tests.
fn folder() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    registries
        .filter_map(|registry| std::fs::read_dir(registry.ok()?.path()).ok())
        .flatten()
        .filter_map(|package| Some(package.ok()?.path()))
        .filter(|package| {
            let name = package.file_name().unwrap_or_default().to_string_lossy();
            name.strip_prefix("pulldown-cmark-")
                .is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        })
        .map(|package| package.join("tests/suite"))
        .find(|suite| suite.is_dir())
}

/// The sources in a file of tests: each stands in a raw string.
fn sources(file: &str) -> Vec<&str> {
    let parts = file.split("let original = r##\"").skip(1);
    parts.filter_map(|part| part.split("\"##;").next()).collect()
}

/// The rules hold for the examples of a file; gives how many there are.
fn check(name: &str) -> Option<usize> {
    let Some(folder) = folder() else {
        eprintln!("skipped: the parser's package is not in cargo's registry here");
        return None;
    };
    let file = std::fs::read_to_string(folder.join(name)).expect("the package has its tests");
    let sources = sources(&file);
    for (place, source) in sources.iter().enumerate() {
        grow(source, [1]);
        grow(source, sizes(place as u64));
    }
    Some(sources.len())
}

#[test]
fn the_rules_hold_for_the_examples_of_commonmark() {
    assert!(check("spec.rs").is_none_or(|count| count > 600));
}

#[test]
fn the_rules_hold_for_the_examples_of_tables_tasks_and_strikethrough() {
    for name in [
        "gfm_table.rs",
        "gfm_tasklist.rs",
        "gfm_strikethrough.rs",
        "table.rs",
        "strikethrough.rs",
    ] {
        assert!(check(name).is_none_or(|count| count > 0), "{name}");
    }
}

#[test]
fn the_rules_hold_for_the_examples_of_footnotes() {
    assert!(check("footnotes.rs").is_none_or(|count| count > 10));
}

#[test]
fn the_rules_hold_for_what_once_went_wrong_in_the_parser() {
    assert!(check("regression.rs").is_none_or(|count| count > 100));
}
