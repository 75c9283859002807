//! README's table of costs and the template's figures, from the units that are counted here and the prices of `infra/prices.toml`.

use crate::harness::{Client, SECOND, key, one, repository};
use std::fmt::Write;
use tollgate::Policy;
use tollgate_policy::Limit;
use toml::Table;

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

/// The figures of `infra/prices.toml`.
pub struct Prices(Table);

impl Prices {
    pub fn read() -> Self {
        Self(read("infra/prices.toml").parse().unwrap())
    }

    fn text(&self, table: &str, name: &str) -> &str {
        self.0[table][name].as_str().unwrap_or_else(|| panic!("{table}.{name}"))
    }

    fn of(&self, table: &str, name: &str) -> f64 {
        self.text(table, name).parse().unwrap()
    }

    pub fn per_million(&self, name: &str) -> f64 {
        self.of("per_million", name)
    }

    /// Of a million invocations.
    pub fn functions(&self) -> f64 {
        let gigabyte_seconds = self.of("assumed", "billed_ms") * 1e3 * self.of("assumed", "memory_mb") / 1024.0;
        self.per_million("invocations") + gigabyte_seconds * self.of("per_gigabyte_second", "arm64")
    }
}

/// Write units of a call within its limit, of one that is denied, and of one that is known to be denied.
pub async fn units() -> [u64; 3] {
    let client = Client::new().await;
    let charges = one(&key(), 1, 3600 * SECOND, 1);
    let allowed = client.measured(&charges).await;
    let known = client.measured(&charges).await;
    let denied = Client::at(client.clock.clone()).await.forgetting().measured(&charges).await;
    assert_eq!([&allowed, &denied, &known].map(|(decision, ..)| decision.is_allowed()), [true, false, false]);
    [allowed.2, denied.2, known.2]
}

/// A number that fits a unit's price exactly, as far as it is told.
fn dollars(value: f64) -> String {
    format!("{value:.2}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_costs_is_what_units_prices_and_templates_come_to() {
    let prices = Prices::read();
    let month = |name: &str| prices.of("per_month", name);
    let (template, edge) = (read("infra/template.yaml"), read("infra/edge.yaml"));
    let rules = edge.matches("RateBasedStatement:").count() as f64;
    // An alarm is charged by the metrics that it looks at: several in `Metrics`, or one.
    let sums = template.matches("MetricStat:\n").count();
    let single = template.matches("      Statistic: ").count();
    let alarms = (sums + single) as f64;
    let decision = |units: u64| units as f64 * prices.per_million("write_units") + prices.functions();
    let [allowed, denied, known] = units().await;
    let mut table = String::from("| | units | dollars |\n| --- | --- | --- |\n");
    let mut row =
        |what: &str, units: String, cost: f64| writeln!(table, "| {what} | {units} | {} |", dollars(cost)).unwrap();
    let acl = month("web_acl") + rules * month("waf_rule");
    row("edge, a month", format!("1 web ACL, {rules} rules"), acl);
    row("edge, a million requests", "blocked ones too".to_owned(), prices.per_million("waf_requests"));
    row("gateway, a million requests", "HTTP API".to_owned(), prices.per_million("http_requests"));
    row(
        "gateway, a million requests",
        "REST API, usage plans included".to_owned(),
        prices.per_million("rest_requests"),
    );
    row(
        "application, a million decisions",
        format!("allowed: {allowed} write unit each, and the function"),
        decision(allowed),
    );
    row("application, a million decisions", format!("denied by the table: {denied} write unit each"), decision(denied));
    row("application, a million decisions", format!("denied from memory: {known} write units"), decision(known));
    let webhooks = prices.per_million("http_requests") + prices.functions() + 3.0 * prices.per_million("fifo_messages");
    row("webhooks, a million", "gateway, function, 3 requests to the queue".to_owned(), webhooks);
    let alarmed = alarms * month("alarm_metric") + month("dashboard");
    row("alarms and dashboard, a month", format!("{alarms} metrics in alarms, with all functions"), alarmed);
    let scanned = 100.0 * prices.of("per_gigabyte", "log_scanned");
    let queries = template.matches("Type: AWS::Logs::QueryDefinition").count();
    let shown = template.matches(r#""type": "log""#).count();
    let whose =
        format!("by {queries} saved queries when they are run, by {shown} of the dashboard whenever it is looked at");
    row("logs, 100 gigabytes that are read", whose, scanned);
    row(
        "keys and secrets, a month",
        "the table's key, that of second factors, 1 secret".to_owned(),
        2.0 * month("kms_key") + month("secret"),
    );
    let readme = read("README.md");
    assert!(readme.contains(&table), "README's table of costs is not:\n{table}");
}

#[test]
fn the_dashboard_reckons_with_those_prices() {
    let (prices, template) = (Prices::read(), read("infra/template.yaml"));
    for (name, theirs) in [
        ("write_units", "WriteUnits"),
        ("read_units", "ReadUnits"),
        ("invocations", "Invocations"),
        ("http_requests", "HttpRequests"),
        ("rest_requests", "RestRequests"),
        ("waf_requests", "WafRequests"),
    ] {
        let entry = format!("{theirs}: \"{}\"", prices.text("per_million", name));
        assert!(template.contains(&entry), "{entry}");
    }
    let entry = format!("Arm64: \"{}\"", prices.text("per_gigabyte_second", "arm64"));
    assert!(template.contains(&entry), "{entry}");
}

#[test]
fn each_plan_of_the_policy_has_a_usage_plan_of_twice_its_limits_by_api_key() {
    let (text, template) = (read("infra/tollgate.toml"), read("infra/template.yaml"));
    let policy = Policy::parse(&text).unwrap().policy;
    let file: Table = text.parse().unwrap();
    let declared = |limit: &Limit| &file["limits"][limit.name().as_str()];
    let api_key = toml::Value::from(vec!["api_key"]);
    let by_key: Vec<_> = policy.limits().iter().filter(|limit| declared(limit)["key"] == api_key).collect();
    assert!(!by_key.is_empty());
    for plan in policy.plans().names() {
        let rates =
            by_key.iter().map(|limit| limit.figures(Some(plan))).map(|of| of.n() as f64 / of.period().as_secs_f64());
        let rate = rates.fold(f64::INFINITY, f64::min);
        let rate = (20.0 * rate).ceil() / 10.0;
        let burst = by_key.iter().filter_map(|limit| declared(limit)["burst"].as_integer()).min().unwrap();
        let entry = format!("{plan}: {{ RequestsPerSecond: {rate}, Burst: {} }}", 2 * burst);
        assert!(template.contains(&entry), "the template's Plans have no {entry}");
    }
}
