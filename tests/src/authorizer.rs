//! The authorizer function, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    authorizer::main()
}
