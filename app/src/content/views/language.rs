//! The language of a file, by its name.

/// The ending of a path's file name, or the name where it has none (`Makefile`): what grammars are found by.
pub(super) fn language_of(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let ending = match name.rsplit_once('.') {
        Some(("", ending)) | Some((_, ending)) => ending,
        None => name,
    };
    ending.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::language_of;

    #[test]
    fn a_language_is_told_by_the_name_of_a_file() {
        for (path, language) in [
            ("src/lib.rs", "rs"),
            ("a.b\\c.test.ts", "ts"),
            ("deep/Makefile", "Makefile"),
            (".bashrc", "bashrc"),
            ("", ""),
        ] {
            assert_eq!(language_of(path), language, "{path}");
        }
    }
}
