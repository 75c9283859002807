//! Where findings are collected while a file is decoded. Invariant: one mistake is reported once. What depends on a
//! line that is not TOML is withheld until the syntax is right.

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::syntax::Syntax;
use std::ops::Range;

/// A byte range of the file.
pub(crate) type Span = Range<usize>;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Collects findings by byte offset and turns them into lines and columns.
#[derive(Debug)]
pub(crate) struct Report<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    syntax: &'t Syntax,
    found: Vec<Diagnostic>,
}

impl<'t> Report<'t> {
    /// A report on `text` that starts with its syntax errors.
    pub(crate) fn new(text: &'t str, syntax: &'t Syntax) -> Self {
        let first = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(first).chain(starts).collect();
        let mut report = Self { text, line_starts, syntax, found: Vec::new() };
        for error in &syntax.errors {
            let message = format!("not valid TOML: {}", error.message);
            report.push(Severity::Error, &error.at, message, syntax_help(&error.message).to_owned());
        }
        report
    }

    /// The line of a span, from 1.
    pub(crate) fn line(&self, at: &Span) -> usize {
        self.line_of(at.start)
    }

    /// A mistake that is visible in what is written at `at`.
    pub(crate) fn error(&mut self, at: &Span, message: impl Into<String>, help: impl Into<String>) {
        if !self.touches_blanked(at) {
            self.push(Severity::Error, at, message.into(), help.into());
        }
    }

    /// A mistake that consists in `word` being nowhere else in the file: something is missing or not declared.
    pub(crate) fn absent(&mut self, at: &Span, word: &str, message: impl Into<String>, help: impl Into<String>) {
        let is_blanked = |line: &usize| self.syntax.blanked.contains(line);
        let mut blanked = self.text.split('\n').enumerate().filter(|(line, _)| is_blanked(line));
        if !self.syntax.given_up && !self.touches_blanked(at) && !blanked.any(|(_, line)| line.contains(word)) {
            self.push(Severity::Error, at, message.into(), help.into());
        }
    }

    /// Something that works but deserves a look. It takes the whole file to judge.
    pub(crate) fn warning(&mut self, at: &Span, message: impl Into<String>, help: impl Into<String>) {
        if self.syntax.blanked.is_empty() {
            self.push(Severity::Warning, at, message.into(), help.into());
        }
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.found.iter().all(|d| d.severity != Severity::Error)
    }

    /// All findings in file order.
    pub(crate) fn finish(self) -> Diagnostics {
        Diagnostics::new(self.found)
    }

    fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at).max(1)
    }

    /// Whether a line of the span was blanked: then what is written there is not what was read.
    fn touches_blanked(&self, at: &Span) -> bool {
        let lines = self.line_of(at.start) - 1..=self.line_of(at.end.max(at.start)) - 1;
        self.syntax.blanked.range(lines).next().is_some()
    }

    fn push(&mut self, severity: Severity, at: &Span, message: String, help: String) {
        let line = self.line(at);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let end = at.start.min(self.text.len());
        let before = self.text.as_bytes().get(start..end).unwrap_or_default();
        // Every character has exactly one byte that is not a continuation byte.
        let column = before.iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1;
        self.found.push(Diagnostic { severity, line, column, message, help });
    }
}

fn syntax_help(message: &str) -> &'static str {
    if message.contains("duplicate") {
        "keep one of the two and remove the other"
    } else if message.contains("array") {
        "put a comma between entries, and close the array with `]`"
    } else if message.contains("inline table") {
        "put a comma between entries, and close the table with `}`"
    } else {
        "write one `key = value` a line, with text in double quotes, like rate = \"50/h\""
    }
}
