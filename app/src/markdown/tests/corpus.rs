//! Texts that a model could write, and awkward ones.

mod blocks;
mod extensions;
mod inlines;
mod languages;
mod scripts;

/// All of them. Each is tested at every prefix.
pub(super) fn all() -> impl Iterator<Item = String> {
    let fixed = [
        TEXTS,
        blocks::TEXTS,
        inlines::TEXTS,
        extensions::TEXTS,
        scripts::TEXTS,
    ];
    let fixed = fixed.into_iter().flatten().map(|text| (*text).to_owned());
    fixed.chain(languages::texts())
}

/// Those that are tested together with each other, too.
pub(super) const TEXTS: &[&str] = &[
    "",
    "\n\n",
    "One line.",
    "One line.\n\nAnother one,\nof two lines.\n",
    "# A heading\n\nText **bold** and *stressed* and `code` and ~~gone~~.\n\n## Second ##\n\nEnd",
    "Setext\n======\n\ntext\n\nSecond\n------\nmore\n\n---\n\n***\nend\n",
    "Two lines\nof heading\n===\nthen text",
    "- one\n- two\n  - nested\n    - deeper\n- three\n\nafter\n",
    "- loose\n\n- list\n\n  with a second paragraph\n\n      and code\n\ntext",
    "1. one\n2. two\n   continued\n10. ten\n\n3) other list\n",
    "para\n2. not a list\n1. a list\n",
    "* a\n* b\n+ c\n- d\n- - - \n- e\n",
    "- [ ] open\n- [x] done **now**\n- [text](https://a.example)\n",
    "> quote\ncontinued lazily\n> > nested\n\n> other\n> - list in it\n> ```\n> code\n> ```\n",
    "```rust\nfn main() {\n    println!(\"*not* `code`\");\n}\n```\nafter\n",
    "Text\n```\n**raw**\n\n- no list\n``\n````\nend",
    "~~~~ python extra\n```\n~~~\n~~~~\n\nend\n",
    "- item\n  ```c\n  int a = b & c;\n\n  # no heading\n  ```\n- next\n",
    "    indented code\n    more\n\n    and more\n\nend",
    "unclosed\n\n```js\nlet a = 1;\nlet b",
    "```not a ``` fence\n\n``double ` tick`` and `open\nacross` lines\n",
    "| a | b |\n|---|:-:|\n| 1 | `x` |\n| **2** | [l](u) |\n\nafter",
    "before\n\na | b\n--|--\n1 | 2\nplain row\n\n| no | table |\nas the second line is text\n",
    "text\n| a | b |\n|---|---|\n| c | d |\n",
    "| only | head |\n|:--|--:|",
    "a [link](https://a.example/x_(y) \"title\") and <https://b.example> and <me@b.example>.\n",
    "[start](./x) of a paragraph, ![image *alt*](https://a.example/i.png), [![nested](i.png)](https://a.example)\n",
    "see [ref], [text][ref] and [Ref][]; not [other].\n\nmore\n\n[ref]: https://a.example 'the title'\n\nend [ref]\n",
    "[ref]: https://first.example\n\nuse [ref]\n\n[ref]: https://second.example\n\nuse [ref] again\n",
    "a[^1] and b[^long-name], not [^none].\n\ntext\n\n[^1]: The first.\n\n    With a second paragraph.\n\n[^long-name]: The *second*, after [^1].\n\n[^1]: Doubled.\n\nend[^1]\n",
    "<div class=\"x\">\n*raw*\n</div>\n\nin <b>line</b> and <br> and a < b > c <!-- note --> \n\n<!-- a\n\ncomment -->\ntext\n",
    "<script>\nalert('x')\n\n</script>\n\n<custom-tag>\ntext\n",
    "**粗体**文字 and **「引用」**后 *強調*です。これは**太字。**です\n",
    "___ _a_ __b__ ***c*** **d*e*f** a*b*c snake_case_name __init__ 2 * 3 * 4 *\n",
    "a\\*b\\* \\[x] \\`y\\` \\\\ *z\\* w*\n",
    "&amp; &copy; &#65; &unknown; AT&T a&b\n",
    "hard  \nbreak\\\nhere\n",
    "**open never closed\n\nnext `open\n\nnext [open\n",
    "**bold\nover lines** and *one\n- list ends it\n",
    "line one\r\nline two\r\n\r\n- a\r\n- b\r\n\r\n```\r\ncode\r\n```\r\n",
    "Interval [0, 1) and f(x)[i](not a link, as this is a remark) and [a]: b\n",
    "- a\n\n\n- b\n\n\ntext\n1986 was a year.\n1986. is an item\n",
    "#no heading\n####### seven\n# \n#\n## x #y\n",
    "Term\n: not a definition list\n\n$math$ and $$more$$\n",
    "+ a\n\n  > b\n  > c\n\n  | x | y |\n  |---|---|\n  | 1 | 2 |\n\nend\n",
    "[r]: /u\n\t >   \n![a\n\n[q]: /v\n[s]: /w\n    no code [q]\n",
    "[^1]:[^1]: n\n\n```\r\n```\t\n    \n",
    "a\n# [![  [^1]](u)\r\n[^1]: n",
    "\ttab code\n\n-\ttab item\n\n  para\n",
    "😀 **é́** `ü` \u{a0}\u{200b}end\u{0}\u{1b}[31m\n",
];
