//! Typed access to the TOML tree. Invariant: whoever gets `None` has reported, or may rely on it that the value is
//! simply not there.

use super::keys::{KeyList, POLICY};
use crate::report::{Report, Span};
use crate::suggest;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

/// A value with its place.
pub(super) type Node<'a> = &'a Spanned<DeValue<'a>>;

/// A key or value with its place.
pub(super) type Entry<'a> = (&'a Spanned<DeString<'a>>, Node<'a>);

/// A table whose keys have been checked.
pub(super) struct Fields<'a> {
    table: &'a DeTable<'a>,
    at: Span,
    what: String,
}

impl<'a> Fields<'a> {
    /// The file itself.
    pub(super) fn root(report: &mut Report<'_>, table: &'a DeTable<'a>) -> Self {
        Self::checked(report, table, 0..0, "the policy", &POLICY)
    }

    /// The table at `node`; unknown keys are reported.
    pub(super) fn open(report: &mut Report<'_>, node: Node<'a>, what: &str, known: &KeyList) -> Option<Self> {
        let example = known.keys.first().map_or_else(String::new, |key| format!("{{ {key} = ... }}"));
        let table = table(report, node, what, &example)?;
        Some(Self::checked(report, table, node.span(), what, known))
    }

    fn checked(report: &mut Report<'_>, table: &'a DeTable<'a>, at: Span, what: &str, known: &KeyList) -> Self {
        for (key, _) in entries(table) {
            let name: &str = key.get_ref();
            if known.keys.contains(&name) {
                continue;
            }
            let help = suggest::help(name, "key", known.keys.iter().copied());
            report.error(&key.span(), format!("unknown key `{name}` in {what}"), help);
        }
        Self { table, at, what: what.to_owned() }
    }

    /// Where the table is.
    pub(super) fn span(&self) -> Span {
        self.at.clone()
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        self.table.get(key)
    }

    /// The value of a key, if it is this one.
    pub(super) fn says(&self, key: &str, wanted: bool) -> Option<Node<'a>> {
        self.get(key).filter(|node| node.get_ref().as_bool() == Some(wanted))
    }

    /// The value of a key that must be there.
    pub(super) fn required(&self, report: &mut Report<'_>, key: &str, help: &str) -> Option<Node<'a>> {
        let found = self.get(key);
        if found.is_none() {
            report.absent(&self.at, key, format!("{} has no `{key}`", self.what), help);
        }
        found
    }
}

/// Reports all that is given and cannot be, each with why and what to do; whether there is nothing of the kind.
pub(super) fn none_of<'a>(
    report: &mut Report<'_>,
    wrong: impl IntoIterator<Item = (Option<Node<'a>>, &'static str, &'static str)>,
) -> bool {
    let mut is_right = true;
    for (node, message, help) in wrong {
        if let Some(node) = node {
            report.error(&node.span(), message, help);
            is_right = false;
        }
    }
    is_right
}

/// The entries of a table in file order (the tree keeps them sorted by name).
pub(super) fn entries<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn mistyped(report: &mut Report<'_>, node: Node<'_>, what: &str, wanted: &str, example: &str) {
    let found = node.get_ref().type_str();
    let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
    report.error(
        &node.span(),
        format!("{what} must be {wanted}, not {article} {found}"),
        format!("write it like {example}"),
    );
}

/// A table.
pub(super) fn table<'a>(report: &mut Report<'_>, node: Node<'a>, what: &str, example: &str) -> Option<&'a DeTable<'a>> {
    let found = node.get_ref().as_table();
    if found.is_none() {
        mistyped(report, node, what, "a table", example);
    }
    found
}

/// An array.
pub(super) fn list<'a>(report: &mut Report<'_>, node: Node<'a>, what: &str, example: &str) -> Option<&'a DeArray<'a>> {
    let found = node.get_ref().as_array();
    if found.is_none() {
        mistyped(report, node, what, "an array", example);
    }
    found
}

/// A string.
pub(super) fn text<'a>(report: &mut Report<'_>, node: Node<'a>, what: &str, example: &str) -> Option<&'a str> {
    let found = node.get_ref().as_str();
    if found.is_none() {
        mistyped(report, node, what, "a string", example);
    }
    found
}

/// A boolean.
pub(super) fn boolean(report: &mut Report<'_>, node: Node<'_>, what: &str, example: &str) -> Option<bool> {
    let found = node.get_ref().as_bool();
    if found.is_none() {
        mistyped(report, node, what, "true or false", example);
    }
    found
}

/// A whole number in a range.
pub(super) fn integer(
    report: &mut Report<'_>,
    node: Node<'_>,
    what: &str,
    range: RangeInclusive<u64>,
    example: &str,
) -> Option<u64> {
    let Some(written) = node.get_ref().as_integer() else {
        mistyped(report, node, what, "a whole number", example);
        return None;
    };
    let found = u64::from_str_radix(written.as_str(), written.radix()).ok().filter(|n| range.contains(n));
    if found.is_none() {
        let wanted = match (*range.start(), *range.end()) {
            (from, u64::MAX) => format!("at least {from}"),
            (from, to) => format!("from {from} to {to}"),
        };
        let shown = written.to_string();
        report.error(
            &node.span(),
            format!("{what} must be a whole number {wanted}, not {shown}"),
            format!("write it like {example}"),
        );
    }
    found
}

/// One of several words.
pub(super) fn word<T: Copy>(report: &mut Report<'_>, node: Node<'_>, what: &str, words: &[(&str, T)]) -> Option<T> {
    let example = words.first().map_or_else(String::new, |(word, _)| format!("\"{word}\""));
    let written = text(report, node, what, &example)?;
    let found = words.iter().find(|(word, _)| *word == written).map(|(_, value)| *value);
    if found.is_none() {
        let names = words.iter().map(|(word, _)| *word);
        let nearest = suggest::nearest(written, names.clone()).map(|word| format!("did you mean `{word}`? "));
        let help = format!("{}write one of {}", nearest.unwrap_or_default(), suggest::quoted(names));
        report.error(&node.span(), format!("{what} cannot be {written:?}"), help);
    }
    found
}

/// Some of several words, each once, in file order.
pub(super) fn words<T: Copy + PartialEq>(
    report: &mut Report<'_>,
    node: Node<'_>,
    key: &str,
    noun: &str,
    words: &[(&str, T)],
) -> Option<Vec<T>> {
    let example = words.iter().take(2).map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    let list = list(report, node, key, &format!("[{example}]"))?;
    let (mut found, mut complete) = (Vec::new(), true);
    for node in list {
        match word(report, node, &format!("a {noun}"), words) {
            Some(value) if found.contains(&value) => {
                let written = node.get_ref().as_str().unwrap_or_default();
                report.error(
                    &node.span(),
                    format!("{noun} `{written}` is given twice"),
                    format!("write each {noun} once"),
                );
                complete = false;
            }
            Some(value) => found.push(value),
            None => complete = false,
        }
    }
    complete.then_some(found)
}

/// Whether `name` can be the name of a dimension or plan; reported if not.
pub(super) fn name(report: &mut Report<'_>, at: &Span, noun: &str, name: &str) -> bool {
    let valid = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
    if !valid {
        let help = "start with a letter a-z and go on with a-z, 0-9, `_` and `-`";
        report.error(at, format!("{name:?} cannot be the name of a {noun}"), help);
    }
    valid
}
