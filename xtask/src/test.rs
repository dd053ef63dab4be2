//! Runs every test there is: Rust, documentation examples, and the Python package in each environment.

use std::process::{Command, ExitCode};

use crate::environments::{self, Environment};
use crate::process;
use crate::repository::Repository;

const PYTHON_SIDE: &str = "crates/bmc-pytest/python";

/// Runs all tests; arguments go to the Rust test runner. With arguments the Python side is left out, which is said.
pub(crate) fn run(repository: &Repository, rest: &[String]) -> Result<ExitCode, String> {
    let environments = environments::prepare(repository)?;
    rust(repository, rest)?;
    if rest.is_empty() {
        python(repository, &environments)?;
    } else {
        println!(
            "Only Rust tests were run, because arguments were given. `cargo xtask test` runs the Python side too."
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the Rust tests with the list of environments in their surroundings.
fn rust(repository: &Repository, rest: &[String]) -> Result<(), String> {
    let list = environments::list_path(repository);
    let nextest = process::exists("cargo-nextest");
    if !nextest {
        println!("cargo-nextest is not installed (`cargo install --locked cargo-nextest`): using `cargo test`");
    }
    let tests: &[&str] =
        if nextest { &["nextest", "run", "--workspace"] } else { &["test", "--workspace", "--all-targets"] };
    process::run(repository.cargo().args(tests).args(rest).env(environments::VARIABLE, &list))?;
    // Neither of the two runs them. With a filter in the arguments they would not be meant.
    if rest.is_empty() {
        process::run(repository.cargo().args(["test", "--quiet", "--workspace", "--doc"]))?;
    }
    Ok(())
}

/// Runs the tests of the Python package in every environment.
fn python(repository: &Repository, environments: &[Environment]) -> Result<(), String> {
    for environment in environments {
        println!("Python side in {}: Python {}, pytest {}", environment.name, environment.version, environment.pytest);
        process::run(
            Command::new(&environment.python)
                .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
                // Plugins of the environment are there for the sessions under test, not for ours.
                .args(["-p", "no:randomly", "-p", "no:random_order"])
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .current_dir(repository.root.join(PYTHON_SIDE)),
        )
        .map_err(|problem| format!("{problem} (in {})", environment.name))?;
    }
    Ok(())
}
