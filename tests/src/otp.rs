//! The function of one-time codes, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    otp::main()
}
