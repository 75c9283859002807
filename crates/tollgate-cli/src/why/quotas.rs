//! What an answer says of quotas and waits: `RateLimit`, `RateLimit-Policy`, their older kin, and `Retry-After`.
//!
//! Invariant: what does not parse is none, and no figure is guessed.

use super::message::Message;
use super::printable::printable;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde::Serialize;
use serde_json::Value;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

/// One quota as an answer tells it (draft-ietf-httpapi-ratelimit-headers-11, sections 3 and 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Quota {
    /// Its name.
    pub(super) name: String,
    /// Units in a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) q: Option<u64>,
    /// The window, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) w: Option<u64>,
    /// Units left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) r: Option<u64>,
    /// Seconds: to the next unit where it is ours, to the window's end where it is express-rate-limit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) t: Option<u64>,
}

/// The quotas of the two fields, in the order in which they are named first.
pub(super) fn quotas(message: &Message) -> Vec<Quota> {
    let mut quotas: Vec<Quota> = Vec::new();
    for field in ["ratelimit-policy", "ratelimit"] {
        let Some(list) = message.field(field).and_then(|text| Parser::new(&text).parse::<List>().ok()) else {
            continue;
        };
        for entry in &list {
            let ListEntry::Item(Item { bare_item: BareItem::String(name), params }) = entry else { continue };
            let figure = |key: &str| params.iter().find(|(known, _)| known.as_str() == key).and_then(|(_, v)| whole(v));
            let name = printable(name.as_str());
            let place = quotas.iter().position(|known| known.name == name).unwrap_or(quotas.len());
            if place == quotas.len() {
                quotas.push(Quota { name, q: None, w: None, r: None, t: None });
            }
            let quota = &mut quotas[place];
            quota.q = figure("q").or(quota.q);
            quota.w = figure("w").or(quota.w);
            quota.r = figure("r").or(quota.r);
            quota.t = figure("t").or(quota.t);
        }
    }
    quotas
}

fn whole(item: &BareItem) -> Option<u64> {
    match item {
        BareItem::Integer(n) => u64::try_from(i64::from(*n)).ok(),
        _ => None,
    }
}

/// Limit, what is left and the reset, of the fields from before the lists: each as it is written.
pub(super) fn older(message: &Message) -> Vec<String> {
    let families = ["x-ratelimit-", "x-rate-limit-", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let names = message.names().filter(|name| families.iter().any(|family| name.starts_with(family)));
    let mut told: Vec<String> =
        names.filter_map(|name| Some(format!("{}: {}", printable(name), printable(&message.field(name)?)))).collect();
    // Draft 7: `RateLimit: limit=5, remaining=0, reset=60`.
    let dictionary = message.field("ratelimit").and_then(|text| Parser::new(&text).parse::<Dictionary>().ok());
    if let Some(dictionary) = dictionary.filter(|dictionary| dictionary.contains_key("remaining")) {
        let figures = dictionary.iter().filter_map(|(name, entry)| match entry {
            ListEntry::Item(item) => Some(format!("{}={}", name.as_str(), whole(&item.bare_item)?)),
            ListEntry::InnerList(_) => None,
        });
        told.push(format!("ratelimit: {}", figures.collect::<Vec<_>>().join(", ")));
    }
    told.sort();
    told.dedup();
    told
}

/// What an answer asks its caller to wait.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wait {
    /// Seconds.
    pub(super) seconds: Option<u64>,
    /// The field as it is written.
    pub(super) told: Option<String>,
    /// When that is over (RFC 3339), where the answer says when it was given.
    pub(super) until: Option<String>,
}

impl Wait {
    /// `Retry-After` (RFC 9110 section 10.2.3), seconds or a date; else the body's `retryAfter`, or the wait of a decision.
    pub(super) fn of(message: &Message) -> Self {
        let told = message.field("retry-after");
        let date = |text: &str| DateTime::from_str(text, Format::HttpDate).ok();
        let given = message.field("date").and_then(|text| date(&text));
        let by_date = told.as_deref().and_then(date);
        let seconds = match (&told, by_date, given) {
            (Some(text), None, _) => text.trim().parse().ok(),
            (Some(_), Some(until), Some(given)) => u64::try_from(until.secs() - given.secs()).ok(),
            _ => None,
        };
        let seconds = seconds.or_else(|| message.json()?.get("retryAfter").and_then(Value::as_u64));
        let decided = || message.decided()?.get("retry_after_ms")?.as_u64().map(|ms| ms.div_ceil(1000).max(1));
        let seconds = seconds.or_else(decided);
        let after = |from: DateTime| {
            let secs = from.secs().checked_add(i64::try_from(seconds?).ok()?)?;
            Some(DateTime::from_secs(secs))
        };
        let until = by_date.or_else(|| after(given?)).and_then(|until| until.fmt(Format::DateTime).ok());
        Self { seconds, told: told.as_deref().map(printable), until }
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Quota, Wait, older, quotas};

    fn quota(name: &str, [q, w, r, t]: [Option<u64>; 4]) -> Quota {
        Quota { name: name.to_owned(), q, w, r, t }
    }

    #[test]
    fn both_fields_are_one_list_of_quotas() {
        let ours = "ratelimit-policy: \"orders\";q=50;w=3600, \"tenant-orders\";q=1000;w=3600\n\
                    ratelimit: \"orders\";r=0;t=72, \"tenant-orders\";r=950;t=4";
        let some = |figures: [u64; 4]| figures.map(Some);
        let expected = [quota("orders", some([50, 3600, 0, 72])), quota("tenant-orders", some([1000, 3600, 950, 4]))];
        assert_eq!(quotas(&Message::read(ours)), expected);
        // As express-rate-limit 8 writes it: a partition key beside, blanks between.
        let draft_8 = "ratelimit-policy: \"5-in-1min\"; q=5; w=60; pk=:YTg1OGE=:\nratelimit: \"5-in-1min\"; r=0; t=60";
        assert_eq!(quotas(&Message::read(draft_8)), [quota("5-in-1min", some([5, 60, 0, 60]))]);
        for broken in
            ["ratelimit: \"orders\";r=-1", "ratelimit: \"orders", "ratelimit: 5;w=60", "ratelimit: \"a\";r=?1"]
        {
            assert!(quotas(&Message::read(broken)).iter().all(|q| q.r.is_none()), "{broken}");
        }
    }

    #[test]
    fn older_fields_are_told_as_they_are() {
        let read = |text| older(&Message::read(text));
        assert_eq!(read("X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0").len(), 2);
        assert_eq!(read("RateLimit: limit=5, remaining=0, reset=60"), ["ratelimit: limit=5, remaining=0, reset=60"]);
        assert!(read("RateLimit: \"orders\";r=0;t=72").is_empty());
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let read = |text| Wait::of(&Message::read(text));
        let by_seconds = read("Date: Tue, 01 Dec 2026 02:00:00 GMT\nRetry-After: 72");
        assert_eq!((by_seconds.seconds, by_seconds.until.as_deref()), (Some(72), Some("2026-12-01T02:01:12Z")));
        let by_date = read("Date: Tue, 01 Dec 2026 02:00:00 GMT\nRetry-After: Tue, 01 Dec 2026 02:01:12 GMT");
        assert_eq!((by_date.seconds, by_date.until), (by_seconds.seconds, by_seconds.until));
        assert_eq!(read("Retry-After: soon\nServer: x").seconds, None);
        assert_eq!(read("Retry-After: 18446744073709551615\nDate: Tue, 01 Dec 2026 02:00:00 GMT").until, None);
        assert_eq!(read("{\"retryAfter\":7}").seconds, Some(7));
    }
}
