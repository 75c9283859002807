//! Two pages on the whole: [`proof`] says what is proved, checked, tested and assumed, and how to look again; [`scale`] what it costs from
//! 1 to a million decisions a second, and what breaks first.
//!
//! Invariant: each figure of `scale` that follows from others is worked out anew by a test.

#[doc = include_str!("../../docs/proof.md")]
pub mod proof {}

#[doc = include_str!("../../docs/scale.md")]
pub mod scale {}

#[cfg(test)]
mod tests;
