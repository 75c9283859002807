//! What can stop a replay. A line that cannot be read never does: it is counted and reported.

use std::io;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A replay that could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A log could not be read on.
    #[error("cannot read line {line} of {log}: {source}")]
    Read {
        /// Which log: its name, or `the log`.
        log: String,
        /// The line that was being read, counted from 1.
        line: u64,
        /// What the reader said.
        source: io::Error,
    },
    /// What is too much to be put in order in memory could not be kept in a temporary file.
    #[error("cannot keep requests in a temporary file: {0}; set TMPDIR to a folder with room for 16 bytes a request")]
    Spool(#[from] io::Error),
}
