//! Inlines: each section of CommonMark about them, in sentences of our own.

pub(super) const TEXTS: &[&str] = &[
    // Backslash escapes.
    "Marks \\* \\_ \\` \\# \\+ \\- \\. \\! \\[ \\] \\( \\) \\{ \\} \\< \\> \\& \\~ \\| \\\\ \\\" \\' \\^ \\$ end\n",
    "No marks \\a \\Z \\5 \\ \\é \\— and a break\\\nhere, `\\*` and <https://a.example/\\*> end\n",
    "\\- no item\n\n1\\. no item\n\n\\> no quote\n\n\\# no title\n\n\\``` no fence\n\n\\| no | table |\n|---|---|---|\n",
    "\\\\**strong**\\\\ \\**one star** *\\*both\\** [a\\](b)](/c\\)d \"e\\\"f\") \\![g](/h)\n\n``` a\\+b\n\\*\n```\n",
    // Entities.
    "&lt;b&gt; &quot;q&quot; &hellip;&mdash;&euro;&#8364;&#x20AC;&#X20ac; &Auml;pfel &notin; &nbsp;end\n",
    "&nosuch; &amp &; &#; &#x; &#xG; &#99999999; &#0; AT&T; a&b;c &#32;end\n",
    "&#42;no stress&#42; &#96;no code&#96;\n\n&#45; no item\n\n[l](/&auml;?a&amp;b \"&quot;t&quot;\") `&amp;`\n\n    &amp;\n",
    // Code spans.
    "`a` ``b ` c`` ```d `` e``` ` f ` `  g  ` ` ` `` ` `` end\n",
    "`over\nlines  \nof it` and `a \\` b` and `no end and ``neither` and ```that\n\nor this\n",
    "*a `b*` c* and [a `](b)` c](/d) and <b title=\"`\"> `c` and `<b title=\"`\">` and `**` **`**`** end\n",
    // Emphasis, by its rules.
    "*a b* a*b*c *a*b a *b*. (*a*) *(a)* \"*a*\" * a * *a * a* *\n",
    "_a b_ a_b_c _a_b a _b_. (_a_) _(a)_ \"_a_\" _ a _ _a _ a_ _ größe_ß_groß файл_имя_файла\n",
    "**a b** a**b**c **a**b a **b**. (**a**) **(a)** ** a ** **a ** a** **\n",
    "__a b__ a__b__c __a__b a __b__. (__a__) __(a)__ __ a __ __init__.py __a __ a__ __\n",
    "*a **b** c* **a *b* c** *a **b*** ***a** b* ***a* b** **a *b*** ***a b*** _a __b__ c_ __a _b_ c__\n",
    "*a _b_ c* _a *b* c_ **a __b__ c** __a **b** c__ *__a__* **_a_** _**a**_ __*a*__ end\n",
    "*a *b* c* **a **b** c** *a*b*c* **a**b**c** a***b***c a****b****c end\n",
    "*a **b *c **d** e* f** g* **a *b **c *d* e** f* g** end\n",
    "*no end **nor here _nor __here ~~or\n\n*end* *and **no* end** *a _b* c_ **a __b** c__\n",
    "**a* *a** ***a* ***a** *a*** **a*** ****a** **a**** *** **** ***** _**_ *\\** **\\*\\***\n",
    "*over\nlines* **over\n*lines* and\nlines** _ends\n\nnot_ *a  \nb* **a\\\nb**\n",
    "*[a*](/b) [*a](/b)* **`a**` *<b c=\"*\">* __<https://a.example/__> *a<b>*</b> end\n",
    // Links.
    "[a](/b) [a](/b \"c\") [a](/b 'c') [a](/b (c)) [a]( /b \n \"c\" ) [a]() [](/b) [](<>) [a](<>) [a](#b) [a](?b=c#d)\n",
    "[a](b c) [a](<b c>) [a](b\nc) [a](<b\nc>) [a](<b>c) [a](<b\\>c>) [a](b\\)c) [a](\"b\") [a] (b)\n",
    "[a](b(c)d) [a](b(c(d)e)f) [a](b(c) [a](b)c) [a](b\\(c) [a](<b(c>) [a](/b\"c\") [a](/b \"c\" d)\n",
    "[a *b* **c** `d` ~~e~~](/f) [a [b] c](/d) [a ]b](/c) [a \\] b](/c) [a [b](/c) d](/e) *[a*](/b) [a\nb](/c)\n",
    "[a](/b \"c\nd\") [a](/b \"c\n\nd\") [a](/b 'c \"d\" e') [a](/b \"c \\\"d\\\" e\") [a](/%C3%A4%20b?c=%26) end\n",
    "[full][key], [the *full*][KEY], [key][], [Key], [key] [key], [key]\n[], [a][b][key], ![key], ![a][key]\n\n[key]: /found 'here'\n",
    "[no][such], [such][], [such], [a][key\\], [key[]], [[key]], \\[key], [key\\], [key](no target here), [key]()\n\n[key]: /found\n",
    // Images.
    "![a](/b.png) ![a](/b.png \"c\") ![*a* `b`](/c) ![](/b) ![a [b](/c) d](/e) [![a](/b)](/c) ![![a](/b)](/c) !\\[a](/b) \\![a](/b)\n",
    // Autolinks.
    "<https://example.org> <https://example.org/a?b=c&d#e> <mailto:a@b.example> <a@b.example> <ftp://example.org/a_b*c>\n",
    "<https://example.org/a b> <a b@c.example> <nota:link> <a> <> < https://example.org> <https://example.org <b@c> https://example.org\n",
    // Raw HTML.
    "a <b>c</b> <br/> <i-j k='l' m=n o> </b > <!-- p --> <?q r?> <!S t> <![CDATA[u]]> v\n",
    "a < b, b > c, <3, <_a>, <1a>, <a b=>, <a \"b\">, <a b='c\", </a b>, <a\nb=\"c\nd\">, <a/ >, <!- x ->, <!> end\n",
    // Breaks and text.
    "two blanks  \nand a backslash\\\nand many      \nand none\n   with blanks before\nand one \nat the end  \n\nand\\\n\n# title  \n## title\\\n",
    "`a  \nb` <b c=\"d  \ne\"> *f  \n  g* [h  \ni](/j)\n",
    "Plain text: 100 % of $5, \"quoted\" -- dashed --- and... ellipsis? a_b ^c^ {d} a=b; c|d @e 5'6\" ½\n",
];
