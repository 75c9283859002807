//! What runs every minute. It judges who has messages sent and never types a code: the ladder that `POST /api/auth/otp/send` goes by. And
//! it keeps out in front who limits have locked once too often.
//!
//! Invariants: an event holds nothing that is judged by, so it does not matter who sends one, or how often; one task goes on where the
//! other fails; what cannot be done is a failed invocation, and all stays as it is.

mod edge;

pub use edge::{Error as EdgeError, keep_out};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tollgate::Policy;
use tollgate::lambda::Function;
use tollgate::tollgate_dynamodb::Items;
use tollgate_otp::pumping::{Watched, watch};

/// What a judgement may take: some hundred items are read.
const DEADLINE: Duration = Duration::from_secs(8);

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let items = Items::new(function.limiter.store().clone()).with_deadline(DEADLINE);
    let edge = edge::Edge::default();
    let (function, items, edge) = (&function, &items, &edge);
    let handle = move |_: LambdaEvent<Box<RawValue>>| async move {
        let policy = function.begin().await;
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        let watched = Box::pin(judge(items, &policy)).await;
        let kept = Box::pin(edge.keep_out(items, &policy)).await;
        if let (Err(_), Err(error)) = (&watched, &kept) {
            tracing::error!(%error, "nobody is kept out or let in");
        }
        let (watched, kept) = (watched?, kept?);
        let mut answer = watched.as_ref().map_or_else(|| json!({}), told);
        if let Some(kept) = &kept {
            answer["kept_out"] = edge::told(kept);
        }
        Ok::<_, Error>(answer)
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Judges once, and logs what went up or down; `None` if the policy has nobody watched.
///
/// # Errors
///
/// See [`tollgate_otp::Error`].
pub async fn judge(items: &Items, policy: &Policy) -> Result<Option<Watched>, tollgate_otp::Error> {
    let Some(rules) = policy.otp().filter(|rules| rules.pumping.is_some()) else { return Ok(None) };
    let watched = watch(items, rules).await?;
    for step in &watched.steps {
        let (scope, from, to, why) = (step.scope.as_str(), step.from.as_str(), step.to.as_str(), step.why.as_str());
        if step.to > step.from {
            tracing::warn!(scope, from, to, why, "messages are suspected");
        } else {
            tracing::info!(scope, from, to, why, "messages are suspected less");
        }
    }
    Ok(Some(watched))
}

/// A judgement, for people.
#[must_use]
pub fn told(watched: &Watched) -> Value {
    let standings = watched.ladder.standings.iter().map(|(scope, standing)| {
        let (rung, until) = (standing.rung.as_str(), standing.until.as_secs());
        json!({ "scope": scope.as_str(), "rung": rung, "until": until })
    });
    let steps = watched.steps.iter().map(|step| {
        let (from, to) = (step.from.as_str(), step.to.as_str());
        json!({ "scope": step.scope.as_str(), "from": from, "to": to, "why": step.why.as_str() })
    });
    let (standings, steps): (Vec<_>, Vec<_>) = (standings.collect(), steps.collect());
    json!({ "judged": watched.ladder.judged.as_secs(), "standings": standings, "steps": steps })
}
