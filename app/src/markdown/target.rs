//! Which targets a link may have.

/// A target that is safe to put into `href`, not yet escaped for HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: String,
    /// Whether it leads to another site, so that it opens in a new tab.
    pub(super) external: bool,
}

/// Lets through http and https (with a plain host: no user, no IPv6 address), mailto and relative targets; anything else, and whatever a browser could
/// read as something else, is `None`.
pub(super) fn target(url: &str) -> Option<Target> {
    // A browser drops control characters in front and at the end, and tabs and line ends anywhere.
    let url = url.trim_matches(' ');
    if url
        .chars()
        .any(|character| character.is_control() || is_invisible(character))
    {
        return None;
    }
    let external = match scheme(url) {
        Scheme::None => {
            let mut start = url.chars();
            // Two slashes (a browser takes a backslash for one) would name another host.
            if matches!((start.next(), start.next()), (Some('/' | '\\'), Some('/' | '\\'))) {
                return None;
            }
            false
        }
        Scheme::Named(name, rest)
            if name.eq_ignore_ascii_case("http") || name.eq_ignore_ascii_case("https") =>
        {
            if !is_authority(rest.strip_prefix("//")?) {
                return None;
            }
            true
        }
        Scheme::Named(name, _) if name.eq_ignore_ascii_case("mailto") => false,
        Scheme::Named(..) => return None,
    };
    let mut encoded = String::with_capacity(url.len());
    for character in url.chars() {
        match character {
            ' ' => encoded.push_str("%20"),
            '\\' => encoded.push_str("%5C"),
            '"' => encoded.push_str("%22"),
            '<' => encoded.push_str("%3C"),
            '>' => encoded.push_str("%3E"),
            '`' => encoded.push_str("%60"),
            '\u{a0}' => encoded.push_str("%C2%A0"),
            other => encoded.push(other),
        }
    }
    Some(Target {
        url: encoded,
        external,
    })
}

/// Whether an address, after its two slashes, starts with a host and perhaps a port that every browser reads alike.
fn is_authority(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let has_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let labels = || host.split('.');
    let is_plain = labels().all(|label| {
        label
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '-' | '_'))
            && !label.is_empty()
    });
    let last = labels().next_back().unwrap_or_default();
    if last.starts_with(|first: char| first.is_ascii_digit()) {
        // A name that ends with a number is taken for an IPv4 address, which has several spellings; this is the usual one.
        return has_port
            && labels().count() == 4
            && labels().all(|label| {
                label
                    .parse::<u8>()
                    .is_ok_and(|number| number.to_string() == label)
            });
    }
    has_port && is_plain
}

enum Scheme<'a> {
    None,
    Named(&'a str, &'a str),
}

fn scheme(url: &str) -> Scheme<'_> {
    match url.find([':', '/', '?', '#', '\\']) {
        Some(at) if url.as_bytes().get(at) == Some(&b':') => {
            let (name, rest) = url.split_at(at);
            Scheme::Named(name, rest.get(1..).unwrap_or_default())
        }
        _ => Scheme::None,
    }
}

/// Characters without a shape, and those that turn the direction of what follows: no address needs them.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn only_web_mail_and_relative_targets_pass() {
        for good in [
            "https://a.example/x?y#z",
            "http://localhost:3000",
            "http://127.0.0.1:3000/",
            "HTTP://a.example",
            "mailto:a@b.example",
            "#part",
            "./x",
            "../x",
            "/x",
            "x/y:z",
            "?q=1",
            "",
            "java&#10;script:x",
        ] {
            assert!(target(good).is_some(), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            " javascript:alert(1)",
            "java\tscript:alert(1)",
            "java\nscript:x",
            "\u{1}javascript:x",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "\\/evil.example",
            " //evil.example",
            "http:evil.example",
            "https:///evil",
            "https://user@evil.example",
            "https://a\"b",
            "https://0x7f.1",
            "https://1.2.3.400",
            "https://a:99999",
            "https://:80",
            "blob:x",
            "a b:c",
            "java\u{200b}script:x",
            ":x",
        ] {
            assert_eq!(target(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_could_end_an_attribute_is_encoded() {
        let url = target("/a\"b<c>`d e\\f").map(|target| target.url);
        assert_eq!(url.as_deref(), Some("/a%22b%3Cc%3E%60d%20e%5Cf"));
    }
}
