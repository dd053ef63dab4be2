//! Standard output and standard error: what goes where, colour, and what happens when somebody closes them.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::{Lab, finish};
use crate::environments;
use crate::filters::filtered;
use crate::samples::{BOTH, FAILING};

#[test]
fn colour_is_where_it_was_asked_for() {
    let lab = Lab::new();
    let project = lab.project("p", FAILING);
    let coloured = |choice: &str, variables: &[(&str, &str)]| {
        let mut command = lab.scan(&project, &["--runs", "1", "--color", choice]);
        command.envs(variables.iter().copied());
        let done = finish(command).expect(1);
        (
            done.stdout.contains('\u{1b}'),
            done.stderr.contains('\u{1b}'),
        )
    };
    assert_eq!(coloured("auto", &[]), (false, false));
    assert_eq!(coloured("always", &[("NO_COLOR", "1")]), (true, true));
    assert_eq!(coloured("auto", &[("CLICOLOR_FORCE", "1")]), (true, true));
    assert_eq!(
        coloured("auto", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]),
        (false, false)
    );
    assert_eq!(
        coloured("never", &[("CLICOLOR_FORCE", "1")]),
        (false, false)
    );
}

#[test]
fn ascii_output_has_no_other_character() {
    let lab = Lab::new();
    let project = lab.project("p", BOTH);
    let done = finish(lab.scan(&project, &["--runs", "4", "--fresh", "--ascii"])).expect(1);
    assert!(
        done.stdout.is_ascii() && done.stderr.is_ascii(),
        "{done:#?}"
    );
}

/// Runs a command whose reader goes away at once.
fn with_closed_reader(mut command: Command) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = command
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(command);
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let lab = Lab::new();
    let project = lab.project("p", FAILING);
    for format in ["text", "json", "jsonl", "junit"] {
        let (code, stderr) =
            with_closed_reader(lab.scan(&project, &["--runs", "2", "--format", format]));
        assert_eq!(code, Some(1), "{format}: {stderr}");
        assert!(
            !stderr.contains("panicked") && !stderr.contains("roken pipe"),
            "{format}: {stderr}"
        );
    }
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help", "E021"],
        &["schema"],
        &["list"],
        &["list", "--format", "json"],
        &["show"],
        &["show", "--events"],
        &["show", "--runs"],
        &["show", "--tests"],
    ] {
        assert_eq!(
            with_closed_reader(lab.typed(arguments)),
            (Some(0), String::new()),
            "{arguments:?}"
        );
    }
}

#[test]
fn standard_error_may_be_closed_too() {
    let lab = Lab::new();
    let project = lab.project("p", FAILING);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = lab.scan(&project, &["--runs", "2", "--format", "json"]);
    let output = command.stderr(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(serde_json::from_slice::<bmc_types::ScanReport>(&output.stdout).is_ok());
}

#[test]
fn streams_that_were_never_open_do_no_harm() {
    let lab = Lab::new();
    let project = lab.project("p", FAILING);
    let scan = lab.scan(&project, &["--runs", "2"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$@\" <&- >&- 2>&-", "sh"])
        .arg(scan.get_program())
        .args(scan.get_args());
    shell
        .env_clear()
        .envs(
            scan.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(lab.home());
    assert_eq!(shell.status().unwrap().code(), Some(1));
    assert!(
        finish(lab.typed(["show"]))
            .expect(0)
            .stdout
            .contains("test_a.py::test_a")
    );
    lab.assert_clean();
}

#[test]
fn a_scan_prints_its_progress_on_standard_error_and_its_result_on_standard_output() {
    let lab = Lab::new();
    let project = lab.project("p", FAILING);
    let done = finish(lab.scan(&project, &["--runs", "4", "--jobs", "1"])).expect(1);
    insta::assert_snapshot!(
        "result_of_a_scan",
        filtered(&done.stdout, lab.folder(), environments::usual())
    );
    for words in [
        "Project",
        "Python",
        "pytest",
        "Isolation",
        "Collected",
        "Plan",
    ] {
        assert!(
            done.stderr.contains(words) && !done.stdout.contains(&format!("  {words}  ")),
            "{words}: {done:#?}"
        );
    }
    // The last words are those of the result, not of the progress.
    assert!(!done.stderr.contains("FAILS EVERY TIME"), "{done:#?}");
}

#[test]
fn a_fault_of_the_environment_has_its_four_parts() {
    let lab = Lab::new();
    let copy = lab.fixture("missing-module");
    let done = finish(lab.scan(&copy, &[])).expect(3);
    insta::assert_snapshot!(
        "missing_module",
        filtered(&done.stdout, lab.folder(), environments::usual())
    );
    lab.assert_clean();
}
