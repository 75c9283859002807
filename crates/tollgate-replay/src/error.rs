//! What can stop a replay. A line that cannot be read never does: it is counted and reported.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A replay that could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log could not be read on.
    #[error("cannot read line {line} of the log: {source}")]
    Read {
        /// The line that was being read, counted from 1.
        line: u64,
        /// What the reader said.
        source: std::io::Error,
    },
}
