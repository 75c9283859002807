//! Whatever the text, the parser answers with a policy or with findings that lie in the text.

use crate::{FULL, SAMPLE};
use proptest::prelude::*;
use tollgate_policy::Policy;

fn parse(text: &str) {
    match Policy::parse(text) {
        Ok(parsed) => assert!(!parsed.warnings.has_errors()),
        Err(findings) => {
            assert!(findings.has_errors(), "refused without an error:\n{text}");
            let lines: Vec<&str> = text.split('\n').collect();
            for finding in &findings {
                let line = lines.get(finding.line - 1).unwrap_or_else(|| panic!("{finding:?} lies outside\n{text}"));
                assert!(finding.column <= line.chars().count() + 1, "{finding:?} lies outside {line:?}");
                assert!(!finding.message.is_empty() && !finding.help.is_empty());
            }
        }
    }
}

/// `text` with `with` in place of some characters.
fn mutate(text: &str, at: usize, len: usize, with: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = at % chars.len();
    let end = (at + len).min(chars.len());
    chars[..at].iter().copied().chain(with.chars()).chain(chars[end..].iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        parse(&text);
    }

    #[test]
    fn text_of_toml_pieces_never_panics(pieces in prop::collection::vec(prop::sample::select(vec![
        "version = 1", "\n", "\r\n", "[", "]", "[[", "]]", "{", "}", "=", "\"", "'", ".", ",", "??", "*", "limits", "routes",
        "a", "key", "rate", "50/h", "plans", "identity", "exempt", "\"user\"", "charge", "match", "client_ip", "0", "-1", "ă",
    ]), 0..40)) {
        parse(&pieces.concat());
        parse(&pieces.join(" "));
    }

    #[test]
    fn mutated_policies_never_panic(
        full in any::<bool>(), at in any::<usize>(), len in 0_usize..40,
        with in prop_oneof![Just(String::new()), "[\\[\\]{}=\"',.\n*?/0-9a-z -]{0,6}", any::<String>()],
    ) {
        parse(&mutate(if full { FULL } else { SAMPLE }, at, len, &with));
    }
}
