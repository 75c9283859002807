//! What is told of a log: of the last denial as of an answer, and of all what they add up to.
//!
//! Invariant: a caller is said to have ignored waits only where the lines prove it: one who keeps each wait that he is told is denied
//! again only after it, so the waits of his denials add up to no more than the time between them and the last wait.

use super::Known;
use super::lines::Line;
use super::printable::printable;
use super::report::{Agreement, Confidence, Counts, Layer, Outcome, Report, Steps};
use super::terms::{self, Terms};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tollgate_policy::Limit;

/// A line's fields.
type Fields = Map<String, Value>;

/// What the denials of one key by one limit add up to.
#[derive(Debug, Clone, Copy)]
struct Told {
    denials: u64,
    first_ms: u64,
    last_ms: u64,
    waits_ms: u64,
    longest_ms: u64,
}

impl Told {
    /// Whether not all waits can have been kept, by one caller who asks one thing at a time.
    fn ignores(&self) -> bool {
        self.waits_ms > (self.last_ms - self.first_ms).saturating_add(self.longest_ms)
    }
}

/// The whole report.
///
/// # Errors
///
/// If there is neither a denial nor a failure among the lines.
pub(super) fn report(lines: &[Line], known: Known<'_>) -> Result<Report, String> {
    let mut counts = Counts { lines: lines.len() as u64, ..Counts::default() };
    let mut by_key: BTreeMap<(String, String), Told> = BTreeMap::new();
    let (mut last, mut failure): (Option<&Fields>, Option<&Fields>) = (None, None);
    for line in lines {
        match line {
            Line::Denial(fields) => {
                counts.denials += 1;
                counts.kept_back = counts.kept_back.saturating_add(number(fields, "kept_back").unwrap_or(0));
                *counts.by_limit.entry(name(fields, "limit").unwrap_or_default()).or_default() += 1;
                // Several processes' lines need not be in order.
                let is_later = |than: &Fields| number(fields, "store_time_ms") >= number(than, "store_time_ms");
                last = Some(last.filter(|last| !is_later(last)).unwrap_or(fields));
                add(&mut by_key, fields);
            }
            Line::Ours(fields) if ["WARN", "ERROR"].contains(&text(fields, "level").unwrap_or_default()) => {
                counts.failures += 1;
                failure = Some(fields);
            }
            Line::Ours(_) | Line::Metrics(_) | Line::Other => {}
        }
    }
    match (last, failure) {
        (Some(last), _) => Ok(denied(last, counts, &by_key, known)),
        (None, Some(failure)) => Ok(failed(failure, counts)),
        (None, None) => Err(
            "no line is a denial (`target` \"tollgate::denials\") or a failure; metrics count both, and do not say why"
                .to_owned(),
        ),
    }
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn name(fields: &Fields, name: &str) -> Option<String> {
    text(fields, name).map(printable)
}

fn number(fields: &Fields, name: &str) -> Option<u64> {
    fields.get(name).and_then(Value::as_u64)
}

fn add(by_key: &mut BTreeMap<(String, String), Told>, fields: &Fields) {
    let (Some(key), Some(limit)) = (name(fields, "key_ref"), name(fields, "limit")) else { return };
    let (Some(at), Some(wait)) = (number(fields, "store_time_ms"), number(fields, "retry_after_ms")) else { return };
    let told = by_key.entry((limit, key)).or_insert(Told {
        denials: 0,
        first_ms: at,
        last_ms: at,
        waits_ms: 0,
        longest_ms: 0,
    });
    told.denials += 1;
    told.first_ms = told.first_ms.min(at);
    told.last_ms = told.last_ms.max(at);
    told.waits_ms = told.waits_ms.saturating_add(wait);
    told.longest_ms = told.longest_ms.max(wait);
}

fn denied(fields: &Fields, counts: Counts, by_key: &BTreeMap<(String, String), Told>, known: Known<'_>) -> Report {
    let mut steps = Steps::new();
    let named = name(fields, "limit").unwrap_or_default();
    let limit = known.policy.and_then(|policy| policy.limit(&named).ok());
    let plan = name(fields, "plan").or_else(|| known.plan.map(str::to_owned));
    let never = text(fields, "outcome") == Some("never_fits");
    layer(&mut steps, fields);
    key(&mut steps, fields, limit, &named);
    algorithm(&mut steps, fields, limit, plan.as_deref());
    let wait_ms = number(fields, "retry_after_ms");
    retries(&mut steps, wait_ms, never, by_key);
    regions(&mut steps, fields);
    let policy = known.policy.map(|policy| {
        let mut differs = Vec::new();
        if limit.is_none() {
            differs.push(format!("the policy has no limit {named:?}"));
        }
        if let Some(revision) = number(fields, "revision").filter(|revision| *revision != policy.revision()) {
            differs.push(format!(
                "it was denied under revision {revision}, and this policy is revision {}",
                policy.revision()
            ));
        }
        differs.iter().for_each(|text| steps.found("key", text.as_str()));
        Agreement { revision: policy.revision(), agrees: Some(differs.is_empty()), differs }
    });
    action(&mut steps, fields, never, &named);
    Report {
        input: "log",
        status: None,
        layer: Layer::Application,
        by: "tollgate in the application".to_owned(),
        confidence: Confidence::Certain,
        outcome: if never { Outcome::NeverFits } else { Outcome::Limited },
        terms: limit.map(|limit| Terms::of(limit, plan.as_deref())),
        limit: Some(named),
        candidates: Vec::new(),
        quotas: Vec::new(),
        retry_after_s: wait_ms.map(|ms| ms.div_ceil(1000).max(1)),
        can_succeed: Some(!never),
        policy,
        counts: Some(counts),
        steps,
    }
}

fn layer(steps: &mut Steps, fields: &Fields) {
    let at = name(fields, "timestamp").unwrap_or_default();
    let route = name(fields, "route").map(|route| format!(" on {route}")).unwrap_or_default();
    steps.found("layer", format!("a denial that tollgate has logged at {at}{route}"));
    for (field, what) in
        [("apiRequestId", "the gateway's request"), ("requestId", "the invocation"), ("xrayTraceId", "the trace")]
    {
        if let Some(id) = name(fields, field) {
            steps.found("layer", format!("{what}: {id}"));
        }
    }
    let source = match text(fields, "source") {
        Some("table") => "the table said so",
        Some("cache") => "the process knew it, from what the table had said within the last second",
        Some("lease") => "a process had used up what it had taken ahead",
        Some("local") => "the table gave no answer: the process counted its share by itself",
        Some("open") => "the table gave no answer, and the cost never fits, whatever it would have said",
        _ => "it does not say who decided",
    };
    steps.found("layer", source);
}

fn key(steps: &mut Steps, fields: &Fields, limit: Option<&Limit>, named: &str) {
    let by = name(fields, "key")
        .map(|key| format!(", which counts this call by {}", key.replace(',', " and ")))
        .unwrap_or_default();
    steps.found("key", format!("the limit {named:?}{by}"));
    if let Some(also) = name(fields, "also") {
        steps.found("key", format!("also in the way: {}", also.replace(',', ", ")));
    }
    for dimension in ["tenant", "api_key"] {
        if let Some(value) = name(fields, dimension) {
            steps.found("key", format!("{dimension} {value}"));
        }
    }
    match name(fields, "key_ref") {
        Some(reference) => {
            steps.found("key", format!("key_ref {reference}: the same caller has the same one in all lines"));
            steps.look("key", "`tollgate inspect KEY`, with the functions' TOLLGATE_KEY_SECRETS, says `in logs:` of whom you think it is");
        }
        None => steps.look(
            "key",
            "there is no key_ref, since the function has no TOLLGATE_KEY_SECRETS: callers cannot be told apart",
        ),
    }
    if let Some(limit) = limit {
        let key = limit.key().iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(" and ");
        steps.found("key", format!("by the policy it counts by {key}"));
    }
    let dimensions = text(fields, "key").unwrap_or_default();
    terms::sharing(&dimensions.split(',').collect::<Vec<_>>()).into_iter().for_each(|text| steps.look("key", text));
}

fn algorithm(steps: &mut Steps, fields: &Fields, limit: Option<&Limit>, plan: Option<&str>) {
    match limit {
        Some(limit) => terms::algorithm(limit, plan).into_iter().for_each(|text| steps.found("algorithm", text)),
        None => steps.look("algorithm", "--policy, as it was in force then, tells the figures"),
    }
    let (cost, remaining) = (number(fields, "cost"), number(fields, "remaining"));
    if let (Some(cost), Some(remaining)) = (cost, remaining) {
        steps.found("algorithm", format!("the call cost {cost}, and {remaining} were left"));
    }
    match text(fields, "held") {
        Some("ban") => steps.found("algorithm", "the key is banned: no figures matter until that ends"),
        Some("override") => {
            steps.found("algorithm", "an override was in force for the key: its figures, and not the policy's")
        }
        Some("penalty") => {
            steps.found("algorithm", "the limit has locked the key, since it was denied before (`penalty`)")
        }
        _ => {}
    }
}

fn retries(steps: &mut Steps, wait_ms: Option<u64>, never: bool, by_key: &BTreeMap<(String, String), Told>) {
    match wait_ms {
        Some(ms) => {
            let seconds = ms.div_ceil(1000).max(1);
            steps.found(
                "retries",
                format!("the client was to wait {ms} ms, which is Retry-After: {seconds} or more (`retry_jitter`)"),
            );
        }
        None if never => steps.found("retries", "the same call is refused again however long its client waits"),
        None => steps.found("retries", "the line has no wait"),
    }
    let ignoring: Vec<_> = by_key.iter().filter(|(_, told)| told.ignores()).collect();
    for ((limit, key), told) in ignoring.iter().take(10) {
        let over = told.last_ms - told.first_ms;
        let (denials, waits) = (told.denials, told.waits_ms);
        let text = format!(
            "{key} on {limit}: {denials} denials within {over} ms, told to wait {waits} ms in all, so not all waits were kept"
        );
        steps.found("retries", text);
    }
    if ignoring.is_empty() {
        let text = if by_key.values().any(|told| told.denials > 1) {
            "no key was denied again sooner than it had been told"
        } else {
            "no key has two denials here to compare"
        };
        steps.found("retries", text);
    } else {
        steps.look("retries", "one client that does not wait, or several that share the key and each count for themselves: look at the client's backoff first");
    }
}

fn regions(steps: &mut Steps, fields: &Fields) {
    if let Some(ms) = number(fields, "store_time_ms") {
        steps
            .found("regions", format!("decided at {ms} ms since 1970 by the table's clock, which all processes go by"));
    }
    steps.look(
        "regions",
        "lines of other Regions are of other tables, which count apart; `ClockSkew` and `LimiterDegraded` at that time",
    );
}

fn action(steps: &mut Steps, fields: &Fields, never: bool, named: &str) {
    if never {
        steps.look(
            "action",
            "split the call, or raise the burst: nothing that costs more than the burst is ever admitted",
        );
        return;
    }
    match text(fields, "held") {
        Some("ban") => steps.look("action", "`tollgate allow KEY` lifts a ban"),
        Some("penalty") => steps.look("action", "`tollgate reset KEY` lifts locks"),
        _ => steps.look("action", format!("for one caller `tollgate override KEY --limit {named} --rate … --for 2h`; for all another rate, burst or plan")),
    }
    steps.look("action", "the client: wait Retry-After with jitter, and keep an eye on `RateLimit`; the dashboard tells whether it is one caller or all");
}

/// Nothing was denied, but the limiter has failed.
fn failed(fields: &Fields, counts: Counts) -> Report {
    let mut steps = Steps::new();
    let (target, message) = (name(fields, "target").unwrap_or_default(), name(fields, "message").unwrap_or_default());
    steps.found("layer", format!("{target}: {message}"));
    if let Some(error) = name(fields, "error") {
        steps.found("layer", error);
    }
    steps.found("layer", "nobody was limited: the limiter, or what it needs, failed");
    steps.found(
        "key",
        name(fields, "route").map_or("no limit decided".to_owned(), |route| format!("no limit decided on {route}")),
    );
    steps.found(
        "algorithm",
        "`on_store_failure` decided: open lets pass, closed answers 503, local counts the process's share",
    );
    steps.found("retries", "a refused caller was told Retry-After: 1");
    steps.look(
        "regions",
        "whether it is one Region, one process (a cold start) or all: the alarms LimiterDegraded and Unavailable",
    );
    steps.look("action", "the table's throttling, permissions and DeadlineMs; `tollgate table describe`");
    Report {
        input: "log",
        status: None,
        layer: Layer::Application,
        by: "tollgate in the application, which failed".to_owned(),
        confidence: Confidence::Certain,
        outcome: Outcome::Unavailable,
        limit: None,
        terms: None,
        candidates: Vec::new(),
        quotas: Vec::new(),
        retry_after_s: None,
        can_succeed: Some(true),
        policy: None,
        counts: Some(counts),
        steps,
    }
}
