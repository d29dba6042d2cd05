//! The scripts of the world, and line ends and blanks of every kind.

pub(super) const TEXTS: &[&str] = &[
    // Chinese, Japanese and Korean, whose words have no blanks between them.
    "这是**重点**,那是*强调*。**「注意」**后面没有空格。代码`变量`在这里。\n\n- 第一**项**\n- 第二项:[链接](https://example.org/路径)\n\n| 名称 | 数值 |\n|---|---:|\n| 甲 | 1 |\n",
    "これは**太字**です。**これも。**そして*斜体*と~~取消~~。「**括弧**」。\n\n1. 一つ目\n2. 二つ目`コード`\n\n> 引用**文**\n続き\n",
    "**굵게**는 이렇게, *기울임*도. __굵게__ 그리고 _기울임_입니다.\n\n제목\n===\n\n### 소제목 **강조**\n",
    "全角:*強調*、**強調**!(**括弧**)~~取消線~~です\n\n**中文English混合**文字**and*两种*text**\n",
    // Right to left.
    "שלום **עולם** ו*נטוי* עם `קוד` ו[קישור](https://example.org/א).\n\n- ראשון\n- שני **מודגש**\n\n> ציטוט\n",
    "مرحبا **بالعالم** و*مائل* مع `كود`، 123.\n\n| اسم | قيمة |\n|---|---|\n| أ | ١ |\n\n1. أول\n2. ثان\n",
    "English **עברית** mixed \u{200f}mark\u{200e} and \u{2067}isolate\u{2069} *سوم* end\n",
    // Characters of several code points.
    "👩\u{200d}👩\u{200d}👧\u{200d}👦 **👍🏽** *🏳\u{fe0f}\u{200d}🌈* `👨🏿\u{200d}🚀` [🇩🇪](https://example.org/🇩🇪) ~~😀~~\n\n- 🔥\n- ✅ done\n\n# 🎉 Title 🎉\n\n| 😀 | 😁 |\n|---|---|\n| 1️⃣ | 2️⃣ |\n",
    "e\u{301}**e\u{301}**e\u{301} ş\u{327}*a\u{308}\u{304}* न\u{94d}द**ी** ไทย**ภาษา**ไทย\n",
    "**\u{201c}quoted\u{201d}** text*\u{2014}dash*\u{2014} \u{ab}_guillemets_\u{bb} \u{2026}**\u{2026}**\u{2026}\n",
    // Line ends and blanks.
    "# Title\r\n\r\nText **bold\r\nover** lines\\\r\nbreak  \r\nbreak\r\n\r\n- a\r\n- b\r\n  c\r\n\r\n1. d\r\n\r\n   e\r\n",
    "```rust\r\nlet a = 1;\r\n\r\nlet b = 2;\r\n```\r\n\r\n    indented\r\n    code\r\n\r\n> quote\r\n> more\r\n",
    "| a | b |\r\n|---|---|\r\n| c | d |\r\n\r\nTitle\r\n=====\r\n\r\n<div>\r\nraw\r\n</div>\r\n\r\n[r]: /u 'title'\r\n\r\n[r] and [^1]\r\n\r\n[^1]: note\r\n",
    "old\rline\rends\r\r# as\r\r- of\r- old\r",
    "mixed\r\nline\nends\r\n\n- a\n- b\r\n\r\n- c\n",
    "trailing \t\n\t \nblanks\u{a0}\n\u{a0}\n\u{3000}wide\u{3000}\n\u{2003}em\u{2003}*a\u{2003}*\n",
    "\u{feff}# A mark before it\n\nzero\u{200b}width\u{ad}soft\n",
    "controls \u{1}\u{8}\u{1b}[1mbold\u{1b}[0m \u{7f} \u{85} \u{2028} \u{2029} end\n\nnull \0 **\0** `\0`\n",
];
