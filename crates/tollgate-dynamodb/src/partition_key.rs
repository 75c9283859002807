//! A key as the table's `pk`: versioned, injective, and at most 256 bytes.
//!
//! `1/key/user:alice` is the item that the limits of that key share, `1/own/orders/user:alice` the one that the limit
//! `orders` has for itself. The leading number is the version of this scheme: a later scheme never reads the items of an
//! earlier one by accident. What is longer than 256 bytes is stored as `1/sha/<sha-256 in hex>` (DynamoDB's own bound is
//! 2048 bytes); no short key can spell that.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use tollgate_core::ItemKey;

/// The name of the partition key attribute.
pub const ATTRIBUTE: &str = "pk";

/// Longest `pk` that is stored as it is, in bytes of UTF-8.
pub const LONGEST_PLAIN: usize = 256;

/// The `pk` of an item.
#[must_use]
pub fn of(item: &ItemKey) -> String {
    // A limit's name has no slash.
    let canonical = match &item.own {
        None => format!("key/{}", item.key),
        Some(limit) => format!("own/{limit}/{}", item.key),
    };
    if canonical.len() <= LONGEST_PLAIN {
        return format!("1/{canonical}");
    }
    let mut pk = String::from("1/sha/");
    for byte in Sha256::digest(canonical.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(pk, "{byte:02x}");
    }
    pk
}
