//! `tollgate forget KEY`: erases what the table remembers of somebody.

use crate::args::KeyArgs;
use crate::error::Result;
use crate::hold::utc;
use crate::key::{self, Subject};
use crate::{open, output, session};
use serde::Serialize;
use tollgate_dynamodb::admin::{self, Forgettable};

#[derive(Serialize)]
struct Forgotten {
    key: String,
    deleted: usize,
    pks: Vec<String>,
    digests: Digests,
}

/// Items whose key the table has as a digest.
#[derive(Serialize)]
struct Digests {
    items: u64,
    /// Epoch seconds.
    expire_at: Option<u64>,
}

pub(crate) async fn run(args: &KeyArgs) -> Result<()> {
    let subject = Subject::of(args).await?;
    let store = open::target(&args.on.target).await?;
    // All is found before anything is deleted, so that a ban on one of the keys leaves all of them.
    let keys: Vec<_> = subject.keys().cloned().collect();
    let remembered = admin::remembered(&store, &keys, &subject.items()).await?;
    session::may_be_forgotten(&store, remembered.items.iter().map(Forgettable::pk)).await?;
    let mut pks = Vec::new();
    for item in remembered.items {
        let pk = item.pk().to_owned();
        let existed = admin::forget(&store, item).await.map_err(|e| key::after(&pks, &pk, e))?;
        pks.extend(existed.then_some(pk));
    }
    subject.say_which_keys_are_missing();
    let digests = Digests { items: remembered.digests, expire_at: remembered.digests_expire_at };
    let forgotten = Forgotten { key: subject.key.to_string(), deleted: pks.len(), pks, digests };
    output::result(args.on.json, &forgotten, || text(&forgotten))
}

fn text(forgotten: &Forgotten) -> String {
    let Forgotten { key, deleted, pks, digests: Digests { items, expire_at } } = forgotten;
    let mut text = match deleted {
        0 => format!("{key}: nothing was remembered"),
        _ => format!("{key}: deleted {deleted}\n  {}", pks.join("\n  ")),
    };
    if *items > 0 {
        let expire = expire_at.map(|secs| format!(", all by {}", utc(secs.saturating_mul(1000)))).unwrap_or_default();
        text += &format!(
            "\n{items} items of keys over 256 bytes are digests, which do not tell whose they are; unused, they expire by \
             themselves{expire}"
        );
    }
    text
}
