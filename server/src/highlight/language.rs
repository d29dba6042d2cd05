//! Names of languages, as people and models write them behind a fence.

use std::sync::LazyLock;

use syntect::parsing::{SyntaxReference, SyntaxSet};

pub(super) static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// The grammar for a language's name or the ending of its files' names.
pub(super) fn syntax(name: &str) -> Option<&'static SyntaxReference> {
    let name = name.trim().to_ascii_lowercase();
    let name = match name.as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "output" | "log" => return None,
        "shell" | "console" | "terminal" | "shell-session" | "zsh" | "ksh" => "sh",
        "golang" => "go",
        "c++" | "cxx" | "hpp" => "cpp",
        "c#" | "csharp" => "cs",
        "f#" | "fsharp" => "fs",
        "objc" | "objective-c" | "objectivec" => "m",
        "docker" | "containerfile" => "dockerfile",
        "make" | "mk" | "gnumakefile" => "makefile",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "jsx" | "mjs" | "cjs" | "node" | "javascriptreact" => "js",
        "mts" | "cts" => "ts",
        "typescriptreact" => "tsx",
        "python3" | "py3" | "pyi" | "pycon" => "py",
        "rustlang" => "rs",
        "kts" => "kt",
        "hcl" | "terraform" => "tf",
        "patch" => "diff",
        "psql" | "postgres" | "postgresql" | "mysql" | "sqlite" => "sql",
        "elixir" | "iex" => "ex",
        "protobuf" => "proto",
        other => other,
    };
    SYNTAXES
        .find_syntax_by_token(name)
        .filter(|syntax| syntax.scope != SYNTAXES.find_syntax_plain_text().scope)
}
