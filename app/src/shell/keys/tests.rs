use std::collections::HashSet;

use super::*;

const REGIONS: &[Region] = &[
    Region::Page,
    Region::Sessions,
    Region::Session,
    Region::Content,
    Region::Tree,
    Region::TreeSearch,
    Region::Details,
    Region::Find,
    Region::Composer,
];

#[test]
fn a_key_means_one_thing_in_a_region() {
    let mut seen = HashSet::new();
    for binding in BINDINGS {
        for key in binding.keys {
            assert!(
                seen.insert((binding.region, *key)),
                "{:?} {key:?}",
                binding.region
            );
        }
    }
}

#[test]
fn what_the_sheet_says_of_a_key_is_what_it_does_there() {
    for binding in BINDINGS {
        for key in binding.keys {
            let (name, is_command) = match key {
                Key::Plain(name) => (*name, false),
                Key::WithControl(name) => (*name, true),
            };
            assert_eq!(command(binding.region, name, is_command), Some(binding.command));
            assert_eq!(command(binding.region, name, !is_command), None, "{name}");
        }
    }
}

#[test]
fn every_region_has_keys_and_stands_on_the_sheet_of_a_page() {
    let pages = [Page::Sessions.regions(), Page::Other.regions(), SESSION];
    for region in REGIONS {
        assert!(
            BINDINGS.iter().any(|binding| binding.region == *region),
            "{region:?}"
        );
        assert!(pages.iter().any(|regions| regions.contains(region)), "{region:?}");
    }
}

#[test]
fn in_a_field_and_in_the_tree_letters_are_no_commands() {
    for letter in ["j", "k", "c", "g", "s", "l", "o", "t"] {
        for region in [Region::Tree, Region::TreeSearch, Region::Composer] {
            assert_eq!(command(region, letter, false), None, "{region:?} {letter}");
        }
    }
    for key in ["?", "/", "Home", "End"] {
        assert_eq!(command(Region::Composer, key, false), None, "{key}");
        assert_eq!(command(Region::TreeSearch, key, false), None, "{key}");
    }
}

#[test]
fn a_region_keeps_the_keys_of_what_lies_around_it() {
    assert_eq!(command(Region::Content, "?", false), Some(Command::Sheet));
    assert_eq!(command(Region::Tree, "?", false), Some(Command::Sheet));
    assert_eq!(command(Region::Content, "c", false), Some(Command::Compose));
    assert_eq!(command(Region::Details, "j", false), Some(Command::NextRow));
    assert_eq!(
        command(Region::Tree, "End", false),
        Some(Command::Step(Step::Last))
    );
    assert_eq!(command(Region::Content, "End", false), Some(Command::Follow));
    assert_eq!(command(Region::Sessions, "s", false), None);
}
