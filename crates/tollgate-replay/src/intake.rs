//! A log read once into records of 16 bytes, so that a day of traffic fits into memory and can be put in time order.
//!
//! Invariant: every line is counted exactly once, as blank, malformed, or one of exempt, unmatched and recorded; no
//! line stops a replay, whatever is in it and however long it is.

use crate::combined::{Entry, Flaw, LineError};
use crate::error::{Error, Result};
use crate::ledger::{Ledger, PlanId, Record};
use crate::report::{MalformedLine, Report};
use crate::rules::{Matched, Rules};
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use tollgate_policy::Network;

/// Longest line that is read, in bytes: 64 KiB. Servers take request lines and headers of 8 KiB.
const MAX_LINE: usize = 64 * 1024;

/// Bytes between two calls of the progress callback.
const PROGRESS_STEP: u64 = 256 * 1024;

/// How much a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Keys listed for each limit as denied most often. 10 by default.
    pub top_denied: usize,
    /// Malformed lines shown, the first of the log. 10 by default.
    pub malformed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { top_denied: 10, malformed: 10 }
    }
}

/// Decides every request of `log`, in the combined or common log format, by `rules`, in the order of their times.
/// `progress` is told the bytes read so far, now and then and at the end.
///
/// Memory grows by 16 bytes a request and by the distinct routes, callers and keys.
///
/// # Errors
///
/// [`Error::Read`] if `log` cannot be read on.
pub fn replay(
    log: impl BufRead,
    rules: &(impl Rules + ?Sized),
    options: &Options,
    progress: impl FnMut(u64),
) -> Result<Report> {
    replay_beside(log, rules, options, progress, |_| ())
}

/// The same, and each entry is shown to `beside`, in the order of the log: for what else is to be made of one reading.
///
/// # Errors
///
/// As of [`replay`].
pub fn replay_beside(
    log: impl BufRead,
    rules: &(impl Rules + ?Sized),
    options: &Options,
    mut progress: impl FnMut(u64),
    mut beside: impl FnMut(&Entry<'_>),
) -> Result<Report> {
    let mut lines = Lines { log, text: Vec::new(), bytes: 0, number: 0 };
    let mut intake = Intake::new(rules, options);
    let mut told = 0;
    while let Some(line) = lines.next()? {
        intake.line(line, &mut beside);
        if lines.bytes - told >= PROGRESS_STEP {
            told = lines.bytes;
            progress(told);
        }
    }
    progress(lines.bytes);
    Ok(intake.report(options))
}

/// A line without its end, and its number, counted from 1.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: u64,
    text: &'a [u8],
}

/// The lines of a log. A line is kept up to [`MAX_LINE`] bytes and one; the rest of it is passed over.
struct Lines<R> {
    log: R,
    text: Vec<u8>,
    bytes: u64,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<Line<'_>>> {
        self.text.clear();
        self.number += 1;
        let taken = self.fill().map_err(|source| Error::Read { line: self.number, source })?;
        self.bytes += taken;
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        Ok((taken > 0).then_some(Line { number: self.number, text }))
    }

    /// Reads one line into `text` and returns how many bytes of the log it took.
    fn fill(&mut self) -> io::Result<u64> {
        let most = MAX_LINE as u64 + 1;
        let kept = self.log.by_ref().take(most).read_until(b'\n', &mut self.text)?;
        let passed = if kept > MAX_LINE && !self.text.ends_with(b"\n") { self.log.skip_until(b'\n')? } else { 0 };
        Ok((kept + passed) as u64)
    }
}

/// Who asks for which route. Users are kept once each and named by number.
type Caller = (usize, Option<Network>, Option<usize>);

/// What has been read so far.
struct Intake<'r, R: ?Sized> {
    rules: &'r R,
    ipv6_prefix: u8,
    report: Report,
    malformed_shown: usize,
    records: Vec<Record>,
    ledger: Ledger,
    users: HashMap<Box<str>, usize>,
    plans: HashMap<Caller, PlanId>,
}

impl<'r, R: Rules + ?Sized> Intake<'r, R> {
    fn new(rules: &'r R, options: &Options) -> Self {
        Self {
            rules,
            ipv6_prefix: rules.ipv6_prefix(),
            report: Report::default(),
            malformed_shown: options.malformed,
            records: Vec::new(),
            ledger: Ledger::new(rules.limits()),
            users: HashMap::new(),
            plans: HashMap::new(),
        }
    }

    fn line(&mut self, line: Line<'_>, beside: &mut impl FnMut(&Entry<'_>)) {
        if line.text.trim_ascii().is_empty() {
            return;
        }
        let entry = if line.text.len() > MAX_LINE {
            Err(LineError { column: MAX_LINE + 1, flaw: Flaw::TooLong(MAX_LINE) })
        } else {
            Entry::parse(line.text)
        };
        match entry {
            Ok(entry) => {
                beside(&entry);
                self.entry(&entry);
            }
            Err(error) => {
                self.report.skipped += 1;
                if self.report.malformed.len() < self.malformed_shown {
                    self.report.malformed.push(MalformedLine::new(line.number, &error, line.text));
                }
            }
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        let report = &mut self.report;
        report.requests += 1;
        report.first = Some(report.first.map_or(entry.time, |first| first.min(entry.time)));
        report.last = Some(report.last.map_or(entry.time, |last| last.max(entry.time)));
        // What is no HTTP request never reached a limiter.
        let matched = entry.request.as_ref().map(|request| self.rules.matched(request.method, request.path()));
        match matched.unwrap_or(Matched::Unmatched) {
            Matched::Unmatched => report.unmatched += 1,
            Matched::Exempt => report.exempt += 1,
            Matched::Route(route) => {
                let plan = self.plan(route, entry);
                self.records.push(Record { at: entry.time, plan, status: entry.status });
            }
        }
    }

    /// The plan of this caller's requests on `route`; the rules are asked only the first time.
    fn plan(&mut self, route: usize, entry: &Entry<'_>) -> PlanId {
        let network = entry.client_ip.map(|address| Network::of(address, self.ipv6_prefix));
        let user = entry.user.as_deref().map(|user| self.user(user));
        let (rules, ledger) = (self.rules, &mut self.ledger);
        *self.plans.entry((route, network, user)).or_insert_with(|| {
            let value = |dimension: &str| match dimension {
                "client_ip" => network.map(|network| network.to_string()),
                "user" => entry.user.as_deref().map(str::to_owned),
                _ => None,
            };
            ledger.plan(rules.resolve(route, &value), |limit| rules.counts_by_answer(limit))
        })
    }

    fn user(&mut self, name: &str) -> usize {
        if let Some(user) = self.users.get(name) {
            return *user;
        }
        let user = self.users.len();
        self.users.insert(name.into(), user);
        user
    }

    fn report(mut self, options: &Options) -> Report {
        // Stable: lines of one second stay in the order in which the server finished them.
        self.records.sort_by_key(|record| record.at);
        for record in &self.records {
            self.ledger.decide(record, |limit| self.rules.answered(limit, record.status));
        }
        self.report.denied = self.ledger.denied();
        self.report.limits = self.ledger.into_limits(options.top_denied);
        self.report
    }
}
