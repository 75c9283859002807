//! `tollgate policy check|schema`.

use crate::args::{Json, PolicyArgs, PolicyCommand};
use crate::error::{CliError, Result};
use crate::output;
use serde_json::json;
use std::path::Path;
use tollgate_policy::{Error, JSON_SCHEMA, Policy, Severity};

pub(crate) fn run(args: &PolicyArgs) -> Result<()> {
    match &args.command {
        PolicyCommand::Schema { .. } => {
            output::say(JSON_SCHEMA.trim_end());
            Ok(())
        }
        PolicyCommand::Check { file, json } => check(file, *json),
    }
}

fn check(file: &Path, as_json: Json) -> Result<()> {
    let name = file.display().to_string();
    let (findings, limits, routes) = match Policy::load(file) {
        Ok(parsed) => (parsed.warnings, parsed.policy.limits().len(), parsed.policy.routes().len()),
        Err(Error::Invalid { diagnostics, .. }) => (diagnostics, 0, 0),
        Err(other) => return Err(CliError::Input(other.to_string())),
    };
    let ok = !findings.has_errors();
    let value = json!({ "file": name, "ok": ok, "diagnostics": findings });
    output::result(as_json, &value, || {
        let verdict = if ok { format!("{name}: ok, {limits} limits and {routes} routes") } else { String::new() };
        findings.render(&name) + &verdict
    })?;
    if ok {
        return Ok(());
    }
    let errors = findings.iter().filter(|d| d.severity == Severity::Error).count();
    let plural = if errors == 1 { "" } else { "s" };
    Err(CliError::Policy(format!("{name}: {errors} error{plural}")))
}
