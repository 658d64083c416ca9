//! `subdeck`: parses, calls, and turns an outcome into an exit code.

fn main() -> std::process::ExitCode {
    subdeck::cli::main(std::env::args_os().collect())
}
