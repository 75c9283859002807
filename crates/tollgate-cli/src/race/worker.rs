//! One process of a race: says when it is ready, waits for the word, and tells each client's answer as a line of JSON.

use crate::args::RaceWorkerArgs;
use crate::error::{CliError, Result};
use crate::output;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;

/// The line that says that all clients are warmed up.
pub(super) const READY: &str = "ready";

/// Runs the clients of this process.
///
/// # Errors
///
/// The table cannot be reached, or the parent is gone.
pub async fn run(args: RaceWorkerArgs) -> Result<()> {
    let race = super::Race {
        target: args.target.clone(),
        charges: super::charges(&args.keys, args.capacity, args.plenty)?,
        at: args.at_ns.map(tollgate::Timestamp::from_nanos),
    };
    let (answers, mut received) = mpsc::unbounded_channel();
    let telling = tokio::spawn(async move {
        while let Some(answer) = received.recv().await {
            if let Ok(line) = serde_json::to_string(&answer) {
                output::say(line);
            }
        }
    });
    let go = async {
        output::say(READY);
        // The end of the input is as good as the word: the parent is gone, and nobody will read the answers.
        let _ = BufReader::new(tokio::io::stdin()).lines().next_line().await;
    };
    race.clients(args.clients, answers, go).await?;
    telling.await.map_err(|e| CliError::System(format!("cannot tell the answers: {e}")))
}
