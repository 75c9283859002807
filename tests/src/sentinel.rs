//! The function that runs every minute, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    sentinel::main()
}
