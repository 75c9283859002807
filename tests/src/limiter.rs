//! The limiter function, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    limiter::main()
}
