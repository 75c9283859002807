//! A key as the table's `pk`: versioned, injective, and at most 256 bytes.
//!
//! `1/key/user:alice` is the item that the limits of that key share, `1/own/orders/user:alice` the one that the limit
//! `orders` has for itself, `1/own/orders.3/user:alice` a shard of such a limit's, `1/otp/login/user:alice` that of its one-time
//! codes for `login`, and `1/mfa/subject/user:alice` what is remembered of it as a subject; `1/audit/7/user:alice` is the seventh entry of
//! its audit log; `1/pumping/...` are what is counted of
//! messages, and `1/edge/...` are lists for whoever stands in front. The leading number is the version of this scheme: a later scheme never reads the items of an earlier one by accident.
//! What is longer than 256 bytes is stored as `1/sha/<sha-256 in hex>` (DynamoDB's own bound is 2048 bytes); no short key can spell
//! that.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use tollgate_core::{ItemKey, Key, LimitName};

/// The name of the partition key attribute.
pub const ATTRIBUTE: &str = "pk";

/// Longest `pk` that is stored as it is, in bytes of UTF-8.
pub const LONGEST_PLAIN: usize = 256;

/// What the `pk` of an item with a longer key starts with.
pub const DIGEST: &str = "1/sha/";

/// The item that a `pk` is of; `None` if it is a digest, or nothing that [`of`] writes.
#[must_use]
pub fn parse(pk: &str) -> Option<ItemKey> {
    let item = match pk.strip_prefix("1/")?.split_once('/')? {
        ("key", key) => ItemKey::shared(key.parse().ok()?),
        ("own", rest) => {
            let (limit, key) = rest.split_once('/')?;
            let (limit, shard) = limit.split_once('.').map_or((limit, None), |(limit, shard)| (limit, Some(shard)));
            let own = ItemKey::own(key.parse().ok()?, LimitName::new(limit).ok()?);
            match shard {
                Some(shard) => own.on_shard(shard.parse().ok()?),
                None => own,
            }
        }
        _ => return None,
    };
    (of(&item) == pk).then_some(item)
}

/// Whose item it is that a `pk` is of, whatever it is about; `None` if it is a digest, or nothing that this module writes.
#[must_use]
pub fn key_of(pk: &str) -> Option<Key> {
    let of_another = |kind: &str, pk_of: fn(&str, &Key) -> String| {
        let (name, key) = pk.strip_prefix("1/")?.strip_prefix(kind)?.strip_prefix('/')?.split_once('/')?;
        let key = key.parse().ok()?;
        (pk_of(name, &key) == pk).then_some(key)
    };
    parse(pk)
        .map(|item| item.key)
        .or_else(|| of_another("otp", otp))
        .or_else(|| of_another("mfa", mfa))
        .or_else(|| of_another("audit", audit))
}

/// The `pk` of an item.
#[must_use]
pub fn of(item: &ItemKey) -> String {
    // A limit's name has neither slash nor dot.
    stored(match (&item.own, item.shard()) {
        (None, _) => format!("key/{}", item.key),
        (Some(limit), None) => format!("own/{limit}/{}", item.key),
        (Some(limit), Some(shard)) => format!("own/{limit}.{shard}/{}", item.key),
    })
}

/// The `pk` of the one-time codes of `key` for `purpose`, which has no slash.
#[must_use]
pub fn otp(purpose: &str, key: &Key) -> String {
    stored(format!("otp/{purpose}/{key}"))
}

/// The `pk` of what is remembered of how `key` has proved who it is; `what` has no slash.
#[must_use]
pub fn mfa(what: &str, key: &Key) -> String {
    stored(format!("mfa/{what}/{key}"))
}

/// The `pk` of an item of the audit log of `key`; `what` has no slash.
#[must_use]
pub fn audit(what: &str, key: &Key) -> String {
    stored(format!("audit/{what}/{key}"))
}

/// The `pk` of what is counted of messages, under a name of its own.
#[must_use]
pub fn pumping(name: &str) -> String {
    stored(format!("pumping/{name}"))
}

/// The `pk` of a list for whoever stands in front.
#[must_use]
pub fn edge(name: &str) -> String {
    stored(format!("edge/{name}"))
}

fn stored(canonical: String) -> String {
    if canonical.len() <= LONGEST_PLAIN {
        return format!("1/{canonical}");
    }
    let mut pk = String::from(DIGEST);
    for byte in Sha256::digest(canonical.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(pk, "{byte:02x}");
    }
    pk
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{DIGEST, key_of, of, otp, parse};
    use tollgate_core::{ItemKey, Key, LimitName};

    #[test]
    fn a_pk_is_read_back_unless_it_is_a_digest_or_not_ours() {
        let key = Key::new([("user", "a/b:c,d%"), ("tenant", "1/own/x/y")]).unwrap();
        let orders = LimitName::new("orders").unwrap();
        let own = ItemKey::own(key.clone(), orders);
        let shards = [0, 7, 99].map(|index| own.on_shard(index));
        assert_eq!(of(&shards[1]), format!("1/own/orders.7/{key}"));
        assert_eq!(ItemKey::shared(key.clone()).on_shard(7), ItemKey::shared(key.clone()), "it has none");
        for item in [ItemKey::shared(key), own].into_iter().chain(shards) {
            assert_eq!(parse(&of(&item)), Some(item));
        }
        let long = ItemKey::shared(Key::new([("user", "x".repeat(300))]).unwrap());
        assert!(of(&long).starts_with(DIGEST));
        let shards =
            ["1/own/a./user:a", "1/own/a.07/user:a", "1/own/a.-1/user:a", "1/own/a.1.1/user:a", "1/own/.1/user:a"];
        let others = ["1/warm-up", "2/key/user:a", "1/key/user", "1/key/b:x,a:y", "1/key/a:%3a", "1/own/user:a", ""];
        for pk in others.into_iter().chain(shards).chain([&*of(&long)]) {
            assert_eq!(parse(pk), None, "{pk}");
        }
    }

    #[test]
    fn codes_have_items_of_their_own_that_are_no_limits() {
        let key = Key::new([("user", "a/b:c"), ("tenant", "login/x")]).unwrap();
        let pk = otp("login", &key);
        assert_eq!((pk.as_str(), parse(&pk)), ("1/otp/login/tenant:login/x,user:a/b%3Ac", None));
        assert_eq!(key_of(&pk), Some(key.clone()));
        assert_eq!(key_of(&of(&ItemKey::shared(key.clone()))), Some(key));
        let long = Key::new([("user", "x".repeat(300))]).unwrap();
        assert!(otp("login", &long).starts_with(DIGEST) && otp("login", &long) != otp("log-in", &long));
        assert_eq!(key_of("1/otp/login/b:x,a:y"), None);
    }
}
