//! From a policy's `[edge]` to rules of AWS WAF: rendered, checked, planned, applied, and evaluated offline.
//!
//! ```
//! use tollgate_policy::Policy;
//! use tollgate_waf::evaluate::{Request, Truth};
//! use tollgate_waf::{offline, render};
//!
//! let text = r#"
//!     version = 1
//!     [edge]
//!     rules = [{ name = "rate-auth", paths = ["/api/auth/"], rate = "100/5min" }]
//! "#;
//! let policy = Policy::parse(text).map_err(|findings| findings.render("tollgate.toml"))?.policy;
//! let acl = render::web_acl(&policy).ok_or("no [edge]")?;
//! let crooked = Request::new("POST", "/webhooks/../api/%61uth/login", None);
//! assert_eq!(offline(&acl).counts("tollgate-rate-auth", &crooked), Some(Truth::Yes));
//! # Ok::<(), String>(())
//! ```
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
//! | [`kept_out`] | who of those that were locked once too often is kept out |
//! | [`converge`] | bringing an ACL to what a policy says |
//! | `aws` | the API, by the SDK; a feature |

#[cfg(feature = "aws")]
pub mod aws;
pub mod capacity;
pub mod check;
pub mod converge;
pub mod evaluate;
pub mod kept_out;
mod model;
mod offline;
pub mod output;
pub mod render;
mod shape;

pub use model::{
    Action, Body, CLOUDFRONT_REGION, Catches, Field, IpSet, Logging, Position, Rate, Rule, Statement, Transform, WebAcl,
};
pub use offline::offline;
pub use shape::{ACL_TAG, TAG};
