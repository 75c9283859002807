//! One spelling for what is the same to whoever is counted: `ADMIN@x.org` and `admin@x.org`, `98765 43210` and
//! `+919876543210`. For limiting only; nobody is addressed by what comes out here.
//!
//! Invariant: folding what was folded changes nothing, any text folds to a text, and what is no address or number still
//! folds by the rules for text, so that trivially different spellings never have buckets of their own.

use icu_normalizer::ComposingNormalizerBorrowed;
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat};
use std::fmt;

/// Most times that a value is folded again. No text was found to change more than twice. A number can be read as another one again and again,
/// each time without some of its zeros, and has 17 digits and a country code of three at most.
const FOLDS: usize = 20;

/// Which spellings of a value are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Fold {
    /// Each is its own.
    #[default]
    None,
    /// `lower`: without regard to case, to compatibility forms (full-width letters), to characters that nobody sees and
    /// to blanks around it.
    Lower,
    /// `email`: as `lower`, without any blank, the domain as it is looked up (IDNA). The local part keeps its dots and
    /// what follows a `+`, which a service may tell accounts apart by.
    Email,
    /// `mailbox`: as `email`, without what follows a `+` in the local part (RFC 5233), since it is delivered to the same
    /// person: for limits on messages that are sent. Dots stay: most providers tell them apart.
    Mailbox,
    /// `phone`: a number in E.164, national ones read as of the region. A number that no plan knows is its digits.
    Phone(Option<Region>),
}

impl Fold {
    /// Whether what is folded like this is about a person, and goes into keys as a keyed hash only.
    #[must_use]
    pub fn is_personal(self) -> bool {
        matches!(self, Self::Email | Self::Mailbox | Self::Phone(_))
    }

    /// The one spelling of `value`; empty if nothing of it counts.
    #[must_use]
    pub fn apply(self, value: &str) -> String {
        let mut folded = self.once(value);
        // What is left of a number that none was can be one, and that is how it will be read the next time.
        for _ in 0..FOLDS {
            let again = self.once(&folded);
            if again == folded {
                break;
            }
            folded = again;
        }
        folded
    }

    fn once(self, value: &str) -> String {
        match self {
            Self::None => value.to_owned(),
            Self::Lower => text(value),
            Self::Email => email(value, false),
            Self::Mailbox => email(value, true),
            Self::Phone(region) => phone(value, region),
        }
    }
}

/// Where a number without a country code belongs: two letters of ISO 3166-1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region(rlibphonenumber::Region);

impl Region {
    /// The region of a code in upper case, if it has a numbering plan.
    pub(crate) fn parse(code: &str) -> Option<Self> {
        let region =
            code.bytes().all(|b| b.is_ascii_uppercase()).then(|| rlibphonenumber::Region::from_code(code).ok())??;
        PHONE_NUMBER_UTIL.get_country_code_for_region(region).map(|_| Self(region))
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Unicode's compatibility composition, then each letter by its capital: without regard to where in a word it stands, so
/// that the two small sigmas are one, and dotless i, long s and the Kelvin sign are the letters that they pass for.
fn text(value: &str) -> String {
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    let visible: String = nfkc.normalize(value).chars().filter(|c| !is_invisible(*c)).collect();
    let folded: String = visible.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    nfkc.normalize(folded.trim()).into_owned()
}

/// Control characters, and those that only steer others (of `Default_Ignorable_Code_Point`, the ones that are pasted).
fn is_invisible(c: char) -> bool {
    let blank = c.is_whitespace();
    let steers = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
    steers || (c.is_control() && !blank)
}

fn email(value: &str, one_mailbox: bool) -> String {
    let folded: String = text(value).chars().filter(|c| !c.is_whitespace()).collect();
    let Some((local, domain)) = folded.rsplit_once('@') else { return folded };
    let local =
        local.split_once('+').filter(|(user, _)| one_mailbox && !user.is_empty()).map_or(local, |(user, _)| user);
    let domain = idna::domain_to_ascii(domain).unwrap_or_else(|_| domain.to_owned());
    format!("{local}@{}", domain.trim_end_matches('.'))
}

fn phone(value: &str, region: Option<Region>) -> String {
    let folded = text(value);
    // Digits of any script, and the full-width plus, are what the parser reads as well; here they also make the fall-back.
    let international = folded.strip_prefix("00").filter(|_| region.is_none());
    let written = international.map_or_else(|| folded.clone(), |rest| format!("+{rest}"));
    if let Ok(number) = PHONE_NUMBER_UTIL.parse(&written, region.map(|region| region.0)) {
        return PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164).into_owned();
    }
    if written.chars().any(char::is_alphabetic) {
        return folded;
    }
    let digits = PHONE_NUMBER_UTIL.normalize_digits_only(&written);
    match (written.starts_with('+'), digits.is_empty()) {
        (_, true) => folded,
        (true, false) => format!("+{digits}"),
        (false, false) => digits,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn one(fold: Fold, spellings: &[&str], expected: &str) {
        for spelling in spellings {
            assert_eq!(fold.apply(spelling), expected, "{spelling:?}");
        }
        assert_eq!(fold.apply(expected), expected, "folded twice");
    }

    fn india() -> Fold {
        Fold::Phone(Region::parse("IN"))
    }

    #[test]
    fn an_account_is_one_whatever_its_case_width_and_what_nobody_sees() {
        let spellings =
            ["admin@x.org", "ADMIN@x.org", " Admin@X.ORG\t", "\u{feff}ad\u{200b}min@x.org", "ａｄｍｉｎ＠ｘ．ｏｒｇ"];
        one(Fold::Email, &spellings, "admin@x.org");
        one(Fold::Email, &["straße@x.org", "STRASSE@X.ORG"], "strasse@x.org");
        one(Fold::Email, &["ΟΔΥΣΣΕΥΣ@x.org", "οδυσσευς@x.org"], "οδυσσευσ@x.org");
        one(
            Fold::Email,
            &["a@bücher.example", "a@XN--BCHER-KVA.example.", "a@bücher。example"],
            "a@xn--bcher-kva.example",
        );
        one(Fold::Email, &["bob+x@example.com"], "bob+x@example.com");
        one(Fold::Email, &["b.o.b@example.com"], "b.o.b@example.com");
        one(Fold::Email, &["\"a@b\"@x.org"], "\"a@b\"@x.org");
        one(Fold::Email, &["Alice", "ALICE ", "ａlice"], "alice");
        one(Fold::Email, &["@", "@."], "@");
        one(Fold::Email, &["", " ", "\u{200b}"], "");
    }

    #[test]
    fn tags_are_one_mailbox_only_where_the_policy_asks_for_mailboxes() {
        one(Fold::Mailbox, &["bob@x.org", "bob+1@x.org", "Bob+news+2@X.org"], "bob@x.org");
        one(Fold::Mailbox, &["+bob@x.org"], "+bob@x.org");
        one(Fold::Mailbox, &["bo.b+1@x.org"], "bo.b@x.org");
    }

    #[test]
    fn text_keeps_its_inner_blanks() {
        one(Fold::Lower, &["Jan  Kowalski", " JAN  kowalski "], "jan  kowalski");
        one(Fold::None, &[" As it IS "], " As it IS ");
    }

    #[test]
    fn a_number_is_one_whatever_its_spelling() {
        let spellings = [
            "9876543210",
            " 98765 43210 ",
            "+919876543210",
            "00919876543210",
            "+91 (98765) 43210",
            "098765-43210",
            "９８７６５４３２１０",
            "٩٨٧٦٥٤٣٢١٠",
            "＋९१९८७६५४३२१०",
            "tel:+91-98765-43210",
            "+91 98765 43210 ext. 5",
        ];
        one(india(), &spellings, "+919876543210");
        one(Fold::Phone(None), &["+919876543210", "00919876543210", "+91 98765 43210"], "+919876543210");
        for fold in [india(), Fold::Phone(None)] {
            one(fold, &["+882 16 1234567", "+882161234567"], "+882161234567");
        }
        one(Fold::Phone(Region::parse("IT")), &["06 6982", "+39 06 6982"], "+39066982");
    }

    /// Each reading takes four of the zeros for a prefix; found by fuzzing.
    #[test]
    fn a_number_of_many_zeros_has_one_spelling() {
        for zeros in 0..32 {
            let folded = india().apply(&format!("{}50/free", "0".repeat(zeros)));
            assert_eq!(india().apply(&folded), folded, "{zeros} zeros");
        }
    }

    #[test]
    fn what_is_no_number_still_has_one_spelling() {
        one(Fold::Phone(None), &["98765 43210", "(98765)-43210", "٩٨٧٦٥٤٣٢١٠"], "9876543210");
        one(Fold::Phone(None), &["+999 12", "+99912"], "+99912");
        one(india(), &["Alice", "ALICE "], "alice");
        one(india(), &["", " "], "");
    }

    #[test]
    fn regions_are_those_with_a_numbering_plan() {
        for code in ["IN", "US", "RO", "VN"] {
            assert_eq!(format!("{:?}", Region::parse(code).unwrap()), code);
        }
        for code in ["", "in", "IND", "XX", "001", "91"] {
            assert_eq!(Region::parse(code), None, "{code}");
        }
    }
}
