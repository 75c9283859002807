//! Creating the table, and checking one that exists: for each thing that is wrong, how to mend it.
//!
//! Invariant: nothing here runs on the path of a decision; a missing permission is a finding or a clear error, never a
//! call on each cold start.

use crate::attributes::EXPIRES_AT;
use crate::connect::Connected;
use crate::error::{Context, Error, Result, classify};
use crate::partition_key;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, PointInTimeRecoverySpecification,
    PointInTimeRecoveryStatus, ScalarAttributeType, TableDescription, TableStatus, TimeToLiveSpecification,
    TimeToLiveStatus,
};
use std::time::Duration;

/// What a new table gets beyond the key and on-demand billing.
#[derive(Debug, Clone, Copy, Default)]
pub struct CreateOptions {
    /// Leave TTL off, so that nothing is deleted. For clocks that are not the table's.
    pub without_ttl: bool,
    /// Point-in-time recovery.
    pub point_in_time_recovery: bool,
    /// Deletion protection.
    pub deletion_protection: bool,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What was checked: `table`, `partition key`, `TTL`, …
    pub what: &'static str,
    /// How it is.
    pub is: String,
    /// How to mend it; `None` if it is as it should be.
    pub mend: Option<String>,
    /// Whether decisions go wrong without it. Other findings are advice.
    pub required: bool,
}

/// Creates the table on demand, waits until it is active and sets it up.
///
/// # Errors
///
/// [`Error::TableExists`], [`Error::Incomplete`] if it was created and then something failed, or whatever AWS says.
pub async fn create(connected: &Connected, table: &str, options: CreateOptions) -> Result<()> {
    let client = Client::new(&connected.sdk);
    let context = |action| Context { action, table, endpoint: connected.endpoint() };
    let pk = AttributeDefinition::builder().attribute_name(partition_key::ATTRIBUTE);
    let hash = KeySchemaElement::builder().attribute_name(partition_key::ATTRIBUTE).key_type(KeyType::Hash);
    let request = client
        .create_table()
        .table_name(table)
        .attribute_definitions(pk.attribute_type(ScalarAttributeType::S).build().map_err(bad)?)
        .key_schema(hash.build().map_err(bad)?)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(options.deletion_protection);
    request
        .send()
        .await
        .map_err(|e| already_exists(&e, table).unwrap_or_else(|| classify(&e, context("dynamodb:CreateTable"))))?;
    wait_until_active(&client, table, context("dynamodb:DescribeTable")).await?;
    let incomplete = |cause| Error::Incomplete { table: table.to_owned(), cause: Box::new(cause) };
    set_up(&client, table, options, connected.endpoint()).await.map_err(incomplete)
}

async fn set_up(client: &Client, table: &str, options: CreateOptions, endpoint: &str) -> Result<()> {
    let context = |action| Context { action, table, endpoint };
    if !options.without_ttl {
        let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name(EXPIRES_AT).build().map_err(bad)?;
        let request = client.update_time_to_live().table_name(table).time_to_live_specification(ttl);
        request.send().await.map_err(|e| classify(&e, context("dynamodb:UpdateTimeToLive")))?;
    }
    if !options.point_in_time_recovery {
        return Ok(());
    }
    let recovery =
        PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build().map_err(bad)?;
    // Backups of a new table are not available at once (API reference, UpdateContinuousBackups); about a minute's worth.
    for attempt in 0.. {
        let request = client.update_continuous_backups().table_name(table);
        let Err(e) = request.point_in_time_recovery_specification(recovery.clone()).send().await else { return Ok(()) };
        if e.code() != Some("ContinuousBackupsUnavailableException") || attempt == 30 {
            return Err(classify(&e, context("dynamodb:UpdateContinuousBackups")));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    Ok(())
}

fn bad(error: aws_sdk_dynamodb::error::BuildError) -> Error {
    Error::Refused { action: "dynamodb:CreateTable", message: error.to_string() }
}

/// Turns TTL off, for a clock that is not the table's. Does nothing if it is off.
///
/// # Errors
///
/// Whatever keeps TTL from being described or changed.
pub async fn disable_ttl(connected: &Connected, table: &str) -> Result<()> {
    let client = Client::new(&connected.sdk);
    let context = |action| Context { action, table, endpoint: connected.endpoint() };
    let described = client.describe_time_to_live().table_name(table).send().await;
    let described = described.map_err(|e| classify(&e, context("dynamodb:DescribeTimeToLive")))?;
    let ttl = described.time_to_live_description;
    let Some(attribute) =
        ttl.filter(|t| t.time_to_live_status == Some(TimeToLiveStatus::Enabled)).and_then(|t| t.attribute_name)
    else {
        return Ok(());
    };
    let off = TimeToLiveSpecification::builder().enabled(false).attribute_name(attribute).build();
    let off = off.map_err(bad)?;
    let request = client.update_time_to_live().table_name(table).time_to_live_specification(off);
    request.send().await.map(drop).map_err(|e| classify(&e, context("dynamodb:UpdateTimeToLive")))
}

/// Whether the table exists.
///
/// # Errors
///
/// Whatever keeps the table from being described, other than that it does not exist.
pub async fn exists(connected: &Connected, table: &str) -> Result<bool> {
    let context = Context { action: "dynamodb:DescribeTable", table, endpoint: connected.endpoint() };
    match Client::new(&connected.sdk).describe_table().table_name(table).send().await {
        Ok(_) => Ok(true),
        Err(e) => match classify(&e, context) {
            Error::TableMissing { .. } => Ok(false),
            other => Err(other),
        },
    }
}

/// Checks an existing table.
///
/// # Errors
///
/// [`Error::TableMissing`], or whatever keeps the table from being described. TTL and backups that may not be described
/// are findings.
pub async fn describe(connected: &Connected, table: &str) -> Result<Vec<Finding>> {
    let client = Client::new(&connected.sdk);
    let context = Context { action: "dynamodb:DescribeTable", table, endpoint: connected.endpoint() };
    let described = client.describe_table().table_name(table).send().await.map_err(|e| classify(&e, context))?;
    let missing = || Error::NoAnswer {
        endpoint: connected.endpoint().to_owned(),
        cause: "DescribeTable answered without a table".to_owned(),
    };
    let description = described.table.ok_or_else(missing)?;
    let mut findings = vec![key_finding(&description, table), billing_finding(&description, table)];
    findings.push(ttl_finding(&client, table).await);
    findings.push(recovery_finding(&client, table).await);
    let protected = description.deletion_protection_enabled == Some(true);
    findings.push(Finding {
        what: "deletion protection",
        is: if protected { "on" } else { "off" }.to_owned(),
        mend: (!protected)
            .then(|| format!("aws dynamodb update-table --table-name {table} --deletion-protection-enabled")),
        required: false,
    });
    Ok(findings)
}

fn already_exists<R>(error: &SdkError<CreateTableError, R>, table: &str) -> Option<Error> {
    let exists = error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception);
    exists.then(|| Error::TableExists(table.to_owned()))
}

async fn wait_until_active(client: &Client, table: &str, context: Context<'_>) -> Result<()> {
    let mut pause = Duration::from_millis(50);
    // On-demand tables take seconds; after about two minutes something else is wrong.
    for _ in 0..40 {
        let described = client.describe_table().table_name(table).send().await.map_err(|e| classify(&e, context))?;
        if described.table.is_some_and(|t| t.table_status == Some(TableStatus::Active)) {
            return Ok(());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(4));
    }
    Err(Error::Refused { action: context.action, message: format!("table {table:?} is still not active") })
}

fn key_finding(description: &TableDescription, table: &str) -> Finding {
    let schema: Vec<_> = description.key_schema().iter().map(|k| (k.attribute_name.as_str(), &k.key_type)).collect();
    let is_string = description
        .attribute_definitions()
        .iter()
        .any(|a| a.attribute_name == partition_key::ATTRIBUTE && a.attribute_type == ScalarAttributeType::S);
    let good = schema == [(partition_key::ATTRIBUTE, &KeyType::Hash)] && is_string;
    let names: Vec<_> = schema.iter().map(|(name, kind)| format!("{name} ({kind})")).collect();
    Finding {
        what: "partition key",
        is: names.join(", "),
        mend: (!good).then(|| {
            format!("a table's key cannot be changed: use another table, made with `tollgate table create --table {table}-2`")
        }),
        required: true,
    }
}

fn billing_finding(description: &TableDescription, table: &str) -> Finding {
    let mode = description.billing_mode_summary().and_then(|b| b.billing_mode.clone());
    let on_demand = mode == Some(BillingMode::PayPerRequest);
    Finding {
        what: "billing",
        is: if on_demand { "on demand" } else { "provisioned" }.to_owned(),
        mend: (!on_demand)
            .then(|| format!("aws dynamodb update-table --table-name {table} --billing-mode PAY_PER_REQUEST")),
        required: false,
    }
}

async fn ttl_finding(client: &Client, table: &str) -> Finding {
    let enable = format!(
        "aws dynamodb update-time-to-live --table-name {table} \
         --time-to-live-specification Enabled=true,AttributeName={EXPIRES_AT}"
    );
    let (is, mend) = match client.describe_time_to_live().table_name(table).send().await {
        Err(e) => unseen(&e, "dynamodb:DescribeTimeToLive"),
        Ok(output) => {
            let ttl = output.time_to_live_description;
            let attribute = ttl.as_ref().and_then(|t| t.attribute_name.clone()).unwrap_or_default();
            match ttl.and_then(|t| t.time_to_live_status) {
                Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) if attribute == EXPIRES_AT => {
                    (format!("on {EXPIRES_AT}"), None)
                }
                Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => (
                    format!("on {attribute}, which tollgate does not write"),
                    Some(format!("turn TTL off on {attribute}, wait until it is off (up to an hour), then: {enable}")),
                ),
                _ => ("off: idle keys are kept and paid for forever".to_owned(), Some(enable)),
            }
        }
    };
    Finding { what: "TTL", is, mend, required: false }
}

async fn recovery_finding(client: &Client, table: &str) -> Finding {
    let enable = format!(
        "aws dynamodb update-continuous-backups --table-name {table} \
         --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
    );
    let (is, mend) = match client.describe_continuous_backups().table_name(table).send().await {
        Err(e) => unseen(&e, "dynamodb:DescribeContinuousBackups"),
        Ok(output) => {
            let backups = output.continuous_backups_description;
            let recovery = backups.and_then(|b| b.point_in_time_recovery_description);
            let on =
                recovery.is_some_and(|r| r.point_in_time_recovery_status == Some(PointInTimeRecoveryStatus::Enabled));
            if on { ("on".to_owned(), None) } else { ("off".to_owned(), Some(enable)) }
        }
    };
    Finding { what: "point-in-time recovery", is, mend, required: false }
}

/// What cannot be described is a finding too: missing permission, or an emulator without the operation.
fn unseen<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>, action: &str) -> (String, Option<String>) {
    match error.code().unwrap_or("no answer") {
        "UnknownOperationException" => ("not offered by this endpoint".to_owned(), None),
        code => (format!("unknown ({code})"), Some(format!("grant {action} to see it"))),
    }
}
