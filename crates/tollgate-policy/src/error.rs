//! What a caller of a policy can get wrong; each message says what to give instead and none contains a key's value,
//! since values can be personal.

use crate::diagnostic::Diagnostics;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A policy that cannot be used, or a charge that does not fit it. A denial is never an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("cannot read the policy file {path}: {source}; check the path and its permissions")]
    Read {
        /// The path as it was given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file has mistakes.
    #[error("{}", diagnostics.render(path).trim_end())]
    Invalid {
        /// The path as it was given.
        path: String,
        /// All mistakes, and warnings.
        diagnostics: Diagnostics,
    },
    /// A limit that the policy does not have.
    #[error("unknown limit {limit:?}: {help}")]
    UnknownLimit {
        /// The name that was given.
        limit: String,
        /// The nearest limit, or all of them.
        help: String,
    },
    /// A limit that is never counted by such a key.
    #[error("limit {limit:?} is not counted by {dimensions}; its key is: {wants}; {help}")]
    OtherKey {
        /// The limit.
        limit: String,
        /// The dimensions of the key.
        dimensions: String,
        /// What the limit's key wants.
        wants: String,
        /// The limits that are counted by such a key.
        help: String,
    },
    /// No limit is ever counted by such a key.
    #[error("no limit of the policy is counted by {dimensions}; keys of its limits: {wants}")]
    NobodysKey {
        /// The dimensions of the key.
        dimensions: String,
        /// The keys that limits have.
        wants: String,
    },
    /// Text that is no rate or duration.
    #[error("{message}; {help}")]
    Notation {
        /// What is wrong.
        message: String,
        /// What to write.
        help: String,
    },
    /// A plan that the policy does not have.
    #[error("unknown plan {plan:?}: {help}")]
    UnknownPlan {
        /// The name that was given.
        plan: String,
        /// The nearest plan, or all of them.
        help: String,
    },
    /// No dimension was given for an entry of a limit's key.
    #[error("limit {limit:?} needs a value for `{wanted}`; its key is: {wants}")]
    MissingDimension {
        /// Which limit.
        limit: String,
        /// The entry of its key, with its alternatives.
        wanted: String,
        /// Its whole key.
        wants: String,
    },
    /// A dimension was given that the limit's key does not have.
    #[error("limit {limit:?} is not counted by {dimension:?}; its key is: {wants}")]
    SurplusDimension {
        /// Which limit.
        limit: String,
        /// The dimension's name.
        dimension: String,
        /// The limit's whole key.
        wants: String,
    },
    /// A dimension was given without a value.
    #[error("key dimension {dimension:?} of limit {limit:?} is empty; give it a value; the key is: {wants}")]
    EmptyDimension {
        /// Which limit.
        limit: String,
        /// The dimension's name.
        dimension: String,
        /// The limit's whole key.
        wants: String,
    },
    /// A dimension that is no device was to be one.
    #[error("{dimension:?} is no device of the policy: {help}")]
    NoDevice {
        /// The name that was given.
        dimension: String,
        /// The nearest device, or all of them.
        help: String,
    },
    /// Nothing of the value that a device was to be bound to counts.
    #[error("a device is bound to `{bound_to}`, and the value that was given for it is empty")]
    EmptyDevice {
        /// The dimension.
        bound_to: String,
    },
    /// The system gave no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
    /// The policy has no one-time codes.
    #[error("the policy has no [otp]; add one with `purposes = [\"login\"]`")]
    NoOtp,
    /// The policy has no second factors.
    #[error("the policy has no [mfa]; add one with `issuer = \"Example Ltd\"`")]
    NoMfa,
    /// A purpose that one-time codes of the policy do not have.
    #[error("unknown purpose {purpose:?}: {help}")]
    UnknownPurpose {
        /// The name that was given.
        purpose: String,
        /// The nearest purpose, or all of them.
        help: String,
    },
    /// There is no secret to hash personal values and one-time codes under, or to sign devices' tokens by.
    #[error(
        "{what}: personal values and one-time codes are kept as keyed hashes, devices have signed tokens, and there are no key \
         secrets; set TOLLGATE_KEY_SECRETS to k1=SECRET (`openssl rand -base64 32` makes one), or \
         TOLLGATE_KEY_SECRETS_PARAMETER to the name of a SecureString that has this text"
    )]
    NoSecrets {
        /// What needs them: dimensions, or `otp`; in backquotes.
        what: String,
    },
    /// The key, a cost or the combination of charges is outside what a decision can be.
    #[error(transparent)]
    Core(#[from] tollgate_core::Error),
}
