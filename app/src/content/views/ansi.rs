//! What a terminal makes of its bytes, as far as a page needs it: colours and weights become styles of runs of text, a line
//! that was written again shows what it held last, all other escapes are dropped.

use std::iter::Peekable;
use std::str::Chars;

/// Further runs of one text have no style: a page of colours would be slower to draw than to read.
const MOST_STYLED: usize = 400;

/// A hue of the page's own. Bright ones are the same as dark ones: the theme decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hue {
    /// Red.
    Red,
    /// Green.
    Green,
    /// Yellow.
    Yellow,
    /// Blue.
    Blue,
    /// Magenta.
    Magenta,
    /// Cyan.
    Cyan,
    /// Between text and ground.
    Grey,
    /// The text's own, black or white by the theme.
    Ink,
}

/// How a run of text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Its colour, where it is not the text's.
    pub hue: Option<Hue>,
    /// What it stands on.
    pub ground: Option<Hue>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub strike: bool,
    /// Text and ground change places.
    pub inverse: bool,
}

impl Style {
    /// The classes of a run; empty for plain text.
    pub fn class(&self) -> String {
        let mut class = String::new();
        let mut add = |name: &str| {
            if !class.is_empty() {
                class.push(' ');
            }
            class.push_str("ansi--");
            class.push_str(name);
        };
        let (hue, ground) = if self.inverse {
            (self.ground, Some(self.hue.unwrap_or(Hue::Grey)))
        } else {
            (self.hue, self.ground)
        };
        match ground {
            // On a ground the text keeps its own colour, so that it can be read on any.
            Some(ground) => add(match ground {
                Hue::Red => "on-red",
                Hue::Green => "on-green",
                Hue::Yellow => "on-yellow",
                Hue::Blue => "on-blue",
                Hue::Magenta => "on-magenta",
                Hue::Cyan => "on-cyan",
                Hue::Grey | Hue::Ink => "on-grey",
            }),
            None => match hue {
                Some(Hue::Red) => add("red"),
                Some(Hue::Green) => add("green"),
                Some(Hue::Yellow) => add("yellow"),
                Some(Hue::Blue) => add("blue"),
                Some(Hue::Magenta) => add("magenta"),
                Some(Hue::Cyan) => add("cyan"),
                Some(Hue::Grey) => add("grey"),
                Some(Hue::Ink) => {}
                None if self.dim => add("grey"),
                None => {}
            },
        }
        for (is_so, name) in [
            (self.bold, "bold"),
            (self.italic, "italic"),
            (self.underline, "underline"),
            (self.strike, "strike"),
        ] {
            if is_so {
                add(name);
            }
        }
        class
    }

    /// Takes in the numbers of one escape that sets styles.
    fn take(&mut self, numbers: &[u16]) {
        let mut rest = numbers;
        while let [number, after @ ..] = rest {
            rest = after;
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                9 => self.strike = true,
                21 | 22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.strike = false,
                30..=37 => self.hue = Some(of_sixteen(number - 30)),
                40..=47 => self.ground = Some(of_sixteen(number - 40)),
                90..=97 => self.hue = Some(of_sixteen(number - 90 + 8)),
                100..=107 => self.ground = Some(of_sixteen(number - 100 + 8)),
                39 => self.hue = None,
                49 => self.ground = None,
                38 | 48 => {
                    let hue = match rest {
                        [5, index, after @ ..] => {
                            rest = after;
                            Some(of_256(*index))
                        }
                        [2, red, green, blue, after @ ..] => {
                            rest = after;
                            Some(nearest([*red, *green, *blue]))
                        }
                        _ => return,
                    };
                    if *number == 38 {
                        self.hue = hue;
                    } else {
                        self.ground = hue;
                    }
                }
                _ => {}
            }
        }
    }
}

fn of_sixteen(index: u16) -> Hue {
    match index {
        1 | 9 => Hue::Red,
        2 | 10 => Hue::Green,
        3 | 11 => Hue::Yellow,
        4 | 12 => Hue::Blue,
        5 | 13 => Hue::Magenta,
        6 | 14 => Hue::Cyan,
        8 => Hue::Grey,
        // Black and white are whatever can be read.
        _ => Hue::Ink,
    }
}

fn of_256(index: u16) -> Hue {
    match index {
        0..=15 => of_sixteen(index),
        16..=231 => {
            let index = index - 16;
            nearest([index / 36 * 51, index / 6 % 6 * 51, index % 6 * 51])
        }
        _ => match index {
            236..=250 => Hue::Grey,
            _ => Hue::Ink,
        },
    }
}

/// The hue that is nearest to a colour.
fn nearest([red, green, blue]: [u16; 3]) -> Hue {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let spread = most.saturating_sub(least);
    if spread < 40 {
        return if (64..=200).contains(&most) {
            Hue::Grey
        } else {
            Hue::Ink
        };
    }
    // Which of the three is strong.
    let strong = |channel: u16| channel.saturating_sub(least) * 2 > spread;
    match (strong(red), strong(green), strong(blue)) {
        (true, true, _) => Hue::Yellow,
        (true, false, true) => Hue::Magenta,
        (true, false, false) => Hue::Red,
        (false, true, true) => Hue::Cyan,
        (false, true, false) => Hue::Green,
        (false, false, _) => Hue::Blue,
    }
}

/// A run of text of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it looks.
    pub style: Style,
    /// The text.
    pub text: String,
}

/// What a text shows, and the style that goes on behind it.
pub fn runs(text: &str, style: Style) -> (Vec<Run>, Style) {
    let mut screen = Screen {
        runs: Vec::new(),
        styled: 0,
        line: 0,
        is_returned: false,
        style,
    };
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\u{1b}' => escape(&mut chars, &mut screen.style),
            '\u{9b}' => control(&mut chars, &mut screen.style),
            '\n' => screen.line_end(),
            '\r' => screen.is_returned = true,
            '\u{8}' => screen.back(),
            '\u{7}' => {}
            other => screen.put(other),
        }
    }
    (screen.runs, screen.style)
}

/// A text without its escapes.
pub fn plain(text: &str) -> String {
    runs(text, Style::default())
        .0
        .into_iter()
        .map(|run| run.text)
        .collect()
}

struct Screen {
    runs: Vec<Run>,
    styled: usize,
    /// Where the line that is written begins, in bytes of all runs.
    line: usize,
    /// The next character is the first of the line again.
    is_returned: bool,
    style: Style,
}

impl Screen {
    fn length(&self) -> usize {
        self.runs.iter().map(|run| run.text.len()).sum()
    }

    fn put(&mut self, character: char) {
        if self.is_returned {
            self.is_returned = false;
            self.clear_line();
        }
        let style = if self.styled < MOST_STYLED {
            self.style
        } else {
            Style::default()
        };
        match self.runs.last_mut() {
            // White space needs no colour of its own.
            Some(run) if run.style == style => run.text.push(character),
            _ => {
                self.styled += usize::from(style != Style::default());
                self.runs.push(Run {
                    style,
                    text: character.to_string(),
                });
            }
        }
    }

    fn line_end(&mut self) {
        self.is_returned = false;
        match self.runs.last_mut() {
            Some(run) => run.text.push('\n'),
            None => self.put('\n'),
        }
        self.line = self.length();
    }

    fn clear_line(&mut self) {
        let mut surplus = self.length() - self.line;
        while surplus > 0 {
            let Some(run) = self.runs.last_mut() else { return };
            if run.text.len() <= surplus {
                surplus -= run.text.len();
                self.runs.pop();
            } else {
                run.text.truncate(run.text.len() - surplus);
                return;
            }
        }
    }

    fn back(&mut self) {
        if self.length() > self.line
            && let Some(run) = self.runs.last_mut()
        {
            run.text.pop();
            if run.text.is_empty() {
                self.runs.pop();
            }
        }
    }
}

/// After `ESC`.
fn escape(chars: &mut Peekable<Chars<'_>>, style: &mut Style) {
    match chars.next() {
        Some('[') => control(chars, style),
        // Texts for the terminal itself (titles, links): up to BEL or `ESC \`.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(next) = chars.next() {
                match next {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        chars.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        // Which characters are meant: one more letter.
        Some('(' | ')' | '*' | '+' | '#' | '%') => drop(chars.next()),
        _ => {}
    }
}

/// After `ESC [`: numbers, then a letter.
fn control(chars: &mut Peekable<Chars<'_>>, style: &mut Style) {
    let mut numbers: Vec<u16> = Vec::new();
    let mut number: Option<u16> = None;
    let mut is_private = false;
    while let Some(next) = chars.next_if(|next| matches!(next, ' '..='~')) {
        match next {
            '0'..='9' => {
                let digit = next.to_digit(10).unwrap_or_default();
                let value = u32::from(number.unwrap_or_default()) * 10 + digit;
                number = Some(u16::try_from(value).unwrap_or(u16::MAX));
            }
            ';' => numbers.push(number.take().unwrap_or_default()),
            // A place that is left empty between colons is not there.
            ':' => numbers.extend(number.take()),
            '<'..='?' => is_private = true,
            ' '..='/' => {}
            letter => {
                numbers.push(number.unwrap_or_default());
                if letter == 'm' && !is_private {
                    style.take(&numbers);
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs as `class|text`.
    fn shown(text: &str) -> Vec<String> {
        let (runs, _) = runs(text, Style::default());
        let written = |run: &Run| format!("{}|{}", run.style.class(), run.text);
        runs.iter().map(written).collect()
    }

    #[test]
    fn colours_and_weights_become_classes() {
        assert_eq!(
            shown("a \u{1b}[31mred\u{1b}[0m \u{1b}[1;92mbold green\u{1b}[22;39m b"),
            [
                "|a ",
                "ansi--red|red",
                "| ",
                "ansi--green ansi--bold|bold green",
                "| b"
            ]
        );
        assert_eq!(shown("\u{1b}[38;5;196mx"), ["ansi--red|x"]);
        assert_eq!(shown("\u{1b}[38;5;21mx"), ["ansi--blue|x"]);
        assert_eq!(shown("\u{1b}[38;5;244mx"), ["ansi--grey|x"]);
        assert_eq!(shown("\u{1b}[38;2;255;128;0mx"), ["ansi--yellow|x"]);
        assert_eq!(shown("\u{1b}[38:2::255:0:255mx"), ["ansi--magenta|x"]);
        assert_eq!(shown("\u{1b}[41;97mx"), ["ansi--on-red|x"]);
        assert_eq!(shown("\u{1b}[7mx"), ["ansi--on-grey|x"]);
        assert_eq!(
            shown("\u{1b}[2;3;4;9mx"),
            ["ansi--grey ansi--italic ansi--underline ansi--strike|x"]
        );
        assert_eq!(shown("\u{9b}32mx"), ["ansi--green|x"]);
    }

    #[test]
    fn every_one_of_256_colours_has_a_hue_that_can_be_read() {
        let hues: Vec<Hue> = (0..=255).map(of_256).collect();
        for hue in [
            Hue::Red,
            Hue::Green,
            Hue::Yellow,
            Hue::Blue,
            Hue::Magenta,
            Hue::Cyan,
            Hue::Grey,
            Hue::Ink,
        ] {
            assert!(hues.contains(&hue), "{hue:?}");
        }
        assert_eq!([hues[0], hues[15], hues[16], hues[231], hues[232]], [Hue::Ink; 5]);
    }

    #[test]
    fn a_line_that_is_written_again_shows_what_it_held_last() {
        assert_eq!(plain("10%\r50%\r100%\ndone\n"), "100%\ndone\n");
        assert_eq!(
            plain("a\r\nb\r\n"),
            "a\nb\n",
            "a line end of two characters is one"
        );
        assert_eq!(
            plain("first\n10%\r"),
            "first\n10%",
            "nothing is lost before something comes"
        );
        assert_eq!(plain("\u{1b}[32m1\r\u{1b}[K\u{1b}[31m2\n"), "2\n");
        assert_eq!(shown("\u{1b}[32m1\r\u{1b}[K2\n"), ["ansi--green|2\n"]);
        assert_eq!(plain("ab\u{8}\u{8}\u{8}c"), "c");
        assert_eq!(plain("x\n\u{8}c"), "x\nc");
    }

    #[test]
    fn other_escapes_are_dropped_whole_or_not() {
        for (text, expected) in [
            ("a\u{1b}[2J\u{1b}[1;1Hb", "ab"),
            ("\u{1b}]0;title\u{7}a", "a"),
            (
                "\u{1b}]8;;https://example.org\u{1b}\\link\u{1b}]8;;\u{1b}\\",
                "link",
            ),
            ("\u{1b}Pq#0\u{1b}\\a", "a"),
            ("\u{1b}(Ba\u{1b}=b", "ab"),
            ("\u{1b}[?25la\u{1b}[?25h", "a"),
            ("\u{1b}[>4;1ma", "a"),
            ("a\u{7}", "a"),
            ("a\u{1b}", "a"),
            ("a\u{1b}[31", "a"),
            ("a\u{1b}]0;never ends", "a"),
            ("\u{1b}[999999999999999999ma", "a"),
            ("\u{1b}[38;5ma", "a"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_prefix_is_shown_without_any_escape() {
        let text = "é\u{1b}[1;38;5;208mw\u{1b}[0m\u{1b}]0;t\u{7}\r\n\u{1b}[31m50%\r\u{1b}[Kdone";
        for (end, _) in text.char_indices() {
            assert!(!plain(&text[..end]).contains(['\u{1b}', '\u{7}', '\r']), "{end}");
        }
    }

    #[test]
    fn a_text_of_many_colours_is_whole_though_not_all_of_it_has_its_colour() {
        let text: String = (0..5_000)
            .map(|place| format!("\u{1b}[3{}mx", 1 + place % 6))
            .collect();
        let (runs, _) = runs(&text, Style::default());
        assert!(runs.len() <= MOST_STYLED + 1, "{}", runs.len());
        assert_eq!(runs.iter().map(|run| run.text.len()).sum::<usize>(), 5_000);
    }

    #[test]
    fn the_style_goes_on_in_the_next_part() {
        let (_, style) = runs("\u{1b}[31mred", Style::default());
        let (after, _) = runs("still\u{1b}[0m", style);
        assert_eq!(after[0].style.class(), "ansi--red");
    }
}
