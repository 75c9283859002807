//! `tollgate table create|describe`.

use crate::args::{TableArgs, TableCommand};
use crate::error::{CliError, Result};
use crate::{open, output};
use tollgate_dynamodb::table::{CreateOptions, Finding, create, describe};

pub(crate) async fn run(args: TableArgs) -> Result<()> {
    match args.command {
        TableCommand::Create { point_in_time_recovery, deletion_protection, policy, target, json } => {
            policy.policy.as_deref().map(open::policy).transpose()?;
            let connected = open::connection(&target).await?;
            let options = CreateOptions { without_ttl: false, point_in_time_recovery, deletion_protection };
            create(&connected, &target.table, options).await?;
            let value = serde_json::json!({ "table": target.table, "created": true });
            output::result(json, &value, || format!("table {} is ready at {}", target.table, connected.endpoint()))
        }
        TableCommand::Describe { policy, target, json } => {
            policy.policy.as_deref().map(open::policy).transpose()?;
            let connected = open::connection(&target).await?;
            let findings = describe(&connected, &target.table).await?;
            output::result(json, &findings, || text(&findings))?;
            check(&findings, &target.table)
        }
    }
}

fn text(findings: &[Finding]) -> String {
    let line = |f: &Finding| match &f.mend {
        None => format!("ok    {:<24} {}", f.what, f.is),
        Some(mend) => {
            format!("{}  {:<24} {}\n      mend: {mend}", if f.required { "FAIL" } else { "hint" }, f.what, f.is)
        }
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check(findings: &[Finding], table: &str) -> Result<()> {
    let wrong: Vec<_> = findings.iter().filter(|f| f.required && f.mend.is_some()).map(|f| f.what).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(CliError::Check(format!("table {table:?} cannot be used as it is: {}", wrong.join(", "))))
}
