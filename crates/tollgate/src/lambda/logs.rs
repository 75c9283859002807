//! Structured logs: one JSON object a line, as CloudWatch Logs Insights reads them.
//!
//! Invariant: nothing is logged for a decision that went well, and no key's value ever is.

use std::str::FromStr;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged unless the environment says otherwise: the SDK warns of each provider without credentials, and the
/// error that follows says that in a line.
const DEFAULT: &str = "warn,tollgate=info,aws_config=error";

/// Sends logs to standard output. `RUST_LOG` has the syntax `warn,tollgate=debug`; without it, the level that the
/// function's logging configuration sets (`AWS_LAMBDA_LOG_LEVEL`) applies to everything.
pub fn init() {
    let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let wanted = set("RUST_LOG").or_else(|| set("AWS_LAMBDA_LOG_LEVEL").map(|level| level.to_lowercase()));
    let logs = layer().json().flatten_event(true).with_current_span(true).with_span_list(false);
    // Filtered by target alone: a filter that knows fields and spans brings a regular-expression engine, which would be
    // a tenth of the function's binary.
    let registry = tracing_subscriber::registry().with(logs.with_filter(targets(wanted.as_deref())));
    // Fails only where a subscriber is set already, and that one then has the last word.
    let _ = registry.try_init();
}

fn targets(wanted: Option<&str>) -> Targets {
    // Lambda's FATAL is our error.
    let wanted = wanted.map(|text| text.replace("fatal", "error"));
    let parsed = wanted.and_then(|text| Targets::from_str(&text).ok());
    parsed.or_else(|| Targets::from_str(DEFAULT).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::targets;
    use tracing::Level;

    #[test]
    fn warnings_of_all_and_news_of_our_own_unless_told_otherwise() {
        for wanted in [None, Some("tollgate=loud")] {
            let targets = targets(wanted);
            assert!(targets.would_enable("tollgate::lambda", &Level::INFO));
            assert!(targets.would_enable("hyper", &Level::WARN) && !targets.would_enable("hyper", &Level::INFO));
            assert!(!targets.would_enable("aws_config", &Level::WARN));
        }
    }

    #[test]
    fn a_level_applies_to_everything_and_fatal_is_error() {
        assert!(targets(Some("debug")).would_enable("hyper", &Level::DEBUG));
        let fatal = targets(Some("fatal"));
        assert!(fatal.would_enable("hyper", &Level::ERROR) && !fatal.would_enable("tollgate", &Level::WARN));
    }
}
