//! Codes for whoever has lost his app: random, shown once, stored as hashes, each used once.
//!
//! A code is 25 characters of Crockford's base 32, 125 random bits (NIST SP 800-63B-4, section 3.1.2.2: 112 at least need no salted
//! and slow hash). Invariant: what is stored is bound to the account, so that no item's hashes are good in another; a code is in no debug
//! text, and wiped from memory when it is dropped.

use super::random;
use crate::error::Result;
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// Codes that are made at once.
pub const CODES: usize = 10;

/// Without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of a code, five bits each, and of a group.
const LENGTH: usize = 25;
const GROUP: usize = 5;

/// What is hashed beside a code; nothing else is under that name.
const HASHED: &[u8] = b"recovery code 1";

/// A recovery code.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(Zeroizing<String>);

/// What is stored of one: SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeHash(pub [u8; 32]);

impl RecoveryCode {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`](crate::Error::NoRandomness) if the system has none.
    pub fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        random(bytes.as_mut())?;
        // 32 divides 256: each character is as likely as any other.
        let characters = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        Ok(Self(Zeroizing::new(characters.collect())))
    }

    /// The code that somebody has typed, whatever its case, blanks and hyphens, with `O` for `0` and `I` or `L` for `1`; `None` for
    /// what has never been one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // Twice what a code takes with its hyphens: what is longer is not looked at, since a stranger has sent it.
        if text.len() > 2 * (LENGTH + LENGTH / GROUP) {
            return None;
        }
        let mut code = Zeroizing::new(String::with_capacity(LENGTH));
        for c in text.chars().filter(|c| !c.is_whitespace() && *c != '-') {
            let c = match c.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                c => c,
            };
            let is_one = u8::try_from(c).is_ok_and(|byte| ALPHABET.contains(&byte));
            if !is_one || code.len() == LENGTH {
                return None;
            }
            code.push(c);
        }
        (code.len() == LENGTH).then_some(Self(code))
    }

    /// The code as a person is shown it: five groups with hyphens between.
    #[must_use]
    pub fn shown(&self) -> Zeroizing<String> {
        let mut shown = Zeroizing::new(String::with_capacity(LENGTH + LENGTH / GROUP));
        for (n, c) in self.0.chars().enumerate() {
            if n > 0 && n.is_multiple_of(GROUP) {
                shown.push('-');
            }
            shown.push(c);
        }
        shown
    }

    /// What is stored of it for the account whose item has that partition key.
    #[must_use]
    pub fn hash(&self, pk: &str) -> CodeHash {
        let mut hash = Sha256::new();
        for part in [HASHED, pk.as_bytes(), self.0.as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        CodeHash(hash.finalize().into())
    }
}

/// Without the code.
impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(..)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_five_groups_of_five_and_read_back_however_it_is_typed() {
        let code = RecoveryCode::random().unwrap();
        let shown = code.shown();
        assert_eq!(shown.split('-').map(str::len).collect::<Vec<_>>(), [5; 5]);
        let typed = [
            shown.to_string(),
            shown.to_lowercase(),
            shown.replace('-', ""),
            shown.replace('-', " "),
            format!("  {}\n", shown.replace('0', "o").replace('1', "l")),
            shown.replace('0', "O").replace('1', "I"),
        ];
        for typed in typed {
            assert_eq!(RecoveryCode::parse(&typed).as_ref(), Some(&code), "{typed}");
        }
    }

    #[test]
    fn what_has_never_been_a_code_is_none() {
        let shown = RecoveryCode::random().unwrap().shown();
        let wrong = [
            "",
            &shown[1..],
            &format!("{}0", *shown),
            &shown.replace('-', "_"),
            &"U".repeat(25),
            &"é".repeat(25),
            &"0".repeat(60),
        ];
        for wrong in wrong {
            assert_eq!(RecoveryCode::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_character_is_drawn_and_no_two_codes_are_alike() {
        let codes: Vec<_> = (0..200).map(|_| RecoveryCode::random().unwrap()).collect();
        let drawn: std::collections::BTreeSet<_> = codes.iter().flat_map(|code| code.0.chars()).collect();
        assert_eq!(drawn.len(), 32, "one of them is missing once in 10^67 times");
        let all: std::collections::BTreeSet<_> = codes.iter().map(|code| code.shown().to_string()).collect();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn what_is_stored_is_bound_to_the_account() {
        let code = RecoveryCode::parse("00000-11111-22222-33333-ZZZZZ").unwrap();
        // Python: hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in [b"recovery code 1", b"1/mfa/factors/user:a",
        //   b"00000111112222233333ZZZZZ"])).hexdigest()
        let hex: String = code.hash("1/mfa/factors/user:a").0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "7ea45d97c5486ed295ce1cf5f81576908bcb4d2f7dd41beeca0895644710d850");
        assert_ne!(code.hash("1/mfa/factors/user:a"), code.hash("1/mfa/factors/user:b"));
        assert_eq!(format!("{code:?}"), "RecoveryCode(..)");
    }
}
