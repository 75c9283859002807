//! What a policy says of a limit, in figures and in words.

use serde::Serialize;
use std::time::Duration;
use tollgate_policy::{Algorithm, Figures, Limit, Policy};

/// A limit's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Terms {
    /// What it counts by, as the policy writes it.
    pub(super) key: Vec<String>,
    /// The algorithm.
    pub(super) algorithm: &'static str,
    /// The rate as the policy writes it.
    pub(super) rate: String,
    /// Most at once, of a bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<u64>,
    /// The period in seconds, rounded up.
    pub(super) period_s: u64,
    /// Whose figures these are; `None`: of whoever has no plan with figures of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<String>,
}

impl Terms {
    pub(super) fn of(limit: &Limit, plan: Option<&str>) -> Self {
        let figures = limit.figures(plan);
        let has_own = |plan: &&str| limit.plans().any(|(name, _)| name == *plan);
        Self {
            key: limit.key().iter().map(ToString::to_string).collect(),
            algorithm: limit.algorithm().as_str(),
            rate: figures.rate().to_owned(),
            burst: figures.core().token_bucket().map(|_| figures.core().burst()),
            period_s: seconds(figures.period()),
            plan: plan.filter(has_own).map(str::to_owned),
        }
    }
}

/// Rounded up, as answers tell them.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// Each set of figures that a limit has, and for whom.
pub(super) fn every(limit: &Limit) -> Vec<(String, &Figures)> {
    let base = ("where the plan has none of its own".to_owned(), limit.figures(None));
    std::iter::once(base).chain(limit.plans().map(|(plan, figures)| (format!("on plan {plan}"), figures))).collect()
}

/// The algorithm and its unit.
pub(super) fn algorithm(limit: &Limit, plan: Option<&str>) -> Vec<String> {
    let figures = limit.figures(plan);
    let (rate, n, burst) = (figures.rate(), figures.n(), figures.core().burst());
    match limit.algorithm() {
        Algorithm::TokenBucket => {
            let interval = figures.period().as_secs_f64() / u64_to_f64(n);
            let short = if burst < n {
                format!("; {n} spread evenly over the period pass, {} at once do not", burst.saturating_add(1))
            } else {
                String::new()
            };
            vec![
                format!("token bucket, {rate}: {burst} units at once, then one each {interval:.3} s"),
                format!("an average below {rate} is denied all the same while the burst of {burst} is used up{short}"),
            ]
        }
        Algorithm::FixedWindow => vec![format!(
            "fixed window, {rate}: a count that starts anew with each period since 1970; at a boundary twice as many can pass"
        )],
        Algorithm::Quota(zone) => vec![format!(
            "quota, {rate}: a count that starts anew with the calendar of {}, so the wait can be as long as the period",
            zone.name()
        )],
        Algorithm::SlidingWindow => vec![format!(
            "sliding window, {rate}: what the last period has counted, the part of the window before it taken for evenly spread"
        )],
        Algorithm::SlidingLog => {
            vec![format!("sliding log, {rate}: every call of the last period counts, each with its instant")]
        }
        Algorithm::Pacer { delay } => vec![format!(
            "pacer, {rate}: calls are told when they may go, {burst} ahead of their time at most, the first {delay} at once"
        )],
        _ => vec![format!("{}, {rate}", limit.algorithm().as_str())],
    }
}

#[allow(clippy::cast_precision_loss, reason = "shown with three places")]
fn u64_to_f64(n: u64) -> f64 {
    n as f64
}

/// What it means that these dimensions are counted by: who shares a key without knowing.
pub(super) fn sharing(dimensions: &[&str]) -> Vec<String> {
    let about = |dimension: &&str| {
        let of = |text: &str| Some(text.to_owned());
        match *dimension {
            "client_ip" => of(
                "by address: an office, a carrier's NAT or a proxy in front is one caller; count by user or API key once \
                authenticated, and see `tollgate explain --source-ip` for what the policy trusts",
            ),
            "api_key" => of(
                "by API key: all services that share the key share its units, so the rate of one of them is not the sum",
            ),
            "tenant" => {
                of("by tenant: all its users and services together; a batch job of one leaves nothing to the others")
            }
            "everyone" => of("one bucket for everybody: somebody else's calls can use it up"),
            "user" => of("by user: all devices, tabs and jobs that sign in as the same user together"),
            _ => None,
        }
    };
    dimensions.iter().filter_map(about).collect()
}

/// What a call on a route costs on a limit, and whether it can ever be admitted.
pub(super) fn cost(
    policy: &Policy,
    route: Option<(&str, &str)>,
    limit: &Limit,
    plan: Option<&str>,
) -> Option<(u64, bool)> {
    let (method, path) = route?;
    let matched = policy.route(method, path)?;
    let charge = matched.route.charges().iter().find(|charge| charge.limit == *limit.name())?;
    Some((charge.cost, charge.cost <= limit.figures(plan).core().burst()))
}
