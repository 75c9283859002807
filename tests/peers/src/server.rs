//! The embedded DynamoDB in a process of its own, so that no contestant shares a process with it: once as it is, for times,
//! and once behind a front that counts requests. The two share nothing.

use crate::error::Result;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tollgate_cli::embedded::{Embedded, Faults};

/// What the server tells when it is asked: a line of JSON for a line of any content, and one at the start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Where times are measured.
    pub(crate) direct: String,
    /// Where requests are counted.
    pub(crate) counted: String,
    /// Requests that came to [`Self::counted`] so far.
    pub(crate) requests: u64,
}

/// Serves until standard input ends.
pub(crate) async fn run() -> Result<()> {
    let faults = Faults::default();
    let direct = Embedded::start(None).await?;
    let counted = Embedded::start_with(None, Some(faults.clone())).await?;
    let mut asked = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    loop {
        let (direct, counted) = (direct.endpoint().to_owned(), counted.endpoint().to_owned());
        let told = Told { direct, counted, requests: faults.requests() };
        out.write_all(format!("{}\n", serde_json::to_string(&told)?).as_bytes()).await?;
        out.flush().await?;
        if asked.next_line().await?.is_none() {
            return Ok(());
        }
    }
}
