//! The sample API's executable, `bootstrap` to Lambda; everything is in the library, so that tests run the same code.

use std::process::ExitCode;

fn main() -> ExitCode {
    sample_api::main()
}
