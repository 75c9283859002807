//! A line of CloudWatch's embedded metric format: JSON that says of itself which of its members are metrics.
//!
//! Invariant: what is written is within the limits of the
//! [specification](https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html)
//! and of [`PutMetricData`](https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html): a line that is not
//! yields no metric, and nobody is told.

use serde_json::{Map, Value, json};

/// Most metrics of a directive.
pub(super) const MOST_METRICS: usize = 100;

/// Most values that a metric may have in a line.
pub(super) const MOST_VALUES: usize = 100;

/// Longest value of a dimension, bytes.
const LONGEST_DIMENSION_VALUE: usize = 1024;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Milliseconds,
}

impl Unit {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
        }
    }
}

/// A line in the making.
#[derive(Debug, Default)]
pub(super) struct Line {
    directives: Vec<Value>,
    members: Map<String, Value>,
}

impl Line {
    /// Adds metrics under one set of dimensions. Names are members of the line, so a name has one value in it.
    pub(super) fn add(
        &mut self,
        namespace: &str,
        dimensions: &[(&str, &str)],
        metrics: impl IntoIterator<Item = (&'static str, Unit, Value)>,
    ) {
        let mut definitions = Vec::new();
        for (name, unit, value) in metrics {
            definitions.push(json!({ "Name": name, "Unit": unit.as_str() }));
            self.members.insert(name.to_owned(), value);
        }
        if definitions.is_empty() {
            return;
        }
        let names: Vec<_> = dimensions.iter().map(|(name, _)| *name).collect();
        for (name, value) in dimensions {
            self.members.insert((*name).to_owned(), (*value).into());
        }
        for definitions in definitions.chunks(MOST_METRICS) {
            self.directives.push(json!({ "Namespace": namespace, "Dimensions": [names], "Metrics": definitions }));
        }
    }

    /// The line with its end, told for `timestamp_ms`; `None` if there is no metric in it.
    pub(super) fn finish(mut self, timestamp_ms: u64) -> Option<String> {
        if self.directives.is_empty() {
            return None;
        }
        let metadata = json!({ "Timestamp": timestamp_ms, "CloudWatchMetrics": self.directives });
        self.members.insert("_aws".to_owned(), metadata);
        Some(format!("{}\n", Value::Object(self.members)))
    }
}

/// Whether CloudWatch takes it for a namespace.
pub(super) fn is_namespace(text: &str) -> bool {
    let ok = |b: u8| b.is_ascii_alphanumeric() || b".-_/#: ".contains(&b);
    // What begins so is AWS's own.
    (1..=255).contains(&text.len()) && text.bytes().all(ok) && !text.starts_with("AWS/") && text.trim() == text
}

/// The text as CloudWatch takes it for the value of a dimension: what it does not take is `?`, and the end of what is too long is left out.
pub(super) fn as_dimension_value(text: &str) -> String {
    let taken = text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' });
    taken.take(LONGEST_DIMENSION_VALUE).collect()
}

/// Whether CloudWatch takes it for the value of a dimension.
pub(super) fn is_dimension_value(text: &str) -> bool {
    let ok = |b: u8| b.is_ascii_graphic() || b == b' ';
    (1..=LONGEST_DIMENSION_VALUE).contains(&text.len())
        && text.bytes().all(ok)
        && !text.starts_with(':')
        && !text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::{as_dimension_value, is_dimension_value};

    #[test]
    fn a_route_is_a_dimension_whatever_its_path_has_in_it() {
        assert_eq!(as_dimension_value("GET,HEAD /items/{id}"), "GET,HEAD /items/{id}");
        assert_eq!(as_dimension_value("GET /zahlung/für\u{a0}ü"), "GET /zahlung/f?r??");
        for path in ["é".repeat(2000), "a".repeat(2000), "\u{7f}".to_owned()] {
            assert!(is_dimension_value(&as_dimension_value(&format!("GET /{path}"))));
        }
    }
}
