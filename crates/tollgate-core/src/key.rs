//! Who is charged: named dimensions, composed so that no two different keys ever share a bucket, and the item that is kept
//! of them.
//!
//! Invariant: composition is injective. Dimensions are sorted by name, and `%`, `,` and `:` are percent-escaped in
//! names and values, so (`a:b`, `c`) and (`a`, `b:c`) differ.

use crate::charge::LimitName;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The dimensions that a limit is counted by, like `user:alice` or `tenant:acme,user:alice`. Any Unicode; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    dimensions: Arc<[(String, String)]>,
}

impl Key {
    /// Longest key, in bytes of UTF-8 of its names and values together: 2048.
    pub const MAX_BYTES: usize = 2048;

    /// A key of the given dimensions, in any order.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyKey`], [`Error::DuplicateDimension`] or [`Error::KeyTooLong`].
    pub fn new<N: Into<String>, V: Into<String>>(dimensions: impl IntoIterator<Item = (N, V)>) -> Result<Self> {
        let mut dimensions: Vec<(String, String)> =
            dimensions.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        if dimensions.is_empty() {
            return Err(Error::EmptyKey(String::new()));
        }
        if let Some((name, _)) = dimensions.iter().find(|(name, value)| name.is_empty() || value.is_empty()) {
            return Err(Error::EmptyKey(name.clone()));
        }
        let bytes = dimensions.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > Self::MAX_BYTES {
            return Err(Error::KeyTooLong { bytes });
        }
        dimensions.sort();
        if let Some(pair) = dimensions.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::DuplicateDimension(pair[0].0.clone()));
        }
        Ok(Self { dimensions: dimensions.into() })
    }

    /// Names and values, sorted by name.
    pub fn dimensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.dimensions.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.dimensions.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            escape(name, f)?;
            f.write_str(":")?;
            escape(value, f)?;
        }
        Ok(())
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = |why| Error::KeySyntax { text: text.to_owned(), why };
        let dimensions = text.split(',').map(|dimension| {
            let (name, value) = dimension.split_once(':').ok_or_else(|| bad("a dimension has no `:`"))?;
            if value.contains(':') {
                return Err(bad("`:` in a value is written %3A"));
            }
            let unescape = |part| {
                unescape(part).ok_or_else(|| bad("`%` is followed by the wrong characters; write %25, %2C or %3A"))
            };
            Ok((unescape(name)?, unescape(value)?))
        });
        Self::new(dimensions.collect::<Result<Vec<_>>>()?)
    }
}

/// The item of the table that a decision charges: the one that all limits of a key share, one of a limit's own, or one of the shards
/// that such a limit is divided among.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    /// Who is charged.
    pub key: Key,
    /// The limit that has the item for itself (`own_item` in the policy); `None` is the item that the others share.
    pub own: Option<LimitName>,
    shard: Option<u16>,
}

impl ItemKey {
    /// The item that limits of `key` share.
    #[must_use]
    pub fn shared(key: Key) -> Self {
        Self { key, own: None, shard: None }
    }

    /// The item that `limit` has for itself.
    #[must_use]
    pub fn own(key: Key, limit: LimitName) -> Self {
        Self { key, own: Some(limit), shard: None }
    }

    /// A shard of the same limit's, by its number from 0; of an item that limits share, that item.
    #[must_use]
    pub fn on_shard(&self, index: u16) -> Self {
        Self { shard: self.own.as_ref().map(|_| index), ..self.clone() }
    }

    /// Which shard of its limit it is, if the limit is divided.
    #[must_use]
    pub fn shard(&self) -> Option<u16> {
        self.shard
    }
}

fn escape(part: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = part;
    while let Some(at) = rest.find(['%', ',', ':']) {
        f.write_str(&rest[..at])?;
        // The three are one byte each.
        write!(f, "%{:02X}", rest.as_bytes()[at])?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)
}

fn unescape(part: &str) -> Option<String> {
    let mut pieces = part.split('%');
    let mut out = String::from(pieces.next()?);
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        out.push(match code {
            "25" => '%',
            "2C" | "2c" => ',',
            "3A" | "3a" => ':',
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}
