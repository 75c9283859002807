//! `a * b / c` rounded up, with a 256-bit product: debts times windows pass 128 bits.

use bnum::cast::CastFrom;
use bnum::types::U256;

/// `ceil(a * b / c)`, or `i128::MAX` if that does not fit. Negative operands count as 0.
///
/// `c` is positive for every caller: it is a period or a window, and those are bounded below by 1.
pub(crate) fn mul_div_ceil(a: i128, b: i128, c: i128) -> i128 {
    let (a, b, c) = (wide(a), wide(b), wide(c.max(1)));
    // 127 bits times 127 bits is below 2^254.
    let quotient = (a * b).div_ceil(c);
    u128::try_from(quotient).ok().and_then(|q| i128::try_from(q).ok()).unwrap_or(i128::MAX)
}

fn wide(v: i128) -> U256 {
    U256::cast_from(u128::try_from(v).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::mul_div_ceil;

    #[test]
    fn products_past_128_bits_are_exact_and_rounded_up() {
        let big = 10_i128.pow(30);
        assert_eq!(mul_div_ceil(big, big, big), big);
        assert_eq!(mul_div_ceil(big, big + 1, big), big + 1);
        assert_eq!(mul_div_ceil(7, 10, 3), 24);
        assert_eq!(mul_div_ceil(0, big, 3), 0);
        assert_eq!(mul_div_ceil(i128::MAX, i128::MAX, 1), i128::MAX);
    }
}
