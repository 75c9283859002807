//! `tollgate reset KEY`: fills its buckets, and ends and forgets their locks. What an operator has set stays.

use crate::args::LimitArgs;
use crate::error::{CliError, Result};
use crate::key::{self, Subject};
use crate::{open, output};
use tollgate::Store;
use tollgate_core::LimitName;
use tollgate_dynamodb::{admin, partition_key};

pub(crate) async fn run(args: &LimitArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    let (only, places) = subject.scope(args.limit.as_deref())?;
    let store = open::target(&args.key.on.target).await?;
    if let (Some(only), false) = (&only, subject.is_counted()) {
        is_remembered(&store, &subject, only).await?;
    }
    let (mut filled, mut done) = (Vec::<String>::new(), Vec::new());
    for item in places.concat() {
        let pk = partition_key::of(&item);
        let limits = admin::reset(&store, &item, only.as_ref()).await.map_err(|e| key::after(&done, &pk, e))?;
        for limit in limits.iter().map(ToString::to_string) {
            // Each shard has its limit.
            if !filled.contains(&limit) {
                filled.push(limit);
            }
        }
        done.push(pk);
    }
    let value = serde_json::json!({ "key": subject.key.to_string(), "reset": filled });
    subject.say_which_items_are_missing();
    subject.say_which_keys_are_missing();
    output::result(args.key.on.json, &value, || match filled.as_slice() {
        [] => format!("{}: nothing to reset, every bucket is full and nothing was locked", subject.key),
        names => format!("{}: filled {}", subject.key, names.join(", ")),
    })
}

/// Where no policy tells, a name that the table does not know is taken for a slip.
async fn is_remembered(store: &impl Store, subject: &Subject, only: &LimitName) -> Result<()> {
    let known = store.read(&subject.shared(), &[]).await?.unwrap_or_default().buckets;
    if known.contains_key(only) {
        return Ok(());
    }
    let known: Vec<_> = known.keys().map(LimitName::as_str).collect();
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    let key = &subject.key;
    Err(CliError::Input(format!("{key} has no state of limit {only}; the table remembers: {known}")))
}
