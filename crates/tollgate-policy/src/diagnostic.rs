//! What is wrong with a policy file, and where. Invariant: diagnostics are in file order, lines and columns start at 1
//! and columns count characters, so that an editor jumps to the right place.

use serde::Serialize;
use std::fmt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The policy is refused.
    Error,
    /// The policy works, but probably not as meant, or not at the price that is expected.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One finding in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters (a byte order mark is none).
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Diagnostic {
    /// The finding as `file:line:column: error: what is wrong`, with the help on a second line.
    #[must_use]
    pub fn render(&self, file: &str) -> String {
        let Self { severity, line, column, message, help } = self;
        format!("{file}:{line}:{column}: {severity}: {message}\n  help: {help}\n")
    }
}

/// All findings of one file, in file order. As JSON it is an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub(crate) fn new(mut found: Vec<Diagnostic>) -> Self {
        found.sort_by_key(|d| (d.line, d.column));
        Self(found)
    }

    /// The findings in file order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// How many there are, errors and warnings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// All findings as text, each naming `file`: see [`Diagnostic::render`].
    #[must_use]
    pub fn render(&self, file: &str) -> String {
        self.0.iter().map(|d| d.render(file)).collect()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The findings of a text that has no file name.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render("policy").trim_end())
    }
}

impl std::error::Error for Diagnostics {}
