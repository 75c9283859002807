//! `tollgate table create|describe`.

use crate::args::{Operated, TableArgs, TableCommand};
use crate::error::{CliError, Result};
use crate::{open, output};
use tollgate_dynamodb::connect::Connected;
use tollgate_dynamodb::table::{CreateOptions, Finding, create, describe};

pub(crate) async fn run(args: TableArgs) -> Result<()> {
    match args.command {
        TableCommand::Create { point_in_time_recovery, deletion_protection, on } => {
            let (connected, table) = (reached(&on).await?, &on.target.table);
            let options = CreateOptions { without_ttl: false, point_in_time_recovery, deletion_protection };
            create(&connected, table, options).await?;
            let value = serde_json::json!({ "table": table, "created": true });
            output::result(on.json, &value, || format!("table {table} is ready at {}", connected.endpoint()))
        }
        TableCommand::Describe { on } => {
            let findings = describe(&reached(&on).await?, &on.target.table).await?;
            output::result(on.json, &findings, || text(&findings))?;
            check(&findings, &on.target.table)
        }
    }
}

/// The connection; a policy that is given has to be a good one.
async fn reached(on: &Operated) -> Result<Connected> {
    on.policy.as_deref().map(open::policy).transpose()?;
    open::connection(&on.target).await
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
