//! The executable of the function that delivers; everything is in the library, so that tests run the same code.

use std::process::ExitCode;

fn main() -> ExitCode {
    otp::courier::main()
}
