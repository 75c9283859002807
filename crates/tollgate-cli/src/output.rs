//! The two streams: results on standard output, one line of complaint on standard error.
//!
//! Invariant: a closed pipe (`tollgate … | head`) is not an error.

use crate::args::Json;
use crate::error::{CliError, Result};
use serde::Serialize;
use std::fmt::Display;
use std::io::Write;

/// Prints a line of the result.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line that is not part of the result.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints an error.
pub(crate) fn complain(error: &CliError) {
    let mut err = std::io::stderr().lock();
    let _ = match error {
        // Diagnostics carry `file:line:column: error:` themselves.
        CliError::Policy(text) => writeln!(err, "{text}"),
        other => writeln!(err, "error: {other}"),
    };
}

/// Prints the result, as one JSON document or as text.
pub(crate) fn result(json: Json, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if json.json {
        let written = serde_json::to_string_pretty(value);
        say(written.map_err(|e| CliError::Input(format!("cannot write JSON: {e}")))?);
    } else {
        say(text().trim_end());
    }
    Ok(())
}
