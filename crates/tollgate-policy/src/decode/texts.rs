//! What people are told: one text, or one for each language.

use super::fields::{self, Node};
use crate::message::{Known, Message, Messages};
use crate::report::Report;

/// A key whose value is such a text.
#[derive(Debug)]
pub(super) struct Texts {
    /// The key.
    pub(super) what: &'static str,
    /// What a text of it can leave open.
    pub(super) known: &'static Known,
    /// A text.
    pub(super) example: &'static str,
}

impl Texts {
    pub(super) fn read(&self, report: &mut Report<'_>, node: Node<'_>) -> Option<Messages> {
        if node.get_ref().is_str() {
            return Some(Messages::new(vec![(Messages::ANY_LANGUAGE.to_owned(), self.text(report, node)?)]));
        }
        let (what, example) = (self.what, format!("{{ en = {:?} }}", self.example));
        let table = fields::table(report, node, what, &example)?;
        if table.is_empty() {
            report.error(&node.span(), format!("{what} has no language"), format!("write it like {example}"));
            return None;
        }
        let by_language = fields::entries(table).into_iter().map(|(key, node)| {
            let language: &str = key.get_ref();
            // BCP 47: subtags of 1 to 8 letters and digits; the first is the language, 2 or 3 letters (or 4 to 8, rarely).
            let subtag = |tag: &str| (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric());
            let first = language.split('-').next().unwrap_or_default();
            let valid =
                language.split('-').all(subtag) && first.len() >= 2 && !first.bytes().any(|b| b.is_ascii_digit());
            if !valid {
                report.error(
                    &key.span(),
                    format!("{language:?} is not a language tag"),
                    "write it like `en` or `pt-BR`",
                );
            }
            Some((language.to_owned(), self.text(report, node)?)).filter(|_| valid)
        });
        by_language.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>().map(Messages::new)
    }

    fn text(&self, report: &mut Report<'_>, node: Node<'_>) -> Option<Message> {
        let text = fields::text(report, node, &format!("a {}", self.what), &format!("{:?}", self.example))?;
        Message::parse(text, self.known)
            .map_err(|problem| report.error(&node.span(), problem.message, problem.help))
            .ok()
    }
}
