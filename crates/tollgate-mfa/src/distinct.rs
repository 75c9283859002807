//! Whether two factors are two: of different kinds, and not one channel twice.
//!
//! ```text
//! signed in by (amr)         is not the first of two with
//! pwd, pin, kba              itself
//! sms, tel                   a code by SMS
//! email                      a code by email
//! otp                        a code of an app, by SMS or by email: nobody knows which it was
//! hwk, swk, pop, sc          nothing: a passkey is unlocked, and so two factors by itself
//! fpt, face, iris, …         itself
//! ```
//!
//! Invariant: whoever has proved more by signing in is never worse off; of a sign-in of which nothing is known no second factor is one.

/// What a method shows: two methods that show the same are one factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Knowledge,
    Phone,
    Mailbox,
    /// A one-time code.
    Code,
    Key,
    Body,
}

impl Means {
    /// Of a method by RFC 8176, or `email`, which that list has not. Others, like `mfa` and `user`, say nothing of what was shown.
    fn of(method: &str) -> Option<Self> {
        Some(match method {
            "pwd" | "pin" | "kba" => Self::Knowledge,
            "sms" | "tel" => Self::Phone,
            "email" => Self::Mailbox,
            "otp" => Self::Code,
            "hwk" | "swk" | "pop" | "sc" => Self::Key,
            "face" | "fpt" | "iris" | "retina" | "vbm" => Self::Body,
            _ => return None,
        })
    }

    /// Whether `second`, which was verified here, may be what was shown by signing in.
    fn may_be(self, second: Self) -> bool {
        self == second || (self == Self::Code && matches!(second, Self::Phone | Self::Mailbox))
    }
}

/// Whether a factor that was verified here, by the methods `second`, is another one than what was signed in by, `first`, both as `amr`.
#[must_use]
pub fn distinct<A: AsRef<str>, B: AsRef<str>>(first: &[A], second: &[B]) -> bool {
    let second: Vec<_> = second.iter().filter_map(|method| Means::of(method.as_ref())).collect();
    let mut first = first.iter().filter_map(|method| Means::of(method.as_ref()));
    if second.contains(&Means::Key) {
        return true;
    }
    // Recovery codes are shown by nothing that one signs in by.
    first.any(|first| second.iter().all(|second| !first.may_be(*second)))
}

/// What somebody has signed in by: what his token says (`amr`) and by which codes that was, as his session knows it; where both say
/// nothing, what is `assumed`.
#[must_use]
pub fn first_factor<'a>(
    amr: impl IntoIterator<Item = &'a str>,
    codes: impl IntoIterator<Item = &'a str>,
    assumed: &[String],
) -> Vec<String> {
    let known: Vec<String> = amr.into_iter().chain(codes).map(str::to_owned).collect();
    if known.is_empty() { assumed.to_vec() } else { known }
}
