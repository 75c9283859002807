//! What second factors need of AWS where they are deployed: a vault on KMS.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`kms`] | [`KmsVault`]: secrets under a key that never leaves KMS |
//!
//! The SDK's crate is large, so it is a dependency of this crate alone, and this one of the deployed function alone.

pub mod kms;

pub use kms::{KmsVault, NoKey};
pub use tollgate_dynamodb::connect::services as config;
