//! `[[edge.rules]]`: limits by address. What a rule names is looked up among what `[edge]` declares, right or wrong.

use super::edge::STAGES;
use super::fields::{self, Fields, Node};
use super::keys;
use super::lock::RangedDuration;
use crate::edge::{Edge, EdgeRule, KeepsOut, Stage};
use crate::rate;
use crate::report::Report;
use crate::suggest;
use std::time::Duration;

const RATE_EXAMPLE: &str = "\"100/5min\"";
const PATHS_EXAMPLE: &str = "[\"/api/auth/\"]";
const EXCEPT_EXAMPLE: &str = "{ egress = [\"hq\"] }";

/// The priority of the first rule: behind what a shared ACL has for whom it lets in or keeps out altogether.
const FIRST_PRIORITY: u64 = 40;

/// Addresses that are kept out at once, where the policy does not say.
const MOST_KEPT_OUT: u64 = 1_000;

/// What they are told to wait: how much is left of a lock, WAF does not know.
const TOLD_TO_WAIT: Duration = Duration::from_secs(300);

const RETRY_AFTER: RangedDuration = RangedDuration {
    what: "retry_after",
    least: Duration::from_secs(1),
    most: Duration::from_secs(86_400),
    example: "\"5min\"",
};

/// What `[edge]` says of all its rules.
struct Scope<'a> {
    egress: Vec<&'a str>,
    bodies: Vec<&'a str>,
    stage: Option<Stage>,
    first_priority: u64,
}

impl<'a> Scope<'a> {
    fn of(report: &mut Report<'_>, edge: &Fields<'a>) -> Self {
        let stage = edge.get("stage").map(|node| fields::word(report, node, "stage", &STAGES));
        let priority = edge.get("priority").map(|node| priority(report, node));
        Self {
            egress: names(edge, "egress"),
            bodies: names(edge, "bodies"),
            stage: stage.unwrap_or(Some(Stage::Count)),
            first_priority: priority.unwrap_or(Some(FIRST_PRIORITY)).unwrap_or(FIRST_PRIORITY),
        }
    }
}

/// The rules, and who is kept out beside them: `Some(None)` is nobody.
#[allow(clippy::option_option)]
pub(super) fn decode(report: &mut Report<'_>, edge: &Fields<'_>) -> (Option<Vec<EdgeRule>>, Option<Option<KeepsOut>>) {
    let scope = Scope::of(report, edge);
    let keeps_out = edge.get("keep_out").map(|node| keep_out(report, node, &scope));
    let rules = rules(report, edge, &scope, keeps_out.as_ref().and_then(Option::as_ref));
    (rules, keeps_out.map_or(Some(None), |keeps_out| keeps_out.map(Some)))
}

fn rules(
    report: &mut Report<'_>,
    edge: &Fields<'_>,
    scope: &Scope<'_>,
    keeps_out: Option<&KeepsOut>,
) -> Option<Vec<EdgeRule>> {
    let help = "add one: `[[edge.rules]]` with `name = \"rate-all\"` and `rate = \"2000/5min\"`";
    let node = edge.required(report, "rules", help)?;
    let list = fields::list(report, node, "rules", "[[edge.rules]]")?;
    if !(1..=Edge::MOST_RULES).contains(&list.len()) {
        let message = format!("[edge] has {} rules, and an ACL has 1 to {} that limit", list.len(), Edge::MOST_RULES);
        report.error(&node.span(), message, "count several paths together: `paths = [\"/a\", \"/b\"]`");
    }
    let mut rules: Vec<Option<EdgeRule>> = Vec::with_capacity(list.len());
    for (place, node) in (0..).zip(list.iter()) {
        let rule = rule(report, node, scope, place);
        if let Some(rule) = &rule {
            check_twice(report, node, rule, rules.iter().flatten());
            check_beside(report, node, rule, keeps_out);
        }
        rules.push(rule);
    }
    warn_of_unused(report, edge, scope, &rules, keeps_out);
    rules.into_iter().collect()
}

/// `keep_out`: before the rules, unless it says otherwise, so that they do not count who never gets so far.
fn keep_out(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>) -> Option<KeepsOut> {
    let fields = Fields::open(report, node, "`keep_out`", &keys::KEEP_OUT)?;
    let known = 1..=u64::try_from(Edge::MOST_KEPT_OUT).unwrap_or(u64::MAX);
    let most = fields.get("most").map(|node| fields::integer(report, node, "most", known, "1000"));
    let answer = Answer::of(report, &fields, scope);
    let given = fields.get("priority").map(|node| priority(report, node));
    let priority = given.unwrap_or(Some(scope.first_priority.saturating_sub(1)))?;
    if scope.egress.contains(&Edge::KEPT_OUT) {
        let message = format!("an egress set is named `{}`, as the IP sets of `keep_out` are", Edge::KEPT_OUT);
        report.error(&node.span(), message, "give the egress set another name");
    }
    Some(KeepsOut {
        most: usize::try_from(most.unwrap_or(Some(MOST_KEPT_OUT))?).ok()?,
        stage: answer.stage?,
        body: answer.body?,
        retry_after: answer.retry_after.unwrap_or(Some(TOLD_TO_WAIT))?,
        priority: u32::try_from(priority).ok()?,
    })
}

/// The names in a table of `[edge]`, whatever is behind them.
fn names<'a>(edge: &Fields<'a>, key: &str) -> Vec<&'a str> {
    let table = edge.get(key).and_then(|node| node.get_ref().as_table());
    table.into_iter().flat_map(|table| table.iter()).map(|(key, _)| key.get_ref().as_ref()).collect()
}

fn rule(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>, place: u64) -> Option<EdgeRule> {
    let fields = Fields::open(report, node, "[[edge.rules]]", &keys::EDGE_RULE)?;
    let name = fields.required(report, "name", "name the rule: `name = \"rate-auth\"`");
    let name = name.and_then(|node| rule_name(report, node));
    let help = format!("say how many requests of one address: `rate = {RATE_EXAMPLE}`");
    let limit = fields.required(report, "rate", &help).and_then(|node| limit(report, node));
    let paths = fields.get("paths").map(|node| paths(report, node));
    let egress = fields.get("except").map(|node| except(report, node, scope));
    let answer = Answer::of(report, &fields, scope);
    let given = fields.get("priority").map(|node| priority(report, node));
    let (limit, window) = limit?;
    let priority = given.unwrap_or(Some(scope.first_priority + place))?;
    Some(EdgeRule {
        name: name?,
        limit,
        window,
        paths: paths.unwrap_or_else(|| Some(Vec::new()))?,
        egress: egress.unwrap_or_else(|| Some(Vec::new()))?,
        stage: answer.stage?,
        body: answer.body?,
        retry_after: answer.retry_after.unwrap_or(Some(window))?,
        priority: u32::try_from(priority).ok()?,
    })
}

/// What happens to whom a rule has caught; what is wrong is `None`.
#[allow(clippy::option_option)]
struct Answer {
    stage: Option<Stage>,
    body: Option<Option<String>>,
    /// `None` if it is not given.
    retry_after: Option<Option<Duration>>,
}

impl Answer {
    fn of(report: &mut Report<'_>, fields: &Fields<'_>, scope: &Scope<'_>) -> Self {
        let stage = fields.get("stage").map(|node| fields::word(report, node, "stage", &STAGES));
        let body = fields.get("body").map(|node| body(report, node, scope));
        let retry_after = fields.get("retry_after").map(|node| RETRY_AFTER.read(report, node));
        let stage = stage.unwrap_or(scope.stage);
        for (key, needs) in [("body", body.is_some()), ("retry_after", retry_after.is_some())] {
            if let (Some(Stage::Captcha | Stage::Challenge), true, Some(node)) = (stage, needs, fields.get(key)) {
                let message = format!("`{key}` is of an answer to a blocked request, and this rule blocks none");
                report.error(&node.span(), message, format!("remove `{key}`, or write `stage = \"block\"`"));
            }
        }
        Self { stage, body: body.map_or(Some(None), |body| body.map(Some)), retry_after }
    }
}

fn rule_name(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let name = fields::text(report, node, "name", "\"rate-auth\"")?;
    if !fields::name(report, &node.span(), "rule", name) {
        return None;
    }
    if name.len() > Edge::MOST_NAME / 2 {
        report.error(
            &node.span(),
            format!("the name has {} characters, 64 at most", name.len()),
            "write a shorter one",
        );
        return None;
    }
    Some(name.to_owned())
}

/// Names and priorities that another rule has already.
fn check_twice<'r>(
    report: &mut Report<'_>,
    node: Node<'_>,
    rule: &EdgeRule,
    mut earlier: impl Iterator<Item = &'r EdgeRule> + Clone,
) {
    let at = |key: &str| {
        let table = node.get_ref().as_table();
        table.and_then(|table| table.get(key)).map_or_else(|| node.span(), |node| node.span())
    };
    if earlier.clone().any(|other| other.name == rule.name) {
        report.error(&at("name"), format!("rule `{}` is given twice", rule.name), "give each rule its own name");
    }
    if let Some(other) = earlier.find(|other| other.priority == rule.priority) {
        let message = format!("rule `{}` has priority {}, as `{}` has", rule.name, rule.priority, other.name);
        report.error(
            &at("priority"),
            message,
            "give each rule its own priority, or none: they then count up from [edge]'s",
        );
    }
}

/// A name or a priority that `keep_out` has already.
fn check_beside(report: &mut Report<'_>, node: Node<'_>, rule: &EdgeRule, keeps_out: Option<&KeepsOut>) {
    let Some(keeps_out) = keeps_out else { return };
    if rule.name == Edge::KEPT_OUT {
        report.error(&node.span(), format!("`{}` is the rule of `keep_out`", rule.name), "give the rule another name");
    }
    if rule.priority == keeps_out.priority {
        let message = format!("rule `{}` has priority {}, as `keep_out` has", rule.name, rule.priority);
        report.error(&node.span(), message, "give each its own priority");
    }
}

/// `"100/5min"` within what WAF takes.
fn limit(report: &mut Report<'_>, node: Node<'_>) -> Option<(u64, Duration)> {
    let text = fields::text(report, node, "rate", RATE_EXAMPLE)?;
    let rate = rate::parse(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()?;
    let window = Duration::from_nanos(rate.period_ns);
    if !Edge::WINDOWS.iter().any(|secs| Duration::from_secs(*secs) == window) {
        let message = format!("rate {text:?} is over a window that WAF does not have");
        report.error(&node.span(), message, "count over 60s, 120s, 300s or 600s, like \"100/300s\"");
        return None;
    }
    let (least, most) = (Edge::LIMITS.start(), Edge::LIMITS.end());
    if !Edge::LIMITS.contains(&rate.n) {
        let message = format!("WAF limits to {least} to {most} requests, not {}", rate.n);
        report.error(&node.span(), message, "count over a longer window, or limit it in the application");
        return None;
    }
    Some((rate.n, window))
}

/// Paths in the one spelling that WAF's transformations leave of them.
fn paths(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<String>> {
    each_once(report, node, "paths", PATHS_EXAMPLE, |report, node, text| {
        plain(report, node, text.strip_suffix("/*").unwrap_or(text)).map(|path| path.to_ascii_lowercase())
    })
}

/// What stands before paths, in the case in which it is sent.
pub(super) fn base_paths(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<String>> {
    each_once(report, node, "base_paths", "[\"/prod\"]", |report, node, text| {
        plain(report, node, text).map(str::to_owned)
    })
}

fn each_once<'a>(
    report: &mut Report<'_>,
    node: Node<'a>,
    what: &str,
    example: &str,
    of: impl Fn(&mut Report<'_>, Node<'a>, &'a str) -> Option<String>,
) -> Option<Vec<String>> {
    let list = fields::list(report, node, what, example)?;
    if list.is_empty() {
        report.error(&node.span(), format!("`{what}` is empty"), "remove it to mean every path");
    }
    let mut paths: Vec<Option<String>> = Vec::with_capacity(list.len());
    for node in list.iter() {
        let path = fields::text(report, node, "a path", "\"/api/auth/\"").and_then(|text| of(report, node, text));
        if path.is_some() && paths.contains(&path) {
            let help = "write each path once; in rules case does not count, nor does a last `/`";
            report.error(&node.span(), "this path is given twice", help);
        }
        paths.push(path);
    }
    paths.into_iter().collect()
}

/// A path that is decoded and resolved, without a slash at the end.
fn plain<'a>(report: &mut Report<'_>, node: Node<'_>, text: &'a str) -> Option<&'a str> {
    let path = text.strip_suffix('/').unwrap_or(text);
    if path.is_empty() {
        report.error(&node.span(), format!("{text:?} is every path"), "remove it to mean every path");
        return None;
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'(),=:@".contains(&b);
    let segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(plain);
    if !path.strip_prefix('/').is_some_and(|inner| inner.split('/').all(segment)) {
        let message = format!("{text:?} is not a plain path");
        let help = "write it decoded and from the root, like \"/api/auth/\": a rule is about a path and all below it, \
                    however they are spelled";
        report.error(&node.span(), message, help);
        return None;
    }
    // A slash is added where what is below it is matched.
    if path.len() >= Edge::MOST_PATH_BYTES {
        let message = format!("the path has {} bytes, {} at most", path.len(), Edge::MOST_PATH_BYTES - 1);
        report.error(&node.span(), message, "name a path above it");
        return None;
    }
    Some(path)
}

fn except(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>) -> Option<Vec<String>> {
    let fields = Fields::open(report, node, "`except`", &keys::EXCEPT)?;
    let node = fields.required(report, "egress", &format!("name egress sets: `except = {EXCEPT_EXAMPLE}`"))?;
    let list = fields::list(report, node, "egress", "[\"hq\"]")?;
    let mut sets: Vec<Option<String>> = Vec::with_capacity(list.len());
    for node in list.iter() {
        let name = fields::text(report, node, "an egress set", "\"hq\"");
        let Some(name) = name.filter(|name| declared(report, node, "egress set", name, &scope.egress)) else {
            sets.push(None);
            continue;
        };
        if sets.iter().flatten().any(|earlier| earlier == name) {
            report.error(&node.span(), format!("egress set `{name}` is given twice"), "write each set once");
        }
        sets.push(Some(name.to_owned()));
    }
    sets.into_iter().collect()
}

fn body(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>) -> Option<String> {
    let name = fields::text(report, node, "body", "\"slow\"")?;
    declared(report, node, "body", name, &scope.bodies).then(|| name.to_owned())
}

fn declared(report: &mut Report<'_>, node: Node<'_>, noun: &str, name: &str, known: &[&str]) -> bool {
    let found = known.contains(&name);
    if !found {
        let help = suggest::help(name, noun, known.iter().copied());
        report.absent(&node.span(), name, format!("there is no {noun} `{name}` in [edge]"), help);
    }
    found
}

/// A priority that leaves room for the rules that follow the first.
fn priority(report: &mut Report<'_>, node: Node<'_>) -> Option<u64> {
    fields::integer(report, node, "priority", 0..=1_000_000_000, "40")
}

/// Warns of sets and bodies that no rule names: whoever wrote them thinks that they do something.
fn warn_of_unused(
    report: &mut Report<'_>,
    edge: &Fields<'_>,
    scope: &Scope<'_>,
    rules: &[Option<EdgeRule>],
    keeps_out: Option<&KeepsOut>,
) {
    if rules.iter().any(Option::is_none) {
        return;
    }
    let rules = || rules.iter().flatten();
    for (noun, key, known) in [("egress set", "egress", &scope.egress), ("body", "bodies", &scope.bodies)] {
        let is_used = |name: &&str| match key {
            // Who is in one is never kept out.
            "egress" if keeps_out.is_some() => true,
            "egress" => rules().any(|rule| rule.egress.iter().any(|set| set == name)),
            _ => {
                let of_keep_out = keeps_out.and_then(|keeps_out| keeps_out.body.as_deref());
                rules().any(|rule| rule.body.as_deref() == Some(*name)) || of_keep_out == Some(*name)
            }
        };
        for unused in known.iter().filter(|name| !is_used(name)) {
            let at = edge.get(key).map_or_else(|| edge.span(), |node| node.span());
            let message = format!("no rule of [edge] names the {noun} `{unused}`");
            report.warning(&at, message, "name it in a rule, or remove it");
        }
    }
}
