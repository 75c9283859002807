//! Logs read once into records of 16 bytes, which are put in the order of time and decided as often as is asked.
//!
//! Invariant: every line is counted exactly once, as blank, header, malformed, or one of stopped in front, exempt, unmatched
//! and recorded; no line stops a replay, whatever is in it and however long it is.

use crate::callers::{Callers, Judge};
use crate::entry::{Entry, Flaw, LineError};
use crate::error::{Error, Result};
use crate::format::Reader;
use crate::ledger::{Ledger, PlanId};
use crate::lines::{Line, Lines, MAX_LINE};
use crate::report::{FileReport, MalformedLine, Report, WafReport};
use crate::rules::{Matched, Rules};
use crate::spool::{self, RECORD, Spool};
use std::collections::HashMap;
use std::io::BufRead;
use tollgate_core::Timestamp;

/// How much a report shows, and how much memory a replay takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Keys listed for each limit as denied most often, and clients that another policy would treat otherwise. 10 by default.
    pub top_denied: usize,
    /// Malformed lines shown, the first of each log. 10 by default.
    pub malformed: usize,
    /// Equal parts of the time that are counted apart, for charts. None by default.
    pub parts: usize,
    /// Requests held in memory to put them in order, 16 bytes each; what is more goes through a temporary file. 2^20 by
    /// default.
    pub held: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { top_denied: 10, malformed: 10, parts: 0, held: spool::HELD }
    }
}

/// Decides every request of one log by `rules`, in the order of their times.
///
/// # Errors
///
/// As of [`Replay::read`] and [`Replay::report`].
pub fn replay(log: impl BufRead, rules: &dyn Rules, options: &Options) -> Result<Report> {
    let mut replay = Replay::new(rules, *options);
    replay.read(None, log, |_| ())?;
    replay.report()
}

/// A request to decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// When.
    pub(crate) at: Timestamp,
    /// Who asked for which route.
    pub(crate) caller: u32,
    /// How it was answered; 0 if nobody knows.
    pub(crate) status: u16,
}

impl spool::Record for Record {
    fn at(&self) -> u64 {
        self.at.as_nanos()
    }

    fn to_bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&self.at.as_nanos().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.caller.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.status.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: [u8; RECORD]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, ..] = bytes;
        Self {
            at: Timestamp::from_nanos(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            caller: u32::from_le_bytes([i, j, k, l]),
            status: u16::from_le_bytes([m, n]),
        }
    }
}

/// One policy's part of a replay.
pub(crate) struct Side {
    pub(crate) ledger: Ledger,
    /// What each caller is charged; `None` on no route of this policy.
    pub(crate) plans: Vec<Option<PlanId>>,
    exempt: u64,
    unmatched: u64,
}

/// Logs, and the policies that they are decided by.
///
/// Memory grows with the distinct callers, keys and routes, and not with the lines: requests are put in order sixteen MiB at
/// a time ([`Options::held`]), through a temporary file if there are more.
pub struct Replay<'r> {
    pub(crate) judges: Vec<Judge<'r>>,
    pub(crate) sides: Vec<Side>,
    pub(crate) options: Options,
    pub(crate) spool: Spool<Record>,
    /// The number of each caller's client, and their names; none if there is nothing to compare.
    pub(crate) clients: Vec<u32>,
    pub(crate) names: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
    callers: Callers,
    matched: Vec<Matched>,
    pub(crate) seen: Report,
}

impl<'r> Replay<'r> {
    /// With nothing read yet.
    #[must_use]
    pub fn new(rules: &'r dyn Rules, options: Options) -> Self {
        Self {
            judges: vec![Judge::new(rules)],
            sides: vec![Side::new(rules)],
            options,
            spool: Spool::new(options.held),
            clients: Vec::new(),
            names: Vec::new(),
            ids: HashMap::new(),
            callers: Callers::default(),
            matched: Vec::new(),
            seen: Report::default(),
        }
    }

    /// With another policy to compare the first one to; before anything is read.
    #[must_use]
    pub fn compared_to(mut self, rules: &'r dyn Rules) -> Self {
        self.judges.push(Judge::new(rules));
        self.sides.push(Side::new(rules));
        self
    }

    /// Reads a log of any format, and shows each entry to `beside`, in the order of the log. Requests of one instant are decided
    /// in the order in which they are read.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] if the log cannot be read on, [`Error::Spool`].
    pub fn read(&mut self, name: Option<&str>, log: impl BufRead, mut beside: impl FnMut(&Entry<'_>)) -> Result<()> {
        let mut lines = Lines::new(log);
        let mut reader = Reader::default();
        let mut file = FileReport::default();
        let mut shown = 0;
        loop {
            let line = match lines.next() {
                Ok(None) => break,
                Ok(Some(line)) => line,
                Err(source) => {
                    let log = name.unwrap_or("the log").to_owned();
                    return Err(Error::Read { log, line: lines.number(), source });
                }
            };
            match entry(&mut reader, line) {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    file.requests += 1;
                    beside(&entry);
                    self.entry(&entry)?;
                }
                Err(error) => {
                    file.skipped += 1;
                    if shown < self.options.malformed {
                        shown += 1;
                        let file = name.map(str::to_owned);
                        self.seen.malformed.push(MalformedLine::new(file, line.number, &error, line.text));
                    }
                }
            }
        }
        self.seen.requests += file.requests;
        self.seen.skipped += file.skipped;
        if let Some(name) = name {
            self.seen.files.push(FileReport { name: name.to_owned(), format: reader.format(), ..file });
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<()> {
        let seen = &mut self.seen;
        seen.first = Some(seen.first.map_or(entry.time, |first| first.min(entry.time)));
        seen.last = Some(seen.last.map_or(entry.time, |last| last.max(entry.time)));
        if let Some(waf) = &entry.waf {
            seen.waf.get_or_insert_default().add(waf);
            if waf.stopped() {
                return Ok(());
            }
        }
        self.matched.clear();
        for (judge, side) in self.judges.iter().zip(&mut self.sides) {
            // What is no HTTP request never reached a limiter.
            let request = entry.request.as_ref();
            let matched = request.map(|request| judge.rules.matched(&request.method, request.path()));
            let matched = matched.unwrap_or(Matched::Unmatched);
            side.exempt += u64::from(matched == Matched::Exempt);
            side.unmatched += u64::from(matched == Matched::Unmatched);
            self.matched.push(matched);
        }
        if !self.matched.iter().any(|matched| matches!(matched, Matched::Route(_))) {
            return Ok(());
        }
        let (caller, is_new) = self.callers.number(&self.judges, &self.matched, entry);
        if is_new {
            self.meet(entry);
        }
        Ok(self.spool.push(Record { at: entry.time, caller, status: entry.status })?)
    }

    /// Asks the rules what a new caller is charged.
    fn meet(&mut self, entry: &Entry<'_>) {
        for ((judge, side), matched) in self.judges.iter().zip(&mut self.sides).zip(&self.matched) {
            let plan = match matched {
                Matched::Route(route) => {
                    let resolved = judge.resolve(*route, entry);
                    Some(side.ledger.plan(&resolved, |limit| judge.rules.counts_by_answer(limit)))
                }
                _ => None,
            };
            side.plans.push(plan);
        }
        if let [judge, _, ..] = self.judges.as_slice() {
            let name = judge.client(entry);
            let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            let client = *self.ids.entry(name.clone().into()).or_insert(next);
            if client == next {
                self.names.push(name.into());
            }
            self.clients.push(client);
        }
    }

    /// What is known of all requests before they are decided by a policy.
    pub(crate) fn counted(&self, side: &Side) -> Report {
        Report { exempt: side.exempt, unmatched: side.unmatched, ..self.seen.clone() }
    }

    /// What AWS WAF did, if a log of it was read.
    #[must_use]
    pub fn waf(&self) -> Option<&WafReport> {
        self.seen.waf.as_ref()
    }
}

impl Side {
    fn new(rules: &dyn Rules) -> Self {
        Self { ledger: Ledger::new(rules.limits()), plans: Vec::new(), exempt: 0, unmatched: 0 }
    }
}

fn entry<'a>(reader: &'a mut Reader, line: Line<'a>) -> std::result::Result<Option<Entry<'a>>, LineError> {
    if line.text.len() > MAX_LINE && !line.text.trim_ascii().is_empty() {
        return Err(LineError { column: MAX_LINE + 1, flaw: Flaw::TooLong(MAX_LINE) });
    }
    reader.line(line.text)
}
