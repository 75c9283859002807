//! What is told of an answer: the layer, and by the policy the limit, its key and figures, the wait, and what to change.

use super::Known;
use super::advice;
use super::layer::{self, Verdict};
use super::message::Message;
use super::printable::printable;
use super::quotas::{self, Quota, Wait};
use super::report::{Agreement, Layer, Outcome, Report, Steps};
use super::terms::{self, Terms};
use serde_json::Value;
use tollgate_policy::{Limit, Policy};

/// The whole report.
pub(super) fn report(message: &Message, known: Known<'_>) -> Report {
    let verdict = layer::of(message, known.policy);
    let mut asked = Asked {
        message,
        known,
        quotas: quotas::quotas(message),
        wait: Wait::of(message),
        steps: Steps::new(),
        named: named(message),
        verdict,
    };
    if message.before > 0 {
        asked.steps.found("layer", format!("of {} answers in a row, the last", message.before + 1));
    }
    asked.layer();
    let limit = asked.limit();
    let candidates = asked.key(limit);
    asked.algorithm(limit);
    let can_succeed = asked.retries(limit);
    asked.regions();
    let policy = asked.agreement(limit);
    advice::add(&mut asked.steps, &asked.verdict, limit);
    let Asked { quotas, wait, steps, named, verdict, .. } = asked;
    Report {
        input: "response",
        status: message.status.or_else(|| status_of_body(message)),
        layer: verdict.layer,
        by: verdict.by,
        confidence: verdict.confidence,
        outcome: verdict.outcome,
        limit: named,
        terms: limit.map(|limit| Terms::of(limit, known.plan)),
        candidates,
        quotas,
        retry_after_s: wait.seconds,
        can_succeed,
        policy,
        counts: None,
        steps,
    }
}

/// RFC 9457 section 3.1.2.
fn status_of_body(message: &Message) -> Option<u16> {
    message.json()?.get("status")?.as_u64().and_then(|status| u16::try_from(status).ok())
}

/// The limit that the body names.
fn named(message: &Message) -> Option<String> {
    match message.decided() {
        Some(decided) => decided.get("limit").and_then(Value::as_str).map(printable),
        None => message.text_of("limit").map(printable),
    }
}

struct Asked<'a> {
    message: &'a Message,
    known: Known<'a>,
    quotas: Vec<Quota>,
    wait: Wait,
    steps: Steps,
    named: Option<String>,
    verdict: Verdict,
}

impl<'a> Asked<'a> {
    fn is_of_application(&self) -> bool {
        matches!(self.verdict.layer, Layer::Application | Layer::Authorizer)
    }

    fn layer(&mut self) {
        let Verdict { evidence, look, layer, outcome, .. } = &self.verdict;
        evidence.iter().for_each(|text| self.steps.found("layer", text.as_str()));
        look.iter().for_each(|text| self.steps.look("layer", text.as_str()));
        match outcome {
            Outcome::Unavailable => {
                self.steps.found("layer", "nobody was limited: something that decides, or that it needs, failed")
            }
            Outcome::Passed => self.steps.found("layer", "nothing was refused"),
            _ => {}
        }
        if matches!(layer, Layer::Unknown | Layer::Elsewhere) {
            self.steps.look(
                "layer",
                "where your application calls others, it may have passed on their answer: look for the call in its log or trace",
            );
        }
        if self.message.field("content-encoding").is_some() && self.message.json().is_none() {
            self.steps.look("layer", "the body is compressed, and is not read: ask with `curl --compressed`");
        }
    }

    /// What the policy has under the name in the answer.
    fn limit(&self) -> Option<&'a Limit> {
        if !self.is_of_application() {
            return None;
        }
        self.known.policy?.limit(self.named.as_deref()?).ok()
    }

    /// Which limit, by whom it counts; the limits that it may be, where none is named.
    fn key(&mut self, limit: Option<&Limit>) -> Vec<String> {
        let scope: Vec<String> = match self.message.json().and_then(|body| body.get("scope")) {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(printable).collect(),
            _ => Vec::new(),
        };
        if let Some(name) = &self.named {
            let by = if scope.is_empty() {
                String::new()
            } else {
                format!(", which counts this call by {}", scope.join(" and "))
            };
            self.steps.found("key", format!("the limit {name:?}{by}"));
        }
        for quota in &self.quotas {
            let Quota { name, q, w, r, t } = quota;
            let figure = |name: &str, n: &Option<u64>| n.map(|n| format!("{name}={n}"));
            let figures = [figure("q", q), figure("w", w), figure("r", r), figure("t", t)];
            self.steps
                .found("key", format!("{name:?}: {}", figures.into_iter().flatten().collect::<Vec<_>>().join(" ")));
        }
        quotas::older(self.message).into_iter().for_each(|text| self.steps.found("key", text));
        let mut dimensions: Vec<&str> = scope.iter().map(String::as_str).collect();
        if dimensions.is_empty() {
            dimensions = limit.into_iter().flat_map(|limit| limit.key()).flat_map(|part| part.alternatives()).collect();
        }
        terms::sharing(&dimensions).into_iter().for_each(|text| self.steps.look("key", text));
        if let Some(limit) = limit {
            let key = limit.key().iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(" and ");
            self.steps.found("key", format!("by the policy it counts by {key}"));
            self.steps.look(
                "key",
                "`tollgate inspect KEY` tells what the table remembers of the caller, and bans and overrides",
            );
        }
        match self.verdict.outcome {
            Outcome::Limited | Outcome::NeverFits if self.is_of_application() && self.named.is_none() => self.hidden(),
            Outcome::Limited if self.verdict.layer == Layer::Waf => self.edge(),
            Outcome::Locked => {
                self.steps.found(
                    "key",
                    "guesses of a code or a factor, counted beside it for the account; no limit of the policy",
                );
                Vec::new()
            }
            Outcome::Cooldown | Outcome::SendingPaused => {
                self.steps.found(
                    "key",
                    "messages to this account or number, counted beside its code; no limit of the policy",
                );
                Vec::new()
            }
            _ => {
                if self.named.is_none() && self.quotas.is_empty() {
                    self.steps.look(
                        "key",
                        "the answer names no limit and no key: ask whoever answered, or look into his log",
                    );
                }
                Vec::new()
            }
        }
    }

    /// A limit with `headers = "hidden"`, or a ban.
    fn hidden(&mut self) -> Vec<String> {
        let text = if self.verdict.layer == Layer::Authorizer {
            "the authorizer's answer names no limit"
        } else {
            "no limit is named: it has `headers = \"hidden\"`, or the key is banned"
        };
        self.steps.found("key", text);
        self.steps.look(
            "key",
            "the log names it: `filter target = \"tollgate::denials\"` by `apiRequestId` or time, then `tollgate explain --log`",
        );
        let Some(policy) = self.known.policy else { return Vec::new() };
        let on_route = self.known.route.and_then(|(method, path)| policy.route(method, path));
        let is_on = |limit: &Limit| match &on_route {
            Some(matched) => matched.route.charges().iter().any(|charge| charge.limit == *limit.name()),
            None => {
                policy.routes().iter().any(|route| route.charges().iter().any(|charge| charge.limit == *limit.name()))
            }
        };
        let any = self.verdict.layer == Layer::Authorizer;
        let may_be = policy.limits().iter().filter(|limit| (any || limit.is_hidden()) && is_on(limit));
        let names: Vec<String> = may_be.map(|limit| limit.name().to_string()).collect();
        if !names.is_empty() {
            self.steps.found("key", format!("by the policy it may be {}", names.join(", ")));
        }
        if on_route.is_none() {
            self.steps.look("key", "--method and --path tell which of them are on the route");
        }
        names
    }

    fn edge(&mut self) -> Vec<String> {
        let rules = self.verdict.candidates.clone();
        self.steps.found("key", "WAF counts by address, or by the header that `forwarded` names");
        let edge = self.known.policy.and_then(Policy::edge);
        let told = edge.into_iter().flat_map(|edge| edge.rules.iter().map(move |rule| (edge, rule)));
        for (edge, rule) in told.filter(|(edge, rule)| rules.contains(&format!("{}{}", edge.prefix, rule.name))) {
            let paths = if rule.paths.is_empty() { "all paths".to_owned() } else { rule.paths.join(", ") };
            let text = format!(
                "{}{}: {}/{}s of one address, on {paths}",
                edge.prefix,
                rule.name,
                rule.limit,
                rule.window.as_secs()
            );
            self.steps.found("key", text);
        }
        terms::sharing(&["client_ip"]).into_iter().for_each(|text| self.steps.look("key", text));
        self.steps.look("key", "networks whose people share an address go into `[edge] egress`");
        rules
    }

    fn algorithm(&mut self, limit: Option<&Limit>) {
        let plan = self.known.plan;
        match (limit, self.verdict.layer) {
            (Some(limit), _) => {
                terms::algorithm(limit, plan).into_iter().for_each(|text| self.steps.found("algorithm", text));
                if let Some((cost, _)) = self.known.policy.and_then(|policy| terms::cost(policy, self.known.route, limit, plan)) {
                    self.steps.found("algorithm", format!("a call on this route costs {cost} of them"));
                }
                if plan.is_none() && limit.plans().next().is_some() {
                    let others: Vec<_> = limit.plans().map(|(plan, figures)| format!("{plan} {}", figures.rate())).collect();
                    self.steps.found("algorithm", format!("other figures by plan: {}; --plan tells by which", others.join(", ")));
                }
                if !self.quotas.is_empty() {
                    let text = "r: units left, 0 where the call did not fit; t: seconds to the next unit, which is less than the wait where a call costs more than one";
                    self.steps.found("algorithm", text);
                }
            }
            (None, Layer::Gateway) => self.steps.found(
                "algorithm",
                "a token bucket in requests a second with a burst, and of a usage plan perhaps a quota a day, week or month",
            ),
            (None, Layer::Waf) => {
                self.steps.found("algorithm", "requests in a window of 60 to 600 s, estimated again and again; no burst and no instant at which it ends")
            }
            (None, Layer::Lambda) => self.steps.found("algorithm", "invocations at once, not a second: requests a second times their duration"),
            _ => self.steps.look(
                "algorithm",
                "an average hides a burst: count your calls by the second, and compare with the unit that the limit is in",
            ),
        }
    }

    /// The wait, and whether the call can be admitted at all.
    fn retries(&mut self, limit: Option<&Limit>) -> Option<bool> {
        let Wait { seconds, told, until } = self.wait.clone();
        let plan = self.known.plan;
        let fits =
            limit.zip(self.known.policy).and_then(|(limit, policy)| terms::cost(policy, self.known.route, limit, plan));
        let is_refused = !matches!(self.verdict.outcome, Outcome::Passed);
        let can_succeed = match (self.verdict.outcome, fits) {
            (Outcome::NeverFits, _) | (_, Some((_, false))) => Some(false),
            (Outcome::Limited | Outcome::Cooldown | Outcome::SendingPaused, _) => Some(true),
            (Outcome::Locked, _) => Some(seconds.is_some()),
            (Outcome::Unavailable, _) => Some(true),
            (Outcome::Challenged | Outcome::Blocked, _) => Some(false),
            _ => None,
        };
        match (seconds, &told) {
            (Some(seconds), _) => {
                let until = until.map(|until| format!(", not before {until}")).unwrap_or_default();
                self.steps.found(
                    "retries",
                    format!("the client was to wait {seconds} s{until}, with jitter of its own on top"),
                );
            }
            (None, Some(told)) => {
                self.steps.found("retries", format!("Retry-After is neither seconds nor a date: {told:?}"))
            }
            (None, None) if is_refused => self
                .steps
                .found("retries", "there is no Retry-After: a client waits longer after each try, with jitter"),
            (None, None) => self.steps.found("retries", "there is nothing to wait for"),
        }
        if can_succeed == Some(false) {
            self.steps.found("retries", "the same call is refused again however long its client waits");
        }
        if is_refused {
            self.steps.look(
                "retries",
                "denied again before that time, it retries by itself or several clients share the key: look at its backoff first",
            );
            if self.is_of_application() {
                self.steps.look(
                    "retries",
                    "the saved query \"Who keeps ignoring Retry-After\" lists keys of which that is certain",
                );
            }
        }
        can_succeed
    }

    fn regions(&mut self) {
        match &self.verdict.apart {
            Some(text) => self.steps.found("regions", text.as_str()),
            None if self.is_of_application() => {
                self.steps.found("regions", "one table counts for all processes, by its own clock; each Region with a table of its own counts apart");
                self.steps.look("regions", "`LimiterDegraded`: without the table each process counts its share by itself; `ClockSkew`, `RevisionConflict`");
            }
            None => self.steps.look("regions", "whether its processes, nodes or Regions count apart: then the limit is as many times as high, and resets differ"),
        }
    }

    /// Whether the figures are those of the policy.
    fn agreement(&mut self, limit: Option<&Limit>) -> Option<Agreement> {
        let policy = self.known.policy.filter(|_| self.is_of_application())?;
        let mut differs = Vec::new();
        let mut compared = false;
        if let (Some(name), None) = (&self.named, limit) {
            compared = true;
            differs.push(format!("the policy has no limit {name:?}"));
        }
        for quota in &self.quotas {
            let Ok(limit) = policy.limit(&quota.name) else {
                compared = true;
                differs.push(format!("the policy has no limit {:?}", quota.name));
                continue;
            };
            let (Some(q), Some(w)) = (quota.q, quota.w) else { continue };
            compared = true;
            let every = terms::every(limit);
            let is_it =
                |figures: &tollgate_policy::Figures| figures.n() == q && terms::seconds(figures.period()).max(1) == w;
            let wanted: Vec<_> = match self.known.plan {
                Some(plan) => vec![(format!("on plan {plan}"), limit.figures(Some(plan)))],
                None => every,
            };
            match wanted.iter().find(|(_, figures)| is_it(figures)) {
                Some((whose, figures)) if limit.plans().next().is_some() => {
                    self.steps.found("key", format!("{:?} has the figures {whose}: {}", quota.name, figures.rate()));
                }
                Some(_) => {}
                None => {
                    let told: Vec<_> =
                        wanted.iter().map(|(whose, figures)| format!("{} {whose}", figures.rate())).collect();
                    differs.push(format!(
                        "{:?} is {q} in {w} s in the answer, and {} in the policy",
                        quota.name,
                        told.join(", ")
                    ));
                }
            }
        }
        differs.dedup();
        if !differs.is_empty() {
            differs.iter().for_each(|text| self.steps.found("key", text.as_str()));
            self.steps.look(
                "key",
                "another revision or policy is deployed than this one, or an override is in force for the key (`tollgate inspect KEY`)",
            );
        }
        let agrees = compared.then_some(differs.is_empty());
        Some(Agreement { revision: policy.revision(), agrees, differs })
    }
}
