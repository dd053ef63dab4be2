//! Builds the program and scans the example project with it. Writes nothing into the repository besides what cargo builds.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::environments;
use crate::process;
use crate::repository::Repository;

const PROJECT: &str = "fixtures/projects/shop";
/// What a scan answers when a test failed every time, which one of the example does.
const FAILS_EVERY_TIME: i32 = 1;

/// Runs the demonstration; further arguments go to breakmycode.
pub(crate) fn run(repository: &Repository, rest: &[String]) -> Result<ExitCode, String> {
    println!("Building breakmycode (release); the first time takes some minutes");
    process::run(repository.cargo().args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "breakmycode",
    ]))?;
    let program = repository
        .metadata()?
        .target_directory
        .join("release/breakmycode");
    let python = environments::demo(&cache()?.join("breakmycode-demo"))?;

    let mut scan = Command::new(&program);
    scan.current_dir(&repository.root)
        .arg(PROJECT)
        .arg("--python")
        .arg(&python)
        .args(rest);
    println!("Running {}\n", process::line(&scan));
    match process::code(&mut scan)? {
        FAILS_EVERY_TIME => {
            println!(
                "\nExit code 1 is right here: the example has a test that fails every time. docs/exit-codes.md lists all codes."
            );
            Ok(ExitCode::SUCCESS)
        }
        0 if rest.is_empty() => Err(
            "believe this scan: the example has failing tests, and the exit code is 0".to_owned(),
        ),
        code => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
    }
}

/// The folder for caches of this user, by the XDG rules.
fn cache() -> Result<PathBuf, String> {
    let set = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    set("XDG_CACHE_HOME")
        .or_else(|| Some(set("HOME")?.join(".cache")))
        .ok_or_else(|| "find a folder for the example's environment: HOME is not set".to_owned())
}
