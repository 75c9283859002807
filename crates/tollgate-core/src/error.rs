//! What can be wrong with the figures, keys and costs that a caller hands in; each message says what to write instead.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Bad input to the core. A denial is never an error: see [`Outcome`](crate::Outcome).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure of a token bucket is outside its range.
    #[error("{figure} must be {range}, not {found}")]
    Figure {
        /// Which figure: `rate`, `period` or `burst`.
        figure: &'static str,
        /// The range that is allowed, in words.
        range: &'static str,
        /// What was given.
        found: String,
    },
    /// An empty bucket would need longer than [`TokenBucket::MAX_REFILL_NS`](crate::TokenBucket::MAX_REFILL_NS).
    #[error("an empty bucket would take more than 10,000 years to fill; lower the burst or raise the rate")]
    RefillTooLong,
    /// A limit's name is empty, too long or has characters that an attribute name should not carry.
    #[error("limit name {0:?} must be 1 to 64 of the characters a-z, A-Z, 0-9, `-` and `_`")]
    LimitName(String),
    /// A key has no dimension, or one without a name or value.
    #[error("key dimension {0:?} is empty; every dimension needs a name and a value")]
    EmptyKey(String),
    /// A dimension occurs twice in one key.
    #[error("key dimension {0:?} is given twice")]
    DuplicateDimension(String),
    /// A key is longer than [`Key::MAX_BYTES`](crate::Key::MAX_BYTES).
    #[error("key is {bytes} bytes long; the most is 2048")]
    KeyTooLong {
        /// Length of names and values together, in bytes of UTF-8.
        bytes: usize,
    },
    /// Text that is not the canonical form of a key.
    #[error("{text:?} is not a key: {why}; write it like `user:alice` or `tenant:acme,user:alice`")]
    KeySyntax {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A cost is above [`TokenBucket::MAX_TOKENS`](crate::TokenBucket::MAX_TOKENS).
    #[error("cost must be a whole number from 0 to 1,000,000,000,000, not {0}")]
    Cost(u64),
    /// One limit is charged twice in one decision.
    #[error("limit {0:?} is charged twice in one decision; add the costs up instead")]
    DuplicateCharge(String),
    /// A decision charges more limits than one write can carry.
    #[error("a decision on {0} limits of one key is more than the 16 that one write can carry; split it")]
    TooManyCharges(usize),
    /// A decision charges more items than [`Charges::MOST_ITEMS`](crate::Charges::MOST_ITEMS).
    #[error(
        "a decision on more than 25 items (each key, under each secret, and each limit with an item of its own); split it"
    )]
    TooManyItems,
    /// A hold overrides more limits of one key than an item has room for.
    #[error("{0} limits of one key would have other figures; the most is 16: lift some with `tollgate allow`")]
    TooManyOverrides(usize),
    /// An override counts over another period than the state that is stored.
    #[error(
        "limit {0:?} of this key is counted over another period, and an override has to keep that: two periods cannot share one count"
    )]
    OverridePeriod(String),
    /// A decision that charges nothing.
    #[error("a decision needs at least one limit to charge")]
    NoCharges,
    /// A stored attribute does not have the form that this version writes.
    #[error(
        "stored attribute {attribute:?} holds {found:?}, which this version did not write; delete the item or use another table"
    )]
    Stored {
        /// The attribute's name.
        attribute: String,
        /// What it holds.
        found: String,
    },
}
