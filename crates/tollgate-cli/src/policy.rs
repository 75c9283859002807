//! `tollgate policy check|schema`.

use crate::args::{PolicyArgs, PolicyCommand};
use crate::error::{CliError, Result};
use crate::output;
use serde_json::json;
use std::path::Path;
use tollgate_policy::{Error, JSON_SCHEMA, Policy};

pub(crate) fn run(args: &PolicyArgs) -> Result<()> {
    match &args.command {
        PolicyCommand::Schema => {
            output::say(JSON_SCHEMA.trim_end());
            Ok(())
        }
        PolicyCommand::Check { file, json } => check(file, json.json),
    }
}

fn check(file: &Path, as_json: bool) -> Result<()> {
    let name = file.display().to_string();
    let (findings, limits, routes) = match Policy::load(file) {
        Ok(parsed) => (parsed.warnings, parsed.policy.limits().len(), parsed.policy.routes().len()),
        Err(Error::Invalid { diagnostics, .. }) => (diagnostics, 0, 0),
        Err(other) => return Err(CliError::Input(other.to_string())),
    };
    let ok = !findings.has_errors();
    if as_json {
        output::json(&json!({ "file": name, "ok": ok, "diagnostics": findings }))?;
    } else if !findings.is_empty() {
        output::say(findings.render(&name).trim_end());
    }
    let errors = findings.iter().filter(|d| d.severity == tollgate_policy::Severity::Error).count();
    if !ok {
        let plural = if errors == 1 { "" } else { "s" };
        return Err(CliError::Check(format!("{name} has {errors} error{plural}")));
    }
    if !as_json {
        output::say(format!("{name}: ok, {limits} limits and {routes} routes"));
    }
    Ok(())
}
