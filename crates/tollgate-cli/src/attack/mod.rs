//! `tollgate attack`: plays attacks on one-time codes and logins beside people who sign in, and tells what they got.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`pumping`] | somebody shares in what messages cost: a simulated day, in this process |
//! | `guesses` | codes are guessed, codes are raced, passwords are sprayed: against a development server |
//! | `target` | that server: one of our own, or the one that is named |
//!
//! Invariant: nothing is sent anywhere but to this machine.

mod guesses;
pub mod pumping;
mod target;

use crate::args::{AttackArgs, AttackCommand};
use crate::error::Result;

pub(crate) async fn run(args: AttackArgs) -> Result<()> {
    match args.command {
        AttackCommand::SmsPumping(args) => pumping::run(&args).await,
        AttackCommand::OtpBruteforce(args) => guesses::bruteforce(&args).await,
        AttackCommand::OtpRace(args) => guesses::race(&args).await,
        AttackCommand::PasswordSpray(args) => guesses::spray(&args).await,
    }
}
