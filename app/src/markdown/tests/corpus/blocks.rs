//! Blocks: each section of CommonMark about them, in sentences of our own.

pub(super) const TEXTS: &[&str] = &[
    // Tabs.
    "The log says:\n\n\tline\tof code\n \tanother\n\n- a point\n\n\tits second paragraph\n\n\t\tits code\n",
    "7.\tseventh by tab\n\n\tgoes on\n>\t\tquoted code\n\n##\tTitle by tab\n-\t-\t-\n",
    // Blocks are found before inlines.
    "- the `span begins\n- ends` elsewhere\n\n> **strong here\n\nand not here**\n\n1. *stress\n2. ends*\n",
    "| `left | right` |\n|---|---|\n| **up | down** |\n",
    // Thematic breaks.
    "Above\n\n* * *\n\n   ---\n\n______\n\n-  -\t-\n\nBelow\n",
    "    ***\n\n--\n\n*-*-*\n\n***!\n\n___ and words\n\n- - -x\n",
    "* point\n***\n* other\n\nA title, as it stands above a rule\n---\nA text, as it stands above stars\n***\n- + -\n- * * *\n",
    // ATX headings.
    "# Plan\n## Steps\n### Step *one*\n#### Detail `x`\n##### Finer\n###### Finest\n####### Too fine\n",
    "#12 is a ticket\n\n\\# is a mark\n\n#\tTab\n  ##   Wide   ##   \n    # deep is code\n",
    "# ends ######\n## ends # not\n### ends#\n#### ends \\#\n##### ends ##\\#\n# \n##\n### ###\n",
    "text\n# cut in\ntext\n***\n## between rules\n***\n> # quoted\n- # listed\n",
    // Setext headings.
    "Release *notes*\n===============\nFirst\n\nKnown\nissues of `two` lines\n---\nSecond\n",
    "   Three blanks\n   ---   \n\n    Four blanks are code\n    ===\n\nA word\n= = =\n\nA word\n    ====\n",
    "A `tick\n-------\nends` here\n\nEnds with \\\n===\n\n> Quoted\n===\n\n- Listed\n---\n- Listed\n  ===\n",
    "===\n\n---\n===\n\n    code\n----\n\n\\> escaped\n------\n\nOne\n\nTwo\n---\n---\nThree\n",
    // Indented code.
    "Run:\n\n    make all\n      make more\n\n    make end  \n  \n\n\n    still the same\nover\n",
    "Words\n    that go on\n\n    <tag> and *stars*\n\n    - no point\n# Title\n    code at once\nTitle\n---\n    code at once\n",
    "3.  item\n\n        code in it\n\n        \n        after a blank\n\n    text in it\n\n            code with blanks before\n",
    // Fenced code.
    "```\na < b && c > d\n```\n~~~\n```\n~~~\n`````\n```\n````\n`````\n",
    "~~~~~ sql title=\"x\" {1,3}\nselect *\n~~~~\n~~~~~~\n\n```a`b\nno fence\n```\n",
    " ```\n  one less\n two\nthree\n ```\n   ```\n      x\n    y\n   ```\n    ```\n    code, not a fence\n",
    "before\n~~~\nbetween\n~~~\nafter\n\n```\n    ```\n ``` \n\nopen at the end\n",
    "> ~~~\n> quoted\nnot in the quote\n\n- ```\n  listed\n\n  ```\n- ~~~\n  listed\nnot in the list\n",
    "```\n```\n```\n\n   \n\n```\n~~~ ~~~\n~~~\n",
    // HTML blocks, of all seven kinds.
    "<script async>\nlet a = \"*b*\";\n\nlet c;\n</script> *same line*\n*next line*\n\n<pre>\n\nkept\n</pre>\n",
    "<!-- a remark\n\n  over *lines* -->\n*after*\n\n<!-- short --> *same*\n",
    "<?target a=\"b\"\n\n>\n?>\nafter\n\n<!ELEMENT note>\nafter\n\n<![CDATA[\n*raw*\n\n]]>\nafter\n",
    "<section>\n*raw* inside\n\n*marked* inside\n</section>\n\n<TD\n  class=\"x\n\ny\">\n</td> *raw*\n",
    "<my-element kind=\"a\">\n**raw**\n\n</my-element>\n**raw**\n\n<b>*marked*</b>\n\n<b>\n*raw*\n\nword\n<b>\n*marked, as a paragraph goes on*\n",
    "word\n<hr>\nraw, as it cuts in\n\n   <li>raw\n\n    <li>code\n\n> <ul>\n> raw\n\nnot raw\n\n- <p>\n  raw\n- next\n",
    "<textarea>\n*raw*\n\n*raw*\n\n<style media=print>\n\np { }\n",
    // Link reference definitions.
    "[guide]: https://example.org/guide \"The guide\"\n\nSee [guide] and [the *text*][guide].\n\n[GUIDE]: /second\n",
    "   [long\n name]:\n   </with blanks>\n   'title\n   over lines'\n\nSee [Long  Name].\n",
    "[a]: /u \"title\" and more\n\n[b]: /u \"no end\n\n[c]:\n\n[d]: <>\n\n[e]: <x>y\n\n[a] [b] [c] [d] [e]\n",
    "[esc\\]aped]: /a\\*b \"c\\\"d\" \n\n[esc\\]aped] [ẞ] [ss]\n\n[SS]: /sharp\n",
    "word\n[not]: /defined\n\n# [head]\n[head]: /h\n> quote of [head]\n\n    [code]: /c\n\n[not] [code]\n",
    "[one]: /1\n[two]: /2\n  (second)\n[three]: /3\n===\n[one] [two] [three]\n\n[four]: /4\ntext\n---\n[four]\n",
    "[later] is used\n\n> [later]: /in-a-quote\n\n- [other]\n\n  [other]: /in-a-list\n\n[other]\n",
    // Paragraphs and blank lines.
    "One\n\nTwo\nlines\n\n\n\n  Three\n          deep\n   lines   \n\n   Four\n  \n\t\nFive  \n",
    // Block quotes.
    "> # Said\n> by *one*\n>and by the other\n   > with blanks\n    > code\n",
    "> a paragraph\nthat is lazy\n> and more\nlazy\n\n> - a list\nlazy in it\n- not in it\n",
    ">\n> \n>\n> words\n>\n\n> one\n\n> two\n>\n> three\nword\n> four\n***\n> five\n",
    "> > > three deep\nlazy\n>> two deep\n> one deep\n\n>     code\nnot lazy\n\n>    words\n\n> ```\nnot in it\n",
    "> title\n---\n\n> | a |\n> |---|\n| b |\n\n> <div>\nnot raw\n\n> 1. item\n>\n> 2. item\n",
    // List items.
    "12. words\n    and more\n\n        code\n\n    > quote\n\n    - point\n\nnot in it\n",
    "-   wide\n\n    in it\n\n  not in it\n\n -  one blank\n\n    in it\n\n   out\n",
    "-     code at once\n\n  words\n\n      code\n\n+\n  after an empty marker\n+\n\n  too late\n\n*   \n    code?\n",
    "1234567890. too long\n\n-7. no\n\n007. bond\n\n0) zero\n\n-no blank\n\n9.no blank\n",
    "- a\n-\n- c\n\n1.\n2. b\n\nword\n*\nword\n1)\n",
    "> 1. > deep\nlazy\n> 2. > next\n>    > same\n\n- - - deep\n- 1. + mixed\n     * more\n",
    "- # title\n- title\n  ===\n- ***\n- > quote\n- ```\n  code\n  ```\n- <div>\n  raw\n  </div>\n-     code\n",
    // Lists.
    "- a\n- b\n* c\n* d\n+ e\n\n1. f\n2. g\n2) h\n7) i\n\nIt was in\n1999. And in\n1. the list begins\n",
    "- tight\n- list\n\nbetween\n\n- loose\n\n- list\n- here\n\n\n- still\n\n<!-- ends it -->\n\n- other\n",
    "- a\n  - b\n    - c\n\n      loose in c\n    - d\n  - e\n\n- f\n",
    "- a\n - b\n  - c\n   - d\n    - lazy words\n     - more of them\n\n1. a\n\n  2. b\n\n    3. code?\n",
    "* a\n\n  b\n\n* c\n  ```\n  d\n\n\n  ```\n* e\n  > f\n  >\n* g\n\n  [h]: /i\n* j\n",
    "1. one\n1. two\n1. three\n\n   - inner\n\n     with two\n\n   - end\n\n4. four\n",
];
