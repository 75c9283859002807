//! How strongly counts speak against what is normal: exact one-sided bounds, in nats.
//!
//! Invariant: nothing is divided by a count. A few messages are weak evidence by themselves, since the bound of Chernoff
//! (H. Chernoff 1952; Mitzenmacher and Upfal, "Probability and Computing", section 4.2) holds for any number of them: what would
//! happen by chance with probability `p` or less is evidence of `-ln p` nats.

/// Evidence that is acted on: by chance once in a million. The sentinel judges some hundred prefixes of a country, by figures that
/// are new every five minutes, so chance alone is taken for an attack once a month at most, and then some people solve a CAPTCHA for
/// half an hour.
pub const ENOUGH: f64 = 13.815_510_557_964_274;

/// Evidence that makes it likely, by chance once in twenty: enough only where something else is known already.
pub const SOME: f64 = 2.995_732_273_553_991;

/// How strongly it speaks against each of `of` being verified with probability `p` (in 0 to 1) that `verified` were, or fewer.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn too_few(verified: u64, of: u64, p: f64) -> f64 {
    let (n, k) = (of as f64, verified.min(of) as f64);
    if n * p <= k {
        return 0.0;
    }
    // n * KL(k/n || p), without the quotient: k ln(k / (n p)) + (n - k) ln((n - k) / (n (1 - p))).
    let term = |x: f64, expected: f64| if x > 0.0 { x * (x / expected).ln() } else { 0.0 };
    term(k, n * p) + term(n - k, n * (1.0 - p))
}

/// How strongly it speaks against `expected` of something, which is rare and independent, that there were `found` or more.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn too_many(found: u64, expected: f64) -> f64 {
    let x = found as f64;
    if x <= expected || expected <= 0.0 { 0.0 } else { x * (x / expected).ln() - x + expected }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_precision_loss)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The probability itself, by summing.
    fn at_most(k: u64, n: u64, p: f64) -> f64 {
        let ln_factorial = |n: u64| (2..=n).map(|i| (i as f64).ln()).sum::<f64>();
        let term = |i: u64| {
            let ways = ln_factorial(n) - ln_factorial(i) - ln_factorial(n - i);
            (ways + i as f64 * p.ln() + (n - i) as f64 * (1.0 - p).ln()).exp()
        };
        (0..=k).map(term).sum()
    }

    proptest! {
        #[test]
        fn chance_is_never_taken_for_more_than_it_is(n in 1_u64..300, k in 0_u64..300, p in 0.02_f64..0.98) {
            let k = k.min(n);
            prop_assert!(at_most(k, n, p) <= (-too_few(k, n, p)).exp() + 1e-9);
        }

        #[test]
        fn a_few_messages_prove_nothing(n in 0_u64..13, p in 0.0_f64..0.65) {
            prop_assert!(too_few(0, n, p) < ENOUGH);
            prop_assert!(too_few(0, n, p).is_finite());
        }

        #[test]
        fn more_of_the_same_is_more_evidence(n in 1_u64..1000, p in 0.02_f64..0.98) {
            prop_assert!(too_few(0, n + 1, p) > too_few(0, n, p));
            prop_assert!(too_few(1, n, p) <= too_few(0, n, p));
        }
    }

    #[test]
    fn nothing_sent_is_no_evidence() {
        assert!(too_few(0, 0, 0.5) == 0.0 && too_few(5, 0, 0.5) == 0.0 && too_many(0, 0.0) == 0.0);
        assert!(too_few(50, 100, 0.5) == 0.0 && too_few(51, 100, 0.5) == 0.0);
    }

    #[test]
    fn neighbours_by_chance_are_no_evidence_and_runs_are() {
        assert!(too_many(1, 1.0) == 0.0);
        // Of twenty messages one is to be expected.
        assert!(too_many(4, 1.0) < ENOUGH && too_many(10, 1.0) > ENOUGH);
    }
}
