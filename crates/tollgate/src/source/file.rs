//! A policy in a file. Invariant: no more than the bound is read, however large the file is.

use super::{Error, MAX_BYTES, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let place = || path.display().to_string();
    let mut bytes = Vec::new();
    let bound = MAX_BYTES as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(bound).read_to_end(&mut bytes));
    read.map_err(|cause| Error::Read { place: place(), cause })?;
    if bytes.len() > MAX_BYTES { Err(Error::TooLarge { place: place() }) } else { Ok(bytes) }
}
