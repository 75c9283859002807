//! What to change: the last step, by who answered and what became of the call.
//!
//! Invariant: there is always something, and where nobody was limited it says so.

use super::layer::Verdict;
use super::report::{Layer, Outcome, Steps};
use tollgate_policy::Limit;

pub(super) fn add(steps: &mut Steps, verdict: &Verdict, limit: Option<&Limit>) {
    if let Some(text) = by_outcome(verdict.layer, verdict.outcome) {
        steps.look("action", text);
    }
    match verdict.outcome {
        Outcome::Passed => steps.found("action", "nothing"),
        Outcome::Limited => limited(steps, verdict.layer, limit),
        _ => steps.look("action", "tell its callers apart from limited ones: this is no 429 by a limit"),
    }
}

fn by_outcome(layer: Layer, outcome: Outcome) -> Option<&'static str> {
    Some(match (layer, outcome) {
        (_, Outcome::Passed) => return None,
        (_, Outcome::NeverFits) => {
            "split the call, or raise the burst: nothing that costs more than the burst is ever admitted"
        }
        (Layer::Application | Layer::Authorizer, Outcome::Unavailable) => {
            "the alarms Unavailable and LimiterDegraded, the table's throttling and DeadlineMs; whether the route should be `closed` \
             (`on_store_failure`)"
        }
        (Layer::Application, Outcome::Challenged) => {
            "have the caller prove what `WWW-Authenticate` or the body asks for; no limit is in the way"
        }
        (Layer::Application, Outcome::Locked | Outcome::Cooldown | Outcome::SendingPaused) => {
            "let the person wait, or take another factor; `tollgate reset KEY` lifts limits, not locks of codes"
        }
        (Layer::Waf, _) => {
            "count before you block (`stage`), leave out egress sets, and keep business limits to the application, which knows users \
             and plans"
        }
        (Layer::Lambda, _) => {
            "reserve concurrency, shorten the function, or put a limit in front that answers 429 with a Retry-After"
        }
        _ => return None,
    })
}

fn limited(steps: &mut Steps, layer: Layer, limit: Option<&Limit>) {
    match limit {
        Some(limit) => {
            let mut dimensions = limit.key().iter().flat_map(|part| part.alternatives());
            if dimensions.any(|dimension| dimension == "client_ip") {
                let text = "count by user, API key or tenant instead of the address where the caller is authenticated";
                steps.look("action", text);
            }
            steps.look(
                "action",
                "the client: spread calls, wait Retry-After, and slow down before `RateLimit` says r=0",
            );
            let name = limit.name();
            let text = format!("the owner: another plan, or `tollgate override KEY --limit {name} --rate … --for 2h`");
            steps.look("action", text);
        }
        None => {
            steps.look("action", "the client: wait longer after each try, with jitter, and give up at some time");
            let text = "whoever limits: Retry-After on each 429, quotas on every answer, and a count by client and plan and not by address";
            steps.look("action", text);
        }
    }
    let shown = match layer {
        Layer::Application | Layer::Authorizer => "\"Denied by API key\" and \"Denied by tenant\" tell",
        Layer::Gateway => "\"Gateway: refused\" tells",
        Layer::Waf => "\"Edge: caught by rule\" tells",
        _ => return,
    };
    steps.look("action", format!("the dashboard's {shown} whether it is one caller or all"));
}
