//! Fenced code in the languages that models write most.

/// The word after the fence, and a few lines.
pub(super) const SNIPPETS: &[(&str, &str)] = &[
    (
        "rust",
        "fn add<'a>(left: &'a u32, right: u32) -> u32 {\n    // *no* emphasis\n    left + right\n}",
    ),
    (
        "python",
        "def greet(name: str) -> None:\n    \"\"\"Says `hello`.\"\"\"\n    print(f\"hello {name!r}\")\n\n# done",
    ),
    (
        "javascript",
        "const sum = (a, b) => a + b;\nconsole.log(`${sum(1, 2)} <b>`);\n/* _no_ */",
    ),
    (
        "typescript",
        "interface Point<T> { x: T; y?: T }\ntype Keys = keyof Point<number> | \"z\";",
    ),
    (
        "tsx",
        "export const Row = ({ name }: Props) => <li key={name}>{name} &amp; co</li>;",
    ),
    (
        "html",
        "<!doctype html>\n<p class=\"a\">1 &lt; 2</p>\n<!-- note -->",
    ),
    (
        "css",
        "@media (width < 40em) {\n  .a > .b::after { content: \"*\"; }\n}",
    ),
    (
        "json",
        "{\n  \"list\": [1, 2.5e3, null],\n  \"text\": \"a \\\"b\\\"\"\n}",
    ),
    (
        "yaml",
        "---\nname: &anchor value\nlist:\n  - one\n  - *anchor\n# end",
    ),
    (
        "toml",
        "[table]\nkey = \"value\" # note\n[[array]]\ndates = [1979-05-27]",
    ),
    (
        "bash",
        "for file in *.md; do\n  echo \"$file: $(wc -l <\"$file\")\" | tee -a log\ndone",
    ),
    (
        "sql",
        "SELECT a.*, count(*) AS n\nFROM a JOIN b ON a.id = b.a_id\nWHERE n > 1 -- many\nGROUP BY 1;",
    ),
    (
        "c",
        "#include <stdio.h>\n\nint main(void) { char *p = \"a\\n\"; return *p & 1; }",
    ),
    (
        "cpp",
        "template <typename T> auto twice(T&& t) { return t << 1; }\n// ok",
    ),
    (
        "java",
        "@Override\npublic <T> List<T> all() {\n    return new ArrayList<>();\n}",
    ),
    (
        "go",
        "func main() {\n\tch := make(chan int, 1)\n\tch <- 1\n\tfmt.Println(<-ch)\n}",
    ),
    (
        "ruby",
        "def each(&block) = @items.each { |item| block.call(item) }\n=begin\n* note\n=end",
    ),
    ("php", "<?php\n$a = ['k' => \"v $x\"];\necho $a['k'] ?? 'none';"),
    (
        "haskell",
        "main :: IO ()\nmain = mapM_ print $ filter (>1) [x | x <- [1..3]]",
    ),
    (
        "diff",
        "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n-old *line*\n+new _line_",
    ),
    ("markdown", "# Title\n\n- **item** [link](/u)\n\n    code"),
    (
        "latex",
        "\\begin{equation}\n  a_1 & b^{2} \\\\\n\\end{equation} % note",
    ),
    (
        "dockerfile",
        "FROM scratch AS base\nRUN [\"a\", \"b\"] && \\\n    echo done\n# end",
    ),
    ("", "no language\n  at all"),
];

/// Each snippet in a fence: alone, in a list's item, in a quote, and with nothing that closes it.
pub(super) fn texts() -> impl Iterator<Item = String> {
    SNIPPETS.iter().flat_map(|(language, code)| {
        let fenced = format!("```{language}\n{code}\n```\n");
        let indented = fenced.replace('\n', "\n  ");
        let quoted = fenced.replace('\n', "\n> ");
        [
            format!("Before:\n\n{fenced}\nAfter.\n"),
            format!("- item:\n\n  {indented}\n- next\n"),
            format!("> {quoted}\n\nAfter.\n"),
            format!("~~~~ {language} title=\"a\"\n{code}"),
        ]
    })
}
