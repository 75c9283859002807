//! The function of second factors, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    mfa::main()
}
