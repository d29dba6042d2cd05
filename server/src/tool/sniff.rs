//! Telling text from binary content by the start of a file, one rule for all tools.

use std::path::Path;

/// How much of a file decides.
pub(crate) const SNIFFED_BYTES: usize = 8 * 1024;

/// Says what a file is when its first [`SNIFFED_BYTES`] are not text.
///
/// A NUL byte there makes it binary, and so does more than 30 % of bytes that are not UTF-8 (text in a one-byte
/// encoding stays below that). A NUL later on in a file that began as text is kept as part of the text.
pub(crate) fn binary_kind(head: &[u8], path: &Path) -> Option<String> {
    let head = head.get(..SNIFFED_BYTES).unwrap_or(head);
    let binary = memchr::memchr(0, head).is_some() || invalid_bytes(head) * 10 > head.len() * 3;
    binary.then(|| kind_in_words(head, path))
}

/// How many bytes are not part of a UTF-8 character. One that the end of the head cuts is not counted.
fn invalid_bytes(head: &[u8]) -> usize {
    let mut invalid = 0;
    let mut rest = head;
    while let Err(error) = std::str::from_utf8(rest) {
        let Some(length) = error.error_len() else { break };
        invalid += length;
        rest = rest.get(error.valid_up_to() + length..).unwrap_or_default();
    }
    invalid
}

/// The kind by its first bytes, else by its name.
fn kind_in_words(head: &[u8], path: &Path) -> String {
    const SIGNATURES: [(&[u8], &str); 17] = [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or a document in one"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "Zstandard data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"BZh", "bzip2 data"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
        (b"\x7fELF", "an ELF program or library"),
        (b"MZ", "a Windows program or library"),
        (b"\0asm", "a WebAssembly module"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"OggS", "Ogg media"),
        (b"\xff\xfe", "text in UTF-16"),
        (b"\xfe\xff", "text in UTF-16"),
    ];
    if let Some((_, words)) = SIGNATURES
        .iter()
        .find(|(signature, _)| head.starts_with(signature))
    {
        return (*words).to_owned();
    }
    match mime_guess::from_path(path).first_raw() {
        Some(media_type) => format!("{media_type} by its name"),
        None => "of a kind that is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(head: &[u8], name: &str) -> Option<String> {
        binary_kind(head, Path::new(name))
    }

    #[test]
    fn text_is_text_also_with_a_few_bytes_that_are_not_utf8() {
        assert_eq!(kind(b"", "a"), None);
        assert_eq!(kind("größer 🦀\r\n".as_bytes(), "a"), None);
        assert_eq!(kind(b"Gr\xfc\xdfe aus M\xfcnchen, im Winter", "latin1.txt"), None);
    }

    #[test]
    fn a_character_cut_by_the_end_of_the_head_is_not_held_against_the_text() {
        assert_eq!(kind(&"é".as_bytes()[..1], "a"), None);
        assert_eq!(kind(&"🦀".as_bytes()[..3], "a"), None);
    }

    #[test]
    fn a_nul_or_mostly_invalid_bytes_make_it_binary() {
        assert!(kind(b"text\0text", "a").is_some());
        assert!(kind(&[0xc3, 0x28].repeat(4000), "a").is_some());
        let mut late = vec![b'a'; SNIFFED_BYTES];
        late.push(0);
        assert_eq!(kind(&late, "a"), None);
    }

    #[test]
    fn the_kind_is_guessed_by_content_then_by_name() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n\0\0", "a.txt").unwrap(), "a PNG image");
        assert_eq!(kind(b"\xff\xfea\0b\0", "a").unwrap(), "text in UTF-16");
        assert_eq!(kind(b"\0\0\0\0", "a.mp4").unwrap(), "video/mp4 by its name");
        assert_eq!(kind(b"\0\0\0\0", "a").unwrap(), "of a kind that is not known");
    }
}
