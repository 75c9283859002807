//! The sample API, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    sample_api::main()
}
