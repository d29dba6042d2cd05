//! How sizes and names are written in results and errors.

use std::ffi::OsStr;

/// A size for people, such as `1 byte`, `812 bytes`, `1.5 KiB` or `200.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} {}", plural(bytes, "byte", "bytes"));
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// The word that fits the number.
pub(crate) fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// The beginning of a text that people are asked about; what is left out is marked.
pub(crate) fn beginning(text: &str) -> String {
    const LONGEST: usize = 600;
    let end = text.floor_char_boundary(LONGEST);
    match text.len() > end {
        true => format!("{}…", &text[..end]),
        false => text.to_owned(),
    }
}

/// A file name on one line: what is not UTF-8 becomes U+FFFD, control characters are escaped.
pub(crate) fn name(name: &OsStr) -> String {
    let lossy = name.to_string_lossy();
    if !lossy.contains(char::is_control) {
        return lossy.into_owned();
    }
    lossy
        .chars()
        .fold(String::with_capacity(lossy.len()), |mut shown, character| {
            if character.is_control() {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
            shown
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn sizes_are_written_in_the_largest_fitting_unit() {
        let written: Vec<_> = [0, 1, 1023, 1024, 1536, 200 << 20, u64::MAX]
            .into_iter()
            .map(size)
            .collect();
        assert_eq!(
            written,
            [
                "0 bytes",
                "1 byte",
                "1023 bytes",
                "1.0 KiB",
                "1.5 KiB",
                "200.0 MiB",
                "16384.0 PiB"
            ]
        );
    }

    #[test]
    fn a_name_stays_on_one_line() {
        assert_eq!(name(OsStr::new("grün 🦀.txt")), "grün 🦀.txt");
        assert_eq!(name(OsStr::from_bytes(b"a\xffb")), "a\u{fffd}b");
        assert_eq!(name(OsStr::new("a\nb\tc\u{1b}")), "a\\nb\\tc\\u{1b}");
    }
}
