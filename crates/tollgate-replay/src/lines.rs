//! The lines of a log, each in bounded memory, and the log itself out of its compression.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Longest line that is read, in bytes: 64 KiB. Servers take request lines and headers of 8 KiB.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// The first bytes of gzip (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The log, decompressed if its first bytes are those of gzip, whatever its name is; also if it is several such files in a row.
///
/// # Errors
///
/// The log cannot be read.
pub fn decompressed<'r>(mut log: impl Read + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    let mut start = Vec::new();
    // A pipe can give one byte at a time.
    log.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
    let is_gzip = start == GZIP;
    let whole = BufReader::with_capacity(1 << 16, Cursor::new(start).chain(log));
    if is_gzip {
        Ok(Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole))))
    } else {
        Ok(Box::new(whole))
    }
}

/// A line without its end, and its number, counted from 1.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) number: u64,
    pub(crate) text: &'a [u8],
}

/// The lines of a log. A line is kept up to [`MAX_LINE`] bytes and one; the rest of it is passed over.
pub(crate) struct Lines<R> {
    log: R,
    text: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(log: R) -> Self {
        Self { log, text: Vec::new(), number: 0 }
    }

    /// The number of the line that was read last, or could not be.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.text.clear();
        self.number += 1;
        let most = MAX_LINE as u64 + 1;
        let kept = self.log.by_ref().take(most).read_until(b'\n', &mut self.text)?;
        if kept > MAX_LINE && !self.text.ends_with(b"\n") {
            self.log.skip_until(b'\n')?;
        }
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        Ok((kept > 0).then_some(Line { number: self.number, text }))
    }
}
