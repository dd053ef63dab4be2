//! Chores of this repository: `cargo xtask COMMAND`. Reads arguments and calls one module for each command; no chore lives here.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line tool of its own"
)]

mod bench;
mod ci;
mod demo;
mod environments;
mod process;
mod repository;
mod test;
mod tidy;

use std::process::ExitCode;

use repository::Repository;

const HELP: &str = "\
Chores of the breakmycode repository

Usage: cargo xtask COMMAND [ARGS]

  demo [ARGS]        build the program and scan the example project; ARGS go to breakmycode
  test [ARGS]        run every test, Rust and Python; ARGS go to the Rust test runner
  tidy               check the rules that no compiler knows
  bench OPTIONS      compare with other ways of repeating a suite; without OPTIONS it lists them
  environments       make the Python environments that tests use, in target/environments
  ci [STEP...]       what every commit has to pass: format, tidy, python, clippy, licences, tests
  help               print this
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    match run(&command, &rest) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: cannot {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Calls the chore. An error is a fragment that reads after "cannot".
fn run(command: &str, rest: &[String]) -> Result<ExitCode, String> {
    if matches!(command, "help" | "--help" | "-h") {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let repository = Repository::find()?;
    match command {
        "bench" => bench::run(&repository, rest),
        "demo" => demo::run(&repository, rest),
        "test" => test::run(&repository, rest),
        "tidy" => nothing_more(command, rest).and_then(|()| tidy::run(&repository)),
        "environments" => nothing_more(command, rest).and_then(|()| environments::run(&repository)),
        "ci" => ci::run(&repository, rest),
        other => Err(format!(
            "run `{other}`: there is no such chore; `cargo xtask help` lists them"
        )),
    }
}

fn nothing_more(command: &str, rest: &[String]) -> Result<(), String> {
    match rest.first() {
        None => Ok(()),
        Some(word) => Err(format!(
            "run `{command}` with `{word}`: it takes no arguments"
        )),
    }
}
