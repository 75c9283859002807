//! From a policy's `[edge]` to rules of AWS WAF: rendered, checked, planned, applied, and evaluated offline.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | `model` | a web ACL's rules as values |
//! | [`render`] | from a policy to these; pure |
//! | `shape` | these as JSON |
//! | [`output`] | templates, properties and calls for other tools |
//! | [`capacity`] | how many capacity units they take |
//! | [`check`] | what WAF would refuse |
//! | [`evaluate`] | what rules say of a request, whoever wrote them |
//! | [`offline()`] | a policy's rules, for these |
//! | [`converge`] | bringing an ACL to what a policy says |
//! | `aws` | the API, by the SDK; a feature |

#[cfg(feature = "aws")]
pub mod aws;
pub mod capacity;
pub mod check;
pub mod converge;
pub mod evaluate;
mod model;
mod offline;
pub mod output;
pub mod render;
mod shape;

pub use model::{Action, Body, Field, IpSet, Logging, Position, Rule, Statement, Transform, WebAcl};
pub use offline::offline;
pub use shape::TAG;
