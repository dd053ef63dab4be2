//! Compares breakmycode with other ways of repeating a suite, on the same machine in the same sitting. Judges nothing: it prints
//! times, exit codes and command lines; docs/benchmarks.md says how to read them.

mod contender;
mod measure;
mod options;
mod report;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use contender::{Contender, Facts};
use measure::{Sample, measure};
use options::{Options, Suite};

use crate::process;
use crate::repository::Repository;

/// Measures what the arguments ask for.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode, String> {
    let options = Options::parse(arguments)?;
    if options.overhead {
        overhead(repository, &options)?;
    }
    if options.suites.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let program = match &options.program {
        Some(program) => absolute(program)?,
        None => build(repository)?,
    };
    let folder = repository.root.join("target/bench");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("make {}: {error}", folder.display()))?;
    print!("{}", report::machine());
    let mut results = Vec::new();
    for suite in &options.suites {
        let result = compare(suite, &options, &program, &folder)?;
        print!("{}", report::suite(suite, &options, &result));
        results.push(result);
    }
    print!("{}", report::summary(&results));
    Ok(ExitCode::SUCCESS)
}

/// Measures what the plugin adds to each test.
fn overhead(repository: &Repository, options: &Options) -> Result<(), String> {
    let python = options
        .python
        .as_ref()
        .ok_or("measure the plugin: name an interpreter with pytest, --python PY")?;
    println!("## Overhead of the plugin\n");
    let folder = repository.root.join("crates/bmc-pytest/python");
    let mut command = Command::new(absolute(python)?);
    command
        .arg("tests/overhead.py")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder);
    println!("`{}`\n", process::line(&command));
    process::run(&mut command)
}

fn build(repository: &Repository) -> Result<PathBuf, String> {
    process::run(repository.cargo().args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "breakmycode",
    ]))?;
    Ok(repository
        .metadata()?
        .target_directory
        .join("release/breakmycode"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("resolve {}: {error}", path.display()))
}

/// What was measured on one suite.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// Test-loop samples of plain runs.
    pub(crate) floor: Vec<Sample>,
    /// Each contender and its samples, in the order of the table.
    pub(crate) rows: Vec<(Contender, Vec<Sample>)>,
    /// What breakmycode said about its last scan.
    pub(crate) said: String,
}

/// Runs all contenders on a suite, in turn, `rounds` times.
fn compare(
    suite: &Suite,
    options: &Options,
    program: &Path,
    folder: &Path,
) -> Result<Comparison, String> {
    let facts = Facts {
        python: absolute(&suite.python)?,
        program: program.to_owned(),
        arguments: suite.arguments.clone(),
        folder: folder.to_owned(),
        runs: options.runs,
        jobs: options.jobs,
    };
    let directory = suite
        .directory
        .canonicalize()
        .map_err(|error| format!("find {}: {error}", suite.directory.display()))?;
    let contenders = contender::available(&facts);
    let floor_script = contender::floor(&facts)?;
    let run = |script: &str| measure(script, &directory, &facts.variables());
    // Bytecode caches are filled before anything is counted: they exist in daily work as well.
    run(&floor_script)?;
    run(&contender::warm_up(&facts))?;
    let mut floor = Vec::new();
    let mut rows: Vec<(Contender, Vec<Sample>)> = contenders
        .into_iter()
        .map(|contender| (contender, Vec::new()))
        .collect();
    let count = rows.len();
    for round in 0..options.rounds {
        let plain = run(&floor_script)?;
        floor.push(contender::read_floor(&facts, plain.exit)?);
        // Each round begins with another contender, so that a machine that gets warmer or busier favours none.
        for turn in 0..count {
            let (contender, samples) = &mut rows[(turn + round as usize) % count];
            eprintln!(
                "{}: round {} of {}: {}",
                suite.name(),
                round + 1,
                options.rounds,
                contender.name
            );
            samples.push(run(&contender.script)?);
        }
    }
    Ok(Comparison {
        floor,
        rows,
        said: contender::said(&facts)?,
    })
}
