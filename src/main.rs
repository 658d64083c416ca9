//! `subdeck`: parses, calls, and turns an outcome into an exit code.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
