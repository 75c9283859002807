//! The function that delivers them, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    otp::courier::main()
}
