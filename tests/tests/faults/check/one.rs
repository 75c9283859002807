//! One call: what was sent for it had a reason, what it was told is what the table did, and what it was told without the table follows from
//! a fault and from the limits' rules.

use super::{Part, Seen};
use crate::caller::{Answer, Told};
use crate::fault::Fault;
use crate::lane::{Record, is_slow};
use crate::limits::{Algorithm, Rule};
use crate::proxy::{Did, Kind, Request};
use crate::schedule::Wanted;

/// More than a decision sends for one item, whatever happens.
const MOST_REQUESTS: usize = 40;

pub fn check(record: &Record, seen: &Seen<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for part in &seen.items {
        wrong.extend(sending(part));
        wrong.extend(charged(seen, part));
        wrong.extend(reason(seen, part));
    }
    wrong.extend(denial(record, seen));
    wrong
}

/// A request is followed by another only if it changed nothing, and its sender was told so.
fn sending(part: &Part<'_>) -> Vec<String> {
    let follows = |r: &Request| !r.is_lost() && (r.kind == Kind::Read || r.fault.throttles() || r.did == Did::Refused);
    // What takes an entry out does so once, however often it is sent.
    let is_idempotent = part.wanted.iter().all(|(_, wanted)| wanted.limit.algorithm == Algorithm::Log);
    let gives = if is_idempotent { &[] } else { &part.gives[..] };
    let has_reason =
        |requests: &[&Request]| requests.split_last().is_none_or(|(_, rest)| rest.iter().all(|r| follows(r)));
    let (charged, given_back) = part.applied();
    let count = part.takes.len() + part.gives.len();
    let wrong = [
        (
            !has_reason(&part.takes) || !has_reason(gives),
            "a request was sent again after one that may have been applied".to_owned(),
        ),
        (charged > 1 || given_back > charged, format!("charged {charged} times, given back {given_back} times")),
        (count > MOST_REQUESTS, format!("{count} requests for one decision")),
    ];
    wrong.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, what)| format!("{}: {what}", part.item)).collect()
}

/// What the answers say of an item; `None` if there are none.
fn answers<'s>(seen: &'s Seen<'_>, part: &Part<'_>) -> Option<Vec<&'s Answer>> {
    match &seen.call.told {
        Told::Answers(answers) => Some(part.wanted.iter().map(|(place, _)| &answers[*place]).collect()),
        Told::Unavailable => None,
    }
}

/// Who was admitted by the table has been charged, once; whoever was not has not been, as far as a reply could tell.
fn charged(seen: &Seen<'_>, part: &Part<'_>) -> Option<String> {
    let (charged, given_back) = part.applied();
    let is_applied = |r: &&Request| r.is_write() && r.did == Did::Applied;
    let is_admitted = answers(seen, part).is_some_and(|answers| answers[0].allowed && answers[0].source == "table");
    if is_admitted {
        let is_told = part.takes.iter().copied().filter(is_applied).any(|r| !r.is_lost());
        return (!is_told || given_back > 0).then(|| format!("{}: admitted, and not charged", part.item));
    }
    let unknown = part.takes.iter().copied().filter(is_applied).any(|r| r.is_lost() || seen.is_late());
    let lost = seen.call.counted.refunds_lost > 0;
    let kept = lost && (part.is_kept() || seen.is_late() || part.gives.last().is_some_and(|r| r.did == Did::Refused));
    let is_wrong = charged > given_back && !unknown && !kept;
    is_wrong.then(|| format!("{}: not admitted, and charged, though every reply arrived", part.item))
}

/// What is told without the table has a fault behind it, and is what the limits' rules say.
fn reason(seen: &Seen<'_>, part: &Part<'_>) -> Option<String> {
    let counted = &seen.call.counted;
    let shared = seen.is_atomic();
    let failed = |part: &Part<'_>| part.has_failed();
    let has_failed = if shared { seen.items.iter().any(failed) } else { failed(part) };
    let elsewhere = counted.suspended + counted.contended > 0 || seen.call.planned.cut.is_some() || seen.is_late();
    let strictest = part.wanted.iter().map(|(_, wanted)| wanted.limit.rule).max_by_key(|rule| match rule {
        Rule::Open => 0,
        Rule::Local => 1,
        Rule::Closed => 2,
    })?;
    let Some(answers) = answers(seen, part) else {
        let is_closed = seen.call.planned.wanted.iter().any(|wanted| wanted.limit.rule == Rule::Closed);
        let has_reason = elsewhere || seen.items.iter().any(failed);
        return match (has_reason, is_closed || counted.contended > 0) {
            (false, _) => Some("no decision, though nothing had failed".to_owned()),
            (_, false) => Some("no decision, though no limit is closed".to_owned()),
            (true, true) => None,
        };
    };
    let (allowed, source) = (answers[0].allowed, answers[0].source.as_str());
    if answers.iter().any(|other| other.source != source || other.allowed != allowed) {
        return Some(format!("{}: the limits of one item are told differently", part.item));
    }
    if !["table", "cache"].contains(&source) && !has_failed && !elsewhere {
        return Some(format!("{}: told by {source}, though nothing had failed", part.item));
    }
    let is_hot = part.takes.iter().any(|r| r.fault == Fault::HotKey);
    let may_pass = match source {
        "table" => true,
        "local" => strictest == Rule::Local || strictest == Rule::Open && is_hot,
        "open" => strictest == Rule::Open,
        _ => false,
    };
    (allowed && !may_pass).then(|| format!("{}: admitted by {source} against the limit's rule", part.item))
}

/// Whoever the table denied found the tokens taken.
fn denial(record: &Record, seen: &Seen<'_>) -> Option<String> {
    let Told::Answers(answers) = &seen.call.told else { return None };
    let denies = |answer: &Answer| answer.in_the_way && ["table", "cache"].contains(&answer.source.as_str());
    let denied = answers.iter().zip(&seen.call.planned.wanted).filter(|(answer, _)| denies(answer));
    for (_, wanted) in denied.filter(|(_, wanted)| is_slow(wanted.limit.name)) {
        let taken = taken_by(record, wanted, seen.call.received);
        if taken + wanted.cost <= wanted.limit.most {
            return Some(format!("{} denied, though at most {taken} were ever taken", wanted.limit.name));
        }
    }
    None
}

/// All that was ever charged to a limit by requests that came before an instant, given back or not.
fn taken_by(record: &Record, of: &Wanted, before: u64) -> u64 {
    let item = of.item();
    let mut taken = 0;
    for (requests, calls) in record.requests.iter().zip(&record.calls) {
        let charges = requests.iter().filter(|r| r.is_write() && r.kind != Kind::GiveBack && r.did == Did::Applied);
        for request in charges.filter(|r| r.arrived < before && r.items.contains(&item)) {
            let wanted = request.call.iter().flat_map(|call| &calls[*call].planned.wanted);
            taken += wanted.filter(|w| w.limit == of.limit && w.key == of.key).map(|w| w.cost).sum::<u64>();
        }
    }
    taken
}
