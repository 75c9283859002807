//! What others wrote, as it may be shown.
//!
//! Invariant: what comes out has no character that moves a terminal's cursor, changes its colours or the direction of text, and at
//! most [`LONGEST`] characters of the original.

/// Characters of one value that are shown.
pub(super) const LONGEST: usize = 200;

/// `text` on one line, with what a terminal would obey written as `\u{1b}`.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (n, character) in text.trim().chars().enumerate() {
        if n == LONGEST {
            shown.push('…');
            break;
        }
        if is_obeyed(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Controls (C0, C1 and DEL), separators of lines and paragraphs, marks of direction (UAX #9) and the byte order mark.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, printable};

    #[test]
    fn nothing_that_a_terminal_obeys_comes_out() {
        assert_eq!(printable("a\u{1b}[31mb\u{9b}2J\r\nc"), "a\\u{1b}[31mb\\u{9b}2J\\u{d}\\u{a}c");
        assert_eq!(printable("pay\u{202e}cod"), "pay\\u{202e}cod");
        assert_eq!(printable(" kế hoạch của bạn "), "kế hoạch của bạn");
    }

    #[test]
    fn a_long_value_is_cut() {
        assert_eq!(printable(&"é".repeat(LONGEST + 1)).chars().count(), LONGEST + 1);
    }
}
