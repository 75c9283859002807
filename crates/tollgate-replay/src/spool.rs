//! Records put in the order of their times in bounded memory: so many are held, and what is more lies sorted in a temporary
//! file, of which the runs are merged.
//!
//! Invariant: records of the same instant stay in the order in which they came, whatever the number held.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

/// Bytes of a record.
pub const RECORD: usize = 16;

/// Records held if not told otherwise: 16 MiB.
pub(crate) const HELD: usize = 1 << 20;

/// Bytes read of a run at once.
const PART: usize = 32 * 1024;

/// What can be spooled.
pub trait Record: Copy {
    /// By what records are ordered.
    fn at(&self) -> u64;
    /// The record as bytes.
    fn to_bytes(&self) -> [u8; RECORD];
    /// The record of those bytes.
    fn of_bytes(bytes: [u8; RECORD]) -> Self;
}

/// Records of any order and number.
#[derive(Debug)]
pub struct Spool<R> {
    held: Vec<R>,
    most: usize,
    sorted: bool,
    file: Option<File>,
    /// Where each run in the file ends, in bytes.
    ends: Vec<u64>,
}

impl<R: Record> Spool<R> {
    /// Holds at most so many records in memory, one at least.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { held: Vec::new(), most: most.max(1), sorted: true, file: None, ends: Vec::new() }
    }

    /// Takes a record.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be written.
    pub fn push(&mut self, record: R) -> io::Result<()> {
        if self.held.len() >= self.most {
            self.write_run()?;
        }
        self.sorted &= self.held.last().is_none_or(|last| last.at() <= record.at());
        self.held.push(record);
        Ok(())
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.held.sort_by_key(Record::at);
            self.sorted = true;
        }
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.sort();
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        let mut end = file.seek(SeekFrom::End(0))?;
        let mut out = BufWriter::with_capacity(PART, file);
        for record in &self.held {
            out.write_all(&record.to_bytes())?;
            end += RECORD as u64;
        }
        out.flush()?;
        drop(out);
        self.ends.push(end);
        self.held.clear();
        Ok(())
    }

    /// Shows every record, in order. Can be done again.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read, or as `show`.
    pub fn each<E: From<io::Error>>(&mut self, mut show: impl FnMut(R) -> Result<(), E>) -> Result<(), E> {
        self.sort();
        let Some(file) = &mut self.file else { return self.held.iter().try_for_each(|record| show(*record)) };
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let runs = starts.zip(&self.ends).map(|(start, end)| Run { at: start, end: *end, part: Vec::new(), read: 0 });
        let mut runs: Vec<Run> = runs.collect();
        let mut held = self.held.iter().copied();
        // The run's number decides between equals: earlier runs came earlier, and what is held last.
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            if let Some(record) = run.next(file)? {
                heads.push(Reverse(Head { key: (R::of_bytes(record).at(), number), record: R::of_bytes(record) }));
            }
        }
        let last = runs.len();
        let of_held = |record: R| Reverse(Head { key: (record.at(), last), record });
        heads.extend(held.next().map(of_held));
        while let Some(mut head) = heads.peek_mut() {
            show(head.0.record)?;
            let number = head.0.key.1;
            let next = match runs.get_mut(number) {
                Some(run) => run.next(file)?.map(R::of_bytes),
                None => held.next(),
            };
            match next {
                Some(record) => *head = Reverse(Head { key: (record.at(), number), record }),
                None => drop(PeekMut::pop(head)),
            }
        }
        Ok(())
    }
}

/// The next record of a run.
struct Head<R> {
    key: (u64, usize),
    record: R,
}

impl<R> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<R> Eq for Head<R> {}

impl<R> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Head<R> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A sorted run in the file, and a part of it in memory.
struct Run {
    at: u64,
    end: u64,
    part: Vec<u8>,
    read: usize,
}

impl Run {
    fn next(&mut self, file: &mut File) -> io::Result<Option<[u8; RECORD]>> {
        if self.read == self.part.len() {
            let bytes = usize::try_from(self.end - self.at).unwrap_or(PART).min(PART);
            if bytes == 0 {
                return Ok(None);
            }
            file.seek(SeekFrom::Start(self.at))?;
            self.part.resize(bytes, 0);
            file.read_exact(&mut self.part)?;
            self.at += bytes as u64;
            self.read = 0;
        }
        let record = self.part.get(self.read..self.read + RECORD).and_then(|bytes| bytes.try_into().ok());
        self.read += RECORD;
        Ok(record)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Numbered(u64, u64);

    impl Record for Numbered {
        fn at(&self) -> u64 {
            self.0
        }

        fn to_bytes(&self) -> [u8; RECORD] {
            (u128::from(self.0) << 64 | u128::from(self.1)).to_le_bytes()
        }

        fn of_bytes(bytes: [u8; RECORD]) -> Self {
            let both = u128::from_le_bytes(bytes).to_be_bytes();
            let half = |range: std::ops::Range<usize>| {
                both[range].iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
            };
            Self(half(0..8), half(8..16))
        }
    }

    proptest! {
        #[test]
        fn any_number_held_gives_the_order_of_a_stable_sort(
            times in prop::collection::vec(0_u64..20, 0..200), most in 1_usize..50
        ) {
            let mut records: Vec<_> = times.iter().zip(0..).map(|(at, number)| Numbered(*at, number)).collect();
            let mut spool = Spool::new(most);
            for record in &records {
                spool.push(*record).unwrap();
            }
            records.sort_by_key(|record| record.0);
            for _ in 0..2 {
                let mut shown = Vec::new();
                spool.each(|record| { shown.push(record); Ok::<_, io::Error>(()) }).unwrap();
                prop_assert_eq!(&shown, &records);
            }
        }
    }
}
