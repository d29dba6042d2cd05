//! What GitHub adds, and what models write that no specification has: tables, tasks, footnotes, mathematics.

pub(super) const TEXTS: &[&str] = &[
    // Tables.
    "| foo | bar |\n| --- | --- |\n| baz | bim |\n",
    "| abc | defghi |\n:-: | -----------:\nbar | baz\n",
    "| f\\|oo  |\n| ------ |\n| b `\\|` az |\n| b **\\|** im |\n",
    "| abc | def |\n| --- | --- |\n| bar | baz |\n> bar\n",
    "| abc | def |\n| --- | --- |\n| bar | baz |\nbar\n\nbar\n",
    "| abc | def |\n| --- |\n| bar |\n",
    "| abc | def |\n| --- | --- |\n| bar |\n| bar | baz | boo |\n",
    "| abc | def |\n| --- | --- |\n",
    "a | b | c\n:-- | :-: | --:\n1 | **2** | [3](/u)\n | | \n4\n\nafter\n",
    "text before\n| a | b |\n| - | - |\n| c | ~~d~~ |\n# heading\n",
    "- in a list\n\n  | a | b |\n  |---|---|\n  | c | d |\n- next\n\n> | a |\n> |---|\n> | b |\n",
    "| `a` | b\\\\ | c |\n|---|---|---|\n| *open | `open | [open |\n| [x](/y | z |\n",
    "|a|\n|-|\n|b|\n```\ncode\n```\n|c|\n|-|\n- item\n",
    // Task lists.
    "- [ ] foo\n- [x] bar\n- [X] baz\n- [] no\n- [y] no\n-[ ] no\n",
    "- [x] foo\n  - [ ] bar\n  - [x] **baz**\n- [ ] bim\n\n1. [ ] numbered\n2. [x] too\n",
    "- [ ]\n- [x]\n- [ ] \n- [ ]  two spaces\n- [ ][ref] and [ ](/u)\n",
    // Strikethrough.
    "~~Hi~~ Hello, ~there~ world!\n\nThis ~~has a\n\nnew paragraph~~.\n\nThis will ~~~not~~~ strike.\n",
    "~~**both**~~ and **~~both~~** and ~~open and a~~b~~c and \\~~no~~ and ~~ no ~~ and `~~code~~` end\n",
    // Bare addresses, which stay text.
    "www.example.org and https://example.org/a_b_c*d* and (https://example.org/) and a@b.example, visit www.a.example/x~~y~~\n",
    // Footnotes.
    "A note.[^1] Another.[^note] Twice.[^1]\n\n[^1]: The first,\nover two lines.\n[^note]: The second.\n\nAfter.\n",
    "Before[^a].\n\n[^a]: One.\n\n    Two with `code`.\n\n    - three\n    - four\n\n    ```\n    five\n    ```\n\nAfter[^b]\n\n[^b]: [link](/u) and *stress*\n",
    "[^early]: Comes first.\n\nThen its reference[^early] and one that has none[^never].\n\n- in a list[^early]\n\n> in a quote[^early]\n\n# in a heading[^early]\n",
    "[^x]\n\n[^x]:\n    below\n\n[^y z]: not with a blank\n\n[^]: none\n\n[^y z]\n",
    // Definitions far below.
    "Read [the report][r], [its annex][] and [the list].\n\n- see [r]\n- and ![a picture][p]\n\n> quoted [r]\n\n| a |\n|---|\n| [r] |\n\n## Of [r]\n\n\
     One.\n\nTwo.\n\nThree.\n\n```\n[r]: /not-in-code\n```\n\n[r]: https://example.org/report 'Report'\n[its annex]: /annex\n[the list]: <#list>\n[p]: /p.png\n\nEnd [r].\n",
    "[a][b], [a] and [b].\n\n1. [a][b]\n2. [b]\n\n[B]: /one\n\n[b]: /two\n\n[a]: /three\n\n[a][b]\n",
    // Mathematics is text.
    "Inline $a_1 * b_2$ and $x*y*z$ and \\(a_b_c\\) costs $5 or $6.\n\n$$\n\\int_0^1 x^2 \\, dx = \\frac{1}{3}\n$$\n\n\\[\n\\sum_{i=1}^n i\n\\]\n",
    "$$\\begin{aligned} a &= b \\\\ c &< d \\end{aligned}$$\n\n| $|x|$ | $\\alpha$ |\n|---|---|\n| $x^{2}$ | `$y$` |\n\n- $E = mc^2$\n",
    "```math\n\\frac{a}{b} | c\n```\n\nWhere $a \\ne b$ and $[0, 1)$, $f(x)[i]$ hold, $\\langle a | b \\rangle$.\n",
    // Setext titles, and lines that look like them.
    "Title of the answer\n===================\n\nSection\n-------\nText\n\n- item\n  text\n  ---\n  more\n\nNot a title\n\n---\n\nAlso | not\n---\n",
    // Nested lists and fences.
    "1. First\n   ```sh\n   # not a heading\n   - not an item\n   ```\n   1. inner\n      ~~~\n      deep\n      ~~~\n   2. inner\n\n2. Second\n\n   > - quoted\n   >   ```\n   >   code\n   >   ```\n\n   end\n3. Third\n",
    "- a\n  - b\n    1. c\n       - d\n         ```rust\n         let x = 1;\n\n         let y = 2;\n         ```\n       - e\n    2. f\n  - g\n- h\n",
    "````markdown\n# A file\n\n```rust\nfn main() {}\n```\n\n- [ ] task\n````\n\nand\n\n~~~~\n```\n~~~\n~~~~\n",
    "> > - a\n> >   > ```\n> >   > b\n> >   > ```\n> > - c\n> lazy\n\n* * a\n* + b\n  1) c\n",
    // Half of everything at the end.
    "An answer with [a link](https://example.org/a/long/path?with=query \"and a tit",
    "An answer with ![a picture](https://example.org/p.p",
    "An answer with [a reference][wi",
    "An answer with **strong and *both",
    "An answer with ~~what is go",
    "An answer with `code and",
    "An answer with <https://example.org/is/no",
    "An answer with <div class=\"a",
    "An answer with a footnote[^on",
    "An answer with &hel",
    "| a table | with\n|--",
    "| a table | of | two\n|---|---|---|\n| row | ends he",
    "- [ ",
    "Title\n==",
    "Title\n--",
    "```pyth",
    "```python\nprint(\"``",
    "1. one\n2",
    "> quote\n>",
    "- a\n  - b\n    -",
];
