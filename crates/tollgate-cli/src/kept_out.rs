//! `tollgate waf kept-out [--release ADDRESS]`: addresses that limits have handed over to be kept out in front.

use crate::args::{Json, PolicyFile, Target};
use crate::error::{CliError, Result};
use crate::hold::utc;
use crate::{open, output};
use serde::Serialize;
use std::time::Duration;
use tollgate_dynamodb::Items;
use tollgate_dynamodb::kept_out::{self, KeptOut};
use tollgate_waf::kept_out::choose;

/// How long an operator waits for the table.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Listed {
    address: String,
    /// When its lock ends, seconds since the epoch.
    until: u64,
    /// Whether it is kept out: not if there are too many, or others share it.
    kept_out: bool,
}

pub(crate) async fn run(release: Option<&str>, target: &Target, policy: &PolicyFile, json: Json) -> Result<()> {
    let policy = open::policy(&policy.policy)?;
    let items = Items::new(open::target(target).await?).with_deadline(DEADLINE);
    let listed = kept_out::listed(&items).await?;
    if let Some(address) = release {
        let of_address: Vec<KeptOut> = listed.into_iter().filter(|listed| listed.address == address).collect();
        if of_address.is_empty() {
            return Err(CliError::Check(format!("{address} is not listed; write it as `tollgate waf kept-out` does")));
        }
        kept_out::remove(&items, &of_address).await?;
        return output::result(json, &serde_json::json!({ "released": address }), || {
            format!(
                "{address} is let in again with the sentinel's next run; `tollgate reset client_ip:{address}` lifts its lock"
            )
        });
    }
    let now = items.now();
    let chosen = choose(&policy, listed.iter().map(|of| (of.address.as_str(), of.until)), now);
    let chosen: Vec<String> = chosen.iter().map(ToString::to_string).collect();
    let is_chosen = |address: &str| {
        tollgate_policy::Cidr::of_client(address).is_some_and(|block| chosen.contains(&block.to_string()))
    };
    let mut all: Vec<Listed> = listed
        .into_iter()
        .filter(|of| of.until > now)
        .map(|of| Listed { kept_out: is_chosen(&of.address), until: of.until.as_secs(), address: of.address })
        .collect();
    all.sort_by(|a, b| b.until.cmp(&a.until).then_with(|| a.address.cmp(&b.address)));
    all.dedup_by(|later, earlier| later.address == earlier.address);
    output::result(json, &serde_json::json!({ "listed": all }), || match all.as_slice() {
        [] => "no address is listed".to_owned(),
        all => all.iter().map(line).collect::<Vec<_>>().join("\n"),
    })
}

fn line(of: &Listed) -> String {
    let not = if of.kept_out { "" } else { "  (not kept out: others share it, or there are too many)" };
    format!("{:<40} until {}{not}", of.address, utc(of.until * 1000))
}
