//! Reading past syntax errors: lines that are not TOML are blanked and the rest is parsed again, so that one stray
//! character does not hide the other mistakes of a file. Invariant: what is left has every byte at its old place.

use crate::report::Span;
use std::collections::BTreeSet;
use toml::de::DeTable;

/// How often a file is parsed again. Each round blanks at least one line; a file that takes more is not worth guessing.
const ROUNDS: usize = 10;

/// A syntax error, by byte range.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) at: Span,
    pub(crate) message: String,
}

/// What could be read of a file.
#[derive(Debug)]
pub(crate) struct Syntax {
    /// The mistakes, one a line and without those that only echo the line before.
    pub(crate) errors: Vec<SyntaxError>,
    /// The text with the lines of mistakes blanked.
    pub(crate) readable: String,
    /// The blanked lines, from 0.
    pub(crate) blanked: BTreeSet<usize>,
    /// Whether the readable text is still not TOML.
    pub(crate) given_up: bool,
}

impl Syntax {
    /// Reads `text` as far as possible.
    pub(crate) fn read(text: &str) -> Self {
        let mut syntax =
            Self { errors: Vec::new(), readable: text.to_owned(), blanked: BTreeSet::new(), given_up: true };
        for _ in 0..ROUNDS {
            let (_, errors) = DeTable::parse_recoverable(&syntax.readable);
            if errors.is_empty() {
                syntax.given_up = false;
                break;
            }
            if !syntax.blank(text, &errors) {
                break;
            }
        }
        syntax
    }

    /// Notes the errors and blanks their lines; whether any line was not blank already.
    fn blank(&mut self, text: &str, errors: &[toml::de::Error]) -> bool {
        let lines: Vec<&str> = text.split('\n').collect();
        // Made once: a file can have as many errors as characters.
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let line_of = |at: usize| ends.partition_point(|end| *end < at);
        let earlier = self.blanked.clone();
        let mut last: Option<(usize, String)> = None;
        for error in errors {
            let at = error.span().unwrap_or_default();
            let line = line_of(at.start);
            let message = error.message().to_owned();
            // A bracket that is not closed makes every following line wrong in the same way.
            let echo = last.as_ref().is_some_and(|(before, said)| line <= before + 1 && *said == message);
            let first_of_line = !self.blanked.contains(&line);
            last = Some((line, message.clone()));
            if !first_of_line {
                continue;
            }
            if message.starts_with("unclosed") {
                // What an earlier round made of the lines after it was read as a part of it.
                self.errors.retain(|error| line_of(error.at.start) < line);
                self.blanked.retain(|later| *later < line);
            }
            if !echo || self.errors.is_empty() {
                self.errors.push(SyntaxError { at, message });
            }
            self.blanked.extend(section(&lines, line));
        }
        self.readable = lines.iter().enumerate().map(|(i, line)| self.shown(i, line)).collect::<Vec<_>>().join("\n");
        self.blanked != earlier
    }

    fn shown(&self, i: usize, line: &str) -> String {
        if self.blanked.contains(&i) { " ".repeat(line.len()) } else { line.to_owned() }
    }
}

/// The lines that go with a wrong one: a table header takes its keys along, or they would land in the table before.
fn section(lines: &[&str], line: usize) -> std::ops::Range<usize> {
    let is_header = |i: &usize| lines.get(*i).is_some_and(|text| text.trim_start().starts_with('['));
    let end = if is_header(&line) { (line + 1..lines.len()).find(is_header).unwrap_or(lines.len()) } else { line + 1 };
    line..end
}
