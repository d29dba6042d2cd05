//! The style sheets' promises: every file is used, and text and field borders can be told from what they stand on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Colour = [f64; 4];

fn style(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../style").join(name)
}

/// The colour tokens: light and dark.
fn tokens() -> BTreeMap<String, (Colour, Colour)> {
    let text = std::fs::read_to_string(style("tokens.css")).expect("the tokens can be read");
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("--")?.split_once(':')?;
            let (light, dark) = value
                .trim()
                .strip_prefix("light-dark(")?
                .split_once(')')?
                .0
                .split_once(',')?;
            Some((name.to_owned(), (colour(light.trim())?, colour(dark.trim())?)))
        })
        .collect()
}

fn colour(text: &str) -> Option<Colour> {
    let digits: Vec<f64> = text
        .strip_prefix('#')?
        .chars()
        .map(|digit| digit.to_digit(16).map(f64::from))
        .collect::<Option<_>>()?;
    let channel = |index: usize| match digits.len() {
        3 | 4 => digits.get(index).map(|digit| digit * 17.0),
        _ => Some(digits.get(2 * index)? * 16.0 + digits.get(2 * index + 1)?),
    };
    Some([
        channel(0)?,
        channel(1)?,
        channel(2)?,
        channel(3).unwrap_or(255.0) / 255.0,
    ])
}

fn over(top: Colour, below: Colour) -> Colour {
    let mix = |index: usize| top[index] * top[3] + below[index] * (1.0 - top[3]);
    [mix(0), mix(1), mix(2), 1.0]
}

/// Relative luminance and contrast as in WCAG 2.2.
fn contrast(one: Colour, other: Colour) -> f64 {
    let luminance = |colour: Colour| {
        let linear = |value: f64| {
            let value = value / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// What is in use: a foreground, and what it stands on (`+` lays the second over the first).
const TEXT: &[(&[&str], &[&str])] = &[
    (
        &["fg", "fg-2", "fg-3"],
        &[
            "bg",
            "bg-side",
            "bg-inset",
            "bg-raised",
            "bg-select",
            "bg+bg-hover",
            "bg-side+bg-hover",
            "bg-raised+bg-hover",
        ],
    ),
    (&["fg", "fg-2", "fg-3"], &["warn-bg", "accent-bg"]),
    (
        &["fg"],
        &["err-bg", "ok-bg", "add-bg", "del-bg", "bg-raised+bg-press"],
    ),
    (
        &["accent"],
        &[
            "bg",
            "bg-side",
            "bg-inset",
            "bg-select",
            "bg+bg-hover",
            "bg-side+bg-hover",
        ],
    ),
    (
        &["ok", "warn", "err"],
        &["bg", "bg-side", "bg-select", "bg+bg-hover", "bg-side+bg-hover"],
    ),
    (&["ok"], &["ok-bg"]),
    (&["warn"], &["warn-bg"]),
    (&["err"], &["err-bg", "bg-raised"]),
    (&["on-inv"], &["inv"]),
    (
        &["syn-kw", "syn-str", "syn-num", "syn-fn", "syn-com", "ok", "err"],
        &["bg", "bg-inset"],
    ),
    (
        &[
            "ansi-red",
            "ansi-green",
            "ansi-yellow",
            "ansi-blue",
            "ansi-magenta",
            "ansi-cyan",
        ],
        &["bg"],
    ),
    (
        &["fg"],
        &[
            "mark",
            "line-strong",
            "ansi-on-red",
            "ansi-on-green",
            "ansi-on-yellow",
            "ansi-on-blue",
            "ansi-on-magenta",
            "ansi-on-cyan",
        ],
    ),
];

fn check(pairs: &[(&[&str], &[&str])], least: f64) {
    let tokens = tokens();
    let token = |name: &str| *tokens.get(name).unwrap_or_else(|| panic!("no token --{name}"));
    let ground = |name: &str| match name.split_once('+') {
        Some((below, top)) => {
            let (below, top) = (token(below), token(top));
            (over(top.0, below.0), over(top.1, below.1))
        }
        None => token(name),
    };
    for (foregrounds, grounds) in pairs {
        for foreground in *foregrounds {
            for on in *grounds {
                let (front, back) = (token(foreground), ground(on));
                let (light, dark) = (contrast(front.0, back.0), contrast(front.1, back.1));
                assert!(
                    light >= least && dark >= least,
                    "--{foreground} on --{on}: {light:.2} light, {dark:.2} dark"
                );
            }
        }
    }
}

#[test]
fn text_has_a_contrast_of_4_5_in_both_themes() {
    check(TEXT, 4.5);
}

#[test]
fn field_borders_have_a_contrast_of_3_in_both_themes() {
    check(&[(&["line-input"], &["bg", "bg-side"])], 3.0);
}

#[test]
fn the_main_sheet_names_the_layers_first_and_imports_every_file_once() {
    let main = std::fs::read_to_string(style("main.css")).expect("the main sheet can be read");
    let first = main
        .lines()
        .find(|line| !line.starts_with("/*"))
        .unwrap_or_default();
    assert_eq!(
        first,
        "@layer tokens, base, parts, content, chrome, pages, media;"
    );
    let mut imported: Vec<String> = main
        .lines()
        .filter_map(|line| Some(line.strip_prefix("@import \"")?.strip_suffix("\";")?.to_owned()))
        .collect();
    imported.push("main.css".to_owned());
    imported.sort();
    let mut files: Vec<String> = std::fs::read_dir(style(""))
        .expect("the folder can be read")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort();
    assert_eq!(imported, files);
}

#[test]
fn no_rule_makes_a_new_element_cost_its_whole_surroundings() {
    // With `*` on both sides of `+` a browser computes the styles of a whole subtree anew at each insertion.
    for entry in std::fs::read_dir(style("")).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a sheet can be read");
        assert!(!text.contains("* + *"), "{}", path.display());
    }
}
