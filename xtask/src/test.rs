//! Runs every test there is: Rust, documentation examples, and the Python package in each environment.

use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::environments::{self, Environment};
use crate::process;
use crate::repository::Repository;

const PYTHON_SIDE: &str = "crates/bmc-pytest/python";
/// Names under which the plugins of the environments register.
const STRANGERS: &[&str] = &[
    "asyncio",
    "flakefinder",
    "flaky",
    "forked",
    "orderings",
    "pytest_cov",
    "pytest_order",
    "random_order",
    "randomly",
    "repeat",
    "rerunfailures",
    "pytest_forked",
    "pytest_repeat",
    "subtests",
    "timeout",
    "xdist",
    "xdist.looponfail",
];

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
        println!(
            "cargo-nextest is not installed (`cargo install --locked cargo-nextest`): using `cargo test`"
        );
    }
    let mut command = repository.cargo();
    command.args(if nextest {
        &["nextest", "run"][..]
    } else {
        &["test", "--all-targets"]
    });
    // With `--workspace` cargo would build everything, whatever package is named.
    if !rest
        .iter()
        .any(|word| word.starts_with("-p") || word.starts_with("--package"))
    {
        command.arg("--workspace");
    }
    process::run(command.args(rest).env(environments::VARIABLE, &list))?;
    // Neither of the two runs them. With a filter in the arguments they would not be meant.
    if rest.is_empty() {
        process::run(
            repository
                .cargo()
                .args(["test", "--quiet", "--workspace", "--doc"]),
        )?;
    }
    Ok(())
}

/// Runs the tests of the Python package in every environment, as many at a time as there are cores.
///
/// They start many short processes and wait for each, so one after the other would leave cores idle.
fn python(repository: &Repository, environments: &[Environment]) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "Python side in {} environments, {cores} at a time",
        environments.len()
    );
    // The more plugins, the longer each session takes to start: those first, so that none is left alone at the end.
    let mut environments: Vec<&Environment> = environments.iter().collect();
    environments.sort_by_key(|environment| std::cmp::Reverse(environment.plugins.len()));
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..cores.min(environments.len()) {
            scope.spawn(|| {
                while let Some(environment) = environments.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(problem) = python_in(repository, environment) {
                        failed
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(problem);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\ncannot "))
    }
}

/// Runs them in one environment. What they print is shown in one piece when they are done.
fn python_in(repository: &Repository, environment: &Environment) -> Result<(), String> {
    let mut command = Command::new(&environment.python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    // Plugins of the environment are there for the sessions under test, not for ours: some change the order or turn warnings into errors.
    command.args(
        STRANGERS
            .iter()
            .flat_map(|name| ["-p".to_owned(), format!("no:{name}")]),
    );
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(repository.root.join(PYTHON_SIDE))
        .stdin(Stdio::null());
    let begin = Instant::now();
    let output = command
        .output()
        .map_err(|error| format!("start `{}`: {error}", process::line(&command)))?;
    let Environment {
        name,
        version,
        pytest,
        ..
    } = environment;
    println!(
        "\n== {name}: Python {version}, pytest {pytest}, {:.0} s",
        begin.elapsed().as_secs_f64()
    );
    print!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "pass the Python side in {name}: `{}`",
            process::line(&command)
        ))
    }
}
