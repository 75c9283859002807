//! The executable of the function; everything is in the library, so that tests run the same code.

use std::process::ExitCode;

fn main() -> ExitCode {
    webhook::main()
}
