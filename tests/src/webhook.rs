//! The receiver of webhooks, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    webhook::main()
}
