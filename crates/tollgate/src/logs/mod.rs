//! Structured logs: one JSON object a line, as CloudWatch Logs Insights reads them.
//!
//! ```
//! tollgate::logs::init(); // in a server of your own; a Lambda function has it by `tollgate::lambda::main`
//! ```
//!
//! | level | what |
//! | --- | --- |
//! | `ERROR` | only a deployment or a new policy mends it: init failed, a newer policy has mistakes |
//! | `WARN` | the limiter failed, in part or as a whole; clocks differ; something in the policy's surroundings is odd |
//! | `INFO` | [denials](crate::denials), and policies that came into force |
//!
//! | module | what it is |
//! | --- | --- |
//! | [`lines`] | events as lines |
//! | `bound` | how many of a kind a second |
//!
//! Invariant: nothing is logged for a decision that went well, no key's value ever is, and there are at most
//! [`LINES_PER_SECOND`] lines a second of each kind, so that whoever is denied cannot run up a bill.

mod bound;
pub mod lines;

pub use bound::LINES_PER_SECOND;
pub use lines::JsonLines;

use std::str::FromStr;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged unless the environment says otherwise: the SDK warns of each provider without credentials, and the
/// error that follows says that in a line.
const DEFAULT: &str = "warn,tollgate=info,aws_config=error";

/// The span with the ids of request and trace (`requestId`, `xrayTraceId`), which Lambda's runtime puts around an invocation. A line
/// without them is of little use, whatever the level.
const INVOCATION: &str = "lambda_runtime::layers::trace";

/// Sends logs to standard output. `RUST_LOG` has the syntax `warn,tollgate=debug`; without it, the level that a
/// function's logging configuration sets (`AWS_LAMBDA_LOG_LEVEL`) applies to everything.
pub fn init() {
    let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let wanted = set("RUST_LOG").or_else(|| set("AWS_LAMBDA_LOG_LEVEL").map(|level| level.to_lowercase()));
    let logs = JsonLines::new(std::io::stdout());
    // Filtered by target alone: a filter that knows fields and spans brings a regular-expression engine, which would be
    // a tenth of a function's binary.
    let registry = tracing_subscriber::registry().with(logs.with_filter(targets(wanted.as_deref())));
    // Fails only where a subscriber is set already, and that one then has the last word.
    let _ = registry.try_init();
}

fn targets(wanted: Option<&str>) -> Targets {
    // Lambda's FATAL is our error.
    let wanted = wanted.map(|text| text.replace("fatal", "error"));
    let parsed = wanted.and_then(|text| Targets::from_str(&text).ok());
    let targets = parsed.or_else(|| Targets::from_str(DEFAULT).ok()).unwrap_or_default();
    targets.with_target(INVOCATION, LevelFilter::INFO)
}

#[cfg(test)]
mod tests {
    use super::{INVOCATION, targets};
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

    #[test]
    fn the_ids_of_an_invocation_are_told_at_every_level() {
        for wanted in [None, Some("warn"), Some("error")] {
            assert!(targets(wanted).would_enable(INVOCATION, &Level::INFO), "{wanted:?}");
        }
    }
}
