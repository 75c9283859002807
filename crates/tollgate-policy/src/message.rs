//! What people are told, by language. Invariant: every placeholder of a text is one that can be filled in where the text is used.

use crate::rate::Problem;
use crate::suggest;

/// Something that a text leaves to the moment when it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placeholder {
    /// `{rate}`: the rate as the policy writes it, like `50/h`.
    Rate,
    /// `{burst}`: most tokens at once.
    Burst,
    /// `{limit}`: the limit's name.
    Limit,
    /// `{plan}`: the caller's plan.
    Plan,
    /// `{retry_after}`: how long to wait.
    RetryAfter,
    /// `{code}`: a one-time code.
    Code,
    /// `{purpose}`: what the code is for, as the policy names it.
    Purpose,
    /// `{minutes}`: for how many minutes it is good.
    Minutes,
}

/// What a place of the file can leave open.
pub(crate) type Known = [(&'static str, Placeholder)];

/// In what a denied caller is told.
pub(crate) const OF_DENIAL: &Known = &[
    ("rate", Placeholder::Rate),
    ("burst", Placeholder::Burst),
    ("limit", Placeholder::Limit),
    ("plan", Placeholder::Plan),
    ("retry_after", Placeholder::RetryAfter),
];

/// In the text that a code is sent with.
pub(crate) const OF_CODE: &Known =
    &[("code", Placeholder::Code), ("purpose", Placeholder::Purpose), ("minutes", Placeholder::Minutes)];

/// In the subject of that. Not the code, since subjects are in the logs of mail servers.
pub(crate) const OF_SUBJECT: &Known = &[("purpose", Placeholder::Purpose), ("minutes", Placeholder::Minutes)];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Placeholder),
}

/// A text with placeholders. `{{` and `}}` stand for single braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message(Vec<Part>);

impl Message {
    pub(crate) fn parse(text: &str, known: &Known) -> Result<Self, Problem> {
        if text.trim().is_empty() {
            return Err(Problem::new("the message is empty", "write what people should read, or remove it"));
        }
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let (name, after) = from.strip_prefix('{').and_then(|inner| inner.split_once('}')).ok_or_else(|| {
                Problem::new("the message has a brace without its partner", "write `{{` or `}}` for a brace")
            })?;
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Value(placeholder(name, known)?));
            rest = after;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    /// Whether the text leaves `placeholder` open.
    pub(crate) fn has(&self, placeholder: Placeholder) -> bool {
        self.0.contains(&Part::Value(placeholder))
    }

    /// The text with each placeholder replaced by what `value` gives for it.
    #[must_use]
    pub fn render(&self, value: impl Fn(Placeholder) -> String) -> String {
        let fill = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Value(placeholder) => value(*placeholder),
        };
        self.0.iter().map(fill).collect()
    }
}

fn placeholder(name: &str, known: &Known) -> Result<Placeholder, Problem> {
    known.iter().find(|(known, _)| *known == name).map(|(_, placeholder)| *placeholder).ok_or_else(|| {
        let help = suggest::help(name, "placeholder", known.iter().map(|(known, _)| *known));
        Problem::new(format!("the message has the unknown placeholder {{{name}}}"), help)
    })
}

/// A text in several languages, in file order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messages(Vec<(String, Message)>);

impl Messages {
    /// The language of a message that the policy gives as plain text: any.
    pub const ANY_LANGUAGE: &str = "*";

    pub(crate) fn new(by_language: Vec<(String, Message)>) -> Self {
        Self(by_language)
    }

    /// Language tags (or [`Self::ANY_LANGUAGE`]) and messages, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Message)> {
        self.0.iter().map(|(language, message)| (language.as_str(), message))
    }

    /// The message for a caller who prefers `languages`, best first, as language tags: the first that is there, by
    /// whole tag or by primary subtag (`ro-RO` finds `ro`), else the first of the file. With its language.
    #[must_use]
    pub fn pick(&self, languages: &[&str]) -> Option<(&str, &Message)> {
        let find = |tag: &str| self.iter().find(|(language, _)| language.eq_ignore_ascii_case(tag));
        let primary = |tag: &str| find(tag.split('-').next().unwrap_or(tag));
        languages.iter().find_map(|tag| find(tag).or_else(|| primary(tag))).or_else(|| self.iter().next())
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Messages, OF_DENIAL, Placeholder, Problem};

    fn parse(text: &str) -> Result<super::Message, Problem> {
        super::Message::parse(text, OF_DENIAL)
    }

    #[test]
    fn placeholders_are_filled_in_and_braces_escaped() {
        let message = parse("{{{rate}}} ă {retry_after}").expect("valid");
        let shown = message.render(|p| if p == Placeholder::Rate { "50/h".to_owned() } else { "2 s".to_owned() });
        assert_eq!(shown, "{50/h} ă 2 s");
    }

    #[test]
    fn unknown_placeholders_and_lone_braces_are_refused() {
        assert!(parse("{code}").is_err(), "it is for another place");
        assert!(parse("wait {retry_afer}").expect_err("typo").help.contains("retry_after"));
        for text in ["a { b", "a } b", "{", "}", "", "{}"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_best_language_wins_and_the_first_of_the_file_is_the_fallback() {
        let message = |text| parse(text).expect("valid");
        let messages = Messages::new(vec![("en".to_owned(), message("e")), ("ro".to_owned(), message("r"))]);
        let picked = |tags: &[&str]| messages.pick(tags).map(|(language, _)| language);
        assert_eq!(picked(&["fr", "ro-RO", "en"]), Some("ro"));
        assert_eq!(picked(&["fr"]), Some("en"));
        assert_eq!(picked(&[]), Some("en"));
    }
}
