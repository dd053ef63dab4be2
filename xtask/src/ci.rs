//! Everything that a commit has to pass, in the order that fails soonest. Each step is named and timed; the first failure stops.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::repository::Repository;
use crate::{environments, process, test, tidy};

type Step = (&'static str, fn(&Repository) -> Result<(), String>);

const STEPS: &[Step] = &[
    ("format", |repository| {
        process::run(repository.cargo().args(["fmt", "--all", "--", "--check"]))
    }),
    ("tidy", |repository| {
        succeeded(tidy::run(repository)?, "rules of the repository are broken")
    }),
    ("python", python_checks),
    ("clippy", |repository| {
        process::run(repository.cargo().args([
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("licences", deny),
    ("tests", |repository| {
        succeeded(test::run(repository, &[])?, "tests failed")
    }),
];

/// Runs all steps, or those that are named.
pub(crate) fn run(repository: &Repository, named: &[String]) -> Result<ExitCode, String> {
    let mut times = Vec::new();
    for (name, step) in chosen(named)? {
        println!("\n== {name}");
        let begin = Instant::now();
        let result = step(repository);
        let seconds = begin.elapsed().as_secs_f64();
        if let Err(problem) = result {
            return Err(format!("pass `{name}` ({seconds:.1} s): cannot {problem}"));
        }
        println!("== {name}: {seconds:.1} s");
        times.push(format!("{name} {seconds:.1} s"));
    }
    println!("\nEverything passed: {}", times.join(", "));
    Ok(ExitCode::SUCCESS)
}

/// The steps in their own order, whatever order they were named in.
fn chosen(named: &[String]) -> Result<Vec<&'static Step>, String> {
    if let Some(unknown) = named
        .iter()
        .find(|name| STEPS.iter().all(|(step, _)| step != name))
    {
        let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "run the step `{unknown}`; the steps are {}",
            names.join(", ")
        ));
    }
    Ok(STEPS
        .iter()
        .filter(|(step, _)| named.is_empty() || named.iter().any(|name| name == step))
        .collect())
}

fn succeeded(code: ExitCode, otherwise: &str) -> Result<(), String> {
    if code == ExitCode::SUCCESS {
        Ok(())
    } else {
        Err(format!("go on: {otherwise}"))
    }
}

/// Formats, lints and type-checks the Python package with pinned tools.
fn python_checks(repository: &Repository) -> Result<(), String> {
    let bin = environments::tools(repository)?;
    let folder = repository.root.join("crates/bmc-pytest/python");
    let caches = bin.with_file_name("caches");
    let tool = |name: &str, arguments: &[&str], folder: &Path| {
        let mut command = Command::new(bin.join(name));
        command.args(arguments).current_dir(folder);
        // Caches of the tools stay out of the source tree.
        command
            .env("RUFF_CACHE_DIR", caches.join("ruff"))
            .env("MYPY_CACHE_DIR", caches.join("mypy"));
        process::run(&mut command)
    };
    tool("ruff", &["format", "--check", "."], &folder)?;
    tool("ruff", &["check", "."], &folder)?;
    tool("mypy", &["--strict"], &folder)
}

/// Checks licences and sources of the dependencies where cargo-deny is installed. Advisories need the network and are left out.
fn deny(repository: &Repository) -> Result<(), String> {
    if !process::exists("cargo-deny") {
        println!("LEFT OUT: cargo-deny is not installed (`cargo install --locked cargo-deny`)");
        return Ok(());
    }
    process::run(repository.cargo().args([
        "deny",
        "--offline",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_can_be_named_and_keep_their_order() {
        let names = |named: &[&str]| -> Result<Vec<&str>, String> {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            Ok(chosen(&named)?.iter().map(|(name, _)| *name).collect())
        };
        assert_eq!(names(&["clippy", "format"]).unwrap(), ["format", "clippy"]);
        assert_eq!(names(&[]).unwrap().len(), STEPS.len());
        assert!(names(&["clipy"]).unwrap_err().contains("clippy"));
    }

    #[test]
    fn a_step_that_fails_is_an_error() {
        assert_eq!(succeeded(ExitCode::SUCCESS, "x"), Ok(()));
        assert_eq!(
            succeeded(ExitCode::FAILURE, "tests failed"),
            Err("go on: tests failed".to_owned())
        );
    }
}
