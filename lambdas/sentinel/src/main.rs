//! The sentinel's executable, `bootstrap` to Lambda; everything is in the library, so that tests run the same code.

use std::process::ExitCode;

fn main() -> ExitCode {
    sentinel::main()
}
