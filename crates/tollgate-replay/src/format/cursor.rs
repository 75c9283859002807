//! The unread rest of a line whose fields are words, or stand between quotes. Every field's reader leaves it at the start of
//! the next field.

use crate::date;
use crate::entry::{Flaw, LineError};
use tollgate_core::Timestamp;

pub(super) struct Cursor<'a> {
    pub(super) line: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    pub(super) fn error(&self, at: usize, flaw: Flaw) -> LineError {
        // The end of the line is the last place to point at.
        LineError { column: at.min(self.line.len()) + 1, flaw }
    }

    /// The bytes up to the next space, or to the end; not none.
    pub(super) fn word(&mut self, field: &'static str) -> Result<&'a [u8], LineError> {
        let rest = self.rest();
        let word = &rest[..rest.iter().position(|b| *b == b' ').unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.error(self.at, Flaw::Ends(field)));
        }
        self.at += word.len() + 1;
        Ok(word)
    }

    /// The user of the combined format: all up to the `[` that opens the time, since a user name may have spaces.
    pub(super) fn user(&mut self) -> Result<Option<&'a [u8]>, LineError> {
        let rest = self.rest();
        let Some(end) = rest.windows(2).position(|pair| pair == b" [") else {
            self.word("user")?;
            let flaw = if self.rest().is_empty() { Flaw::Ends("time") } else { Flaw::Opening("time", '[') };
            return Err(self.error(self.at, flaw));
        };
        let user = &rest[..end];
        // A virtual host in front of the client moves every field by one, and an address would become the identity.
        if user.starts_with(b"- ") {
            return Err(self.error(self.at, Flaw::ExtraField));
        }
        self.at += end + 1;
        // Apache httpd writes an empty user name as `""`.
        let nobody = matches!(user, b"" | b"-" | b"\"\"");
        Ok((!nobody).then_some(user))
    }

    /// The time of the combined format, in brackets.
    pub(super) fn time(&mut self) -> Result<Timestamp, LineError> {
        let start = self.at + 1;
        let rest = self.line.get(start..).unwrap_or_default();
        let Some(end) = rest.iter().position(|b| *b == b']') else {
            return Err(self.error(self.line.len(), Flaw::Closing("time", ']')));
        };
        let time = date::parse(&rest[..end]).ok_or_else(|| self.error(start, Flaw::Time))?;
        self.at = start + end + 1;
        self.space();
        Ok(time)
    }

    /// What stands between quotes, still escaped.
    pub(super) fn quoted(&mut self, field: &'static str) -> Result<&'a [u8], LineError> {
        match self.rest() {
            [] => return Err(self.error(self.at, Flaw::Ends(field))),
            [b'"', ..] => (),
            _ => return Err(self.error(self.at, Flaw::Opening(field, '"'))),
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.line.get(end) {
                Some(b'"') => break,
                // The escaped character cannot close the field.
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(self.error(self.line.len(), Flaw::Closing(field, '"'))),
            }
        }
        self.at = end + 1;
        self.space();
        Ok(&self.line[start..end])
    }

    pub(super) fn status(&mut self) -> Result<u16, LineError> {
        let start = self.at;
        let word = self.word("status")?;
        number(word)
            .filter(|_| word.len() == 3)
            .and_then(|status| u16::try_from(status).ok())
            .ok_or_else(|| self.error(start, Flaw::Status))
    }

    pub(super) fn size(&mut self) -> Result<Option<u64>, LineError> {
        let start = self.at;
        match self.word("size")? {
            b"-" => Ok(None),
            word => number(word).map(Some).ok_or_else(|| self.error(start, Flaw::Size)),
        }
    }

    fn space(&mut self) {
        if self.line.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }
}

/// A number of digits alone.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, d| {
        let d = d.is_ascii_digit().then(|| u64::from(d - b'0'))?;
        value.checked_mul(10)?.checked_add(d)
    })
}
