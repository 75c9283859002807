//! Bytes as choices and lines: text, so that seeds can be read and a dictionary helps.
//!
//! The first line is choices, a digit each; what follows is up to the target.

use std::borrow::Cow;

/// What is left of an input.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    choices: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let (choices, rest) = split(bytes);
        Self { choices, rest }
    }

    /// The next choice, below `n`; 0 if there are no more.
    pub(crate) fn choice(&mut self, n: usize) -> usize {
        let Some((first, others)) = self.choices.split_first() else { return 0 };
        self.choices = others;
        usize::from(first.wrapping_sub(b'0')) % n
    }

    /// The next line, empty if there are no more.
    pub(crate) fn line(&mut self) -> &'a [u8] {
        let (line, rest) = split(self.rest);
        self.rest = rest;
        line
    }

    /// The next line as text.
    pub(crate) fn text(&mut self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.line())
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The lines that are left.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.rest.split(|byte| *byte == b'\n')
    }
}

fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
