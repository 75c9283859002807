//! The embedded metric format, as its specification says it, for what the functions print
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>).

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A metric's name, and its dimensions as `Name=value`, sorted.
pub type Series = (String, Vec<String>);

/// The sums of the metrics of all lines that are metrics; whatever breaks a rule fails the test.
pub fn sums(printed: &str) -> BTreeMap<Series, f64> {
    let mut sums = BTreeMap::new();
    for (series, values) in lines(printed).flat_map(|line| extract(&line)) {
        *sums.entry(series).or_default() += values.iter().sum::<f64>();
    }
    sums
}

/// How many values a metric has, over all its series.
pub fn samples(printed: &str, name: &str) -> usize {
    let all = lines(printed).flat_map(|line| extract(&line));
    all.filter(|((metric, _), _)| metric == name).map(|(_, values)| values.len()).sum()
}

/// The lines that are metrics.
pub fn lines(printed: &str) -> impl Iterator<Item = String> {
    printed.lines().filter(|line| line.contains("\"_aws\"")).map(str::to_owned)
}

/// What CloudWatch would extract from a line.
fn extract(line: &str) -> Vec<(Series, Vec<f64>)> {
    assert!(line.len() <= 1024 * 1024, "a log event has 1 MB at most");
    let root: Map<String, Value> = serde_json::from_str(line).expect("one JSON object a line, and nothing else");
    let metadata = root["_aws"].as_object().unwrap();
    let members: BTreeSet<&str> = metadata.keys().map(String::as_str).collect();
    assert_eq!(members, BTreeSet::from(["CloudWatchMetrics", "Timestamp"]), "{line}");
    // Events may be two weeks old at most, and two hours ahead.
    let ms = metadata["Timestamp"].as_u64().unwrap();
    let age_ms = i128::from(now_ms()) - i128::from(ms);
    assert!((-7_200_000..1_209_600_000).contains(&age_ms), "{line}");
    let directives = metadata["CloudWatchMetrics"].as_array().unwrap();
    assert!(!directives.is_empty());
    directives.iter().flat_map(|directive| of_directive(&root, directive)).collect()
}

fn of_directive(root: &Map<String, Value>, directive: &Value) -> Vec<(Series, Vec<f64>)> {
    let namespace = directive["Namespace"].as_str().unwrap();
    assert!((1..=255).contains(&namespace.len()) && !namespace.starts_with("AWS/"), "{namespace:?}");
    let metrics = directive["Metrics"].as_array().unwrap();
    assert!((1..=100).contains(&metrics.len()), "100 metrics a directive");
    let mut found = Vec::new();
    for set in directive["Dimensions"].as_array().filter(|sets| !sets.is_empty()).unwrap() {
        let names = set.as_array().filter(|names| names.len() <= 30).unwrap();
        let mut dimensions: Vec<_> = names.iter().map(|name| dimension(root, name.as_str().unwrap())).collect();
        dimensions.sort();
        for metric in metrics {
            let name = metric["Name"].as_str().filter(|name| (1..=1024).contains(&name.len())).unwrap();
            assert!(["Count", "Milliseconds"].contains(&metric["Unit"].as_str().unwrap()), "{metric}");
            found.push(((name.to_owned(), dimensions.clone()), values(&root[name])));
        }
    }
    found
}

fn dimension(root: &Map<String, Value>, name: &str) -> String {
    let value = root[name].as_str().expect("a dimension is text");
    let is_ascii = |text: &str| text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    assert!((1..=250).contains(&name.len()) && !name.starts_with(':') && is_ascii(name), "{name:?}");
    assert!((1..=1024).contains(&value.len()) && !value.trim().is_empty() && is_ascii(value), "{value:?}");
    format!("{name}={value}")
}

fn values(member: &Value) -> Vec<f64> {
    let of = |value: &Value| value.as_f64().filter(|number| number.is_finite()).expect("a number");
    match member {
        Value::Array(values) => {
            assert!((1..=100).contains(&values.len()), "100 values a metric");
            values.iter().map(of).collect()
        }
        value => vec![of(value)],
    }
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}
