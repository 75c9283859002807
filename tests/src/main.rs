//! The `tollgate` command, built beside the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate_cli::main()
}
