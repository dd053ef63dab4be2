//! What is typed and what the shell gets: exit codes, refusals, options and variables, help.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Done, Lab, finish};
use crate::environments;
use crate::samples::{BOTH, BROKEN, CLEAN, EMPTY, FAILING, FLAKY};

fn exit_code(files: &[(&str, &str)], arguments: &[&str]) -> Option<i32> {
    let lab = Lab::new();
    let project = lab.project("p", files);
    let mut command = lab.scan(&project, &["--runs", "4", "--fresh"]);
    command.args(arguments);
    let done = finish(command);
    assert!(!done.stderr.contains("panicked"), "{done:#?}");
    lab.assert_clean();
    done.code
}

#[test]
fn exit_code_is_0_when_all_is_clean() {
    assert_eq!(exit_code(CLEAN, &[]), Some(0));
}

#[test]
fn exit_code_is_1_when_a_test_fails_every_time_also_beside_flaky_ones() {
    assert_eq!(exit_code(FAILING, &[]), Some(1));
    assert_eq!(exit_code(BOTH, &[]), Some(1));
}

#[test]
fn exit_code_is_5_when_tests_are_only_flaky() {
    assert_eq!(exit_code(FLAKY, &[]), Some(5));
}

#[test]
fn exit_code_is_3_when_a_file_cannot_be_collected_and_no_gate_changes_that() {
    assert_eq!(exit_code(BROKEN, &[]), Some(3));
    assert_eq!(exit_code(BROKEN, &["--exit-zero"]), Some(3));
    assert_eq!(
        exit_code(BROKEN, &["--continue-on-collection-errors"]),
        Some(0)
    );
}

#[test]
fn exit_code_is_4_when_there_are_no_tests_and_no_gate_changes_that() {
    assert_eq!(exit_code(EMPTY, &[]), Some(4));
    assert_eq!(exit_code(EMPTY, &["--fail-on", "none"]), Some(4));
}

#[test]
fn fail_on_chooses_what_gates() {
    assert_eq!(exit_code(BOTH, &["--fail-on", "flaky"]), Some(5));
    assert_eq!(exit_code(BOTH, &["--fail-on", "failing"]), Some(1));
    assert_eq!(exit_code(FLAKY, &["--fail-on", "failing"]), Some(0));
    assert_eq!(exit_code(BOTH, &["--fail-on", "none"]), Some(0));
    assert_eq!(exit_code(BOTH, &["--exit-zero"]), Some(0));
}

/// Refused with exit code 2, nothing on standard output, and those words.
#[track_caller]
fn refused(done: Done, words: &[&str]) {
    let done = done.expect(2);
    assert_eq!(done.stdout, "");
    for word in words {
        assert!(done.stderr.contains(word), "{word:?} is not in {done:#?}");
    }
}

#[test]
fn a_path_that_is_not_there_is_e015() {
    let lab = Lab::new();
    for path in ["nowhere", "src/nowhere/test_a.py"] {
        refused(finish(lab.scan(path, &[])), &["BMC-E015"]);
    }
    // Nothing was begun, so nothing is in the trace.
    assert!(!lab.database().exists());
}

#[test]
fn a_path_that_is_a_device_or_a_dangling_link_is_refused() {
    let lab = Lab::new();
    symlink("nowhere", lab.home().join("link")).unwrap();
    refused(
        finish(lab.scan(lab.home().join("link"), &[])),
        &["BMC-E015"],
    );
    let done = finish(lab.scan("/dev/null", &["--runs", "1"]));
    assert!(matches!(done.code, Some(2..=4)), "{done:#?}");
}

#[test]
fn a_file_is_scanned_alone_and_a_folder_with_what_is_below() {
    let lab = Lab::new();
    let project = lab.project(
        "p",
        &[
            ("pyproject.toml", ""),
            ("tests/a/test_a.py", CLEAN[0].1),
            ("tests/b/test_b.py", CLEAN[0].1),
        ],
    );
    for (path, expected) in [
        ("tests/a/test_a.py", &["tests/a/test_a.py::test_a"][..]),
        ("tests/b", &["tests/b/test_b.py::test_a"]),
        (
            "tests",
            &["tests/a/test_a.py::test_a", "tests/b/test_b.py::test_a"],
        ),
    ] {
        let report = finish(lab.scan(project.join(path), &["--runs", "2", "--format", "json"]))
            .expect(0)
            .report();
        let ids: Vec<&str> = report.tests.iter().map(|test| test.id.as_str()).collect();
        assert_eq!(ids, expected);
        assert_eq!(Path::new(&report.project.root), project);
    }
}

#[test]
fn a_path_alone_is_a_scan_and_no_path_is_this_folder() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let python = &environments::usual().python;
    let mut command = lab.command();
    command
        .arg(&project)
        .args(["--runs", "1", "--format", "json", "--python"])
        .arg(python);
    assert_eq!(finish(command).expect(0).report().tests.len(), 1);
    let mut command = lab.command();
    command
        .current_dir(&project)
        .args(["--runs", "1", "--format", "json", "--python"])
        .arg(python);
    assert_eq!(finish(command).expect(0).report().tests.len(), 1);
}

#[test]
fn options_that_make_no_sense_are_refused_before_anything_starts() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    for arguments in [
        &["--no-such-option"][..],
        &["--runs", "0"],
        &["--runs", "-1"],
        &["--runs", "many"],
        &["--runs", "1000001"],
        &["--jobs", "0"],
        &["--fresh-starts", "0"],
        &["--seed", "x"],
        &["--seed", "0x10000000000000000"],
        &["--test-timeout", "0"],
        &["--test-timeout", "nan"],
        &["--test-timeout", "-3"],
        &["--duration", "soon"],
        &["--duration", "0s"],
        &["--until", "rate=0"],
        &["--until", "rate=0.05,confidence=1"],
        &["--until", "rate=0.05,runs=3"],
        &["--until", "rate=0.5", "--runs", "3"],
        &["--network", "wifi"],
        &["--format", "yaml"],
        &["--fail-on", "everything"],
        &["--from", "latest"],
        &["--from", "latest", "--only", "flaky"],
        &["--color", "sometimes"],
        &["more", "paths"],
    ] {
        let mut command = lab.command();
        command.arg("scan").arg(&project).args(arguments);
        refused(finish(command), &["error"]);
    }
    assert!(!lab.database().exists());
}

#[test]
fn variables_are_read_like_options_and_options_win() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let mut command = lab.typed(["scan", "--format", "json"]);
    command
        .arg(&project)
        .env("BREAKMYCODE_RUNS", "3")
        .env("BREAKMYCODE_JOBS", "1")
        .env("BREAKMYCODE_DB", lab.path("other.db"));
    command.env("BREAKMYCODE_PYTHON", &environments::usual().python);
    let report = finish(command).expect(0).report();
    let plan = report.plan.unwrap();
    assert_eq!((plan.runs, plan.jobs, report.totals.runs), (3, 1, 3));
    assert!(lab.path("other.db").exists() && !lab.database().exists());
    let mut command = lab.scan(&project, &["--format", "json", "--runs", "2"]);
    command
        .env("BREAKMYCODE_RUNS", "3")
        .env("BREAKMYCODE_PYTHON", "/nowhere/python");
    assert_eq!(finish(command).expect(0).report().totals.runs, 2);
}

#[test]
fn without_a_home_the_missing_variable_is_named() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let mut command = lab.scan(&project, &[]);
    command.env_remove("HOME").env_remove("XDG_DATA_HOME");
    refused(finish(command), &["XDG_DATA_HOME"]);
}

#[test]
fn without_xdg_variables_everything_is_in_the_home() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let mut command = lab.scan(&project, &["--runs", "2"]);
    for name in ["XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    finish(command).expect(0);
    assert!(
        lab.home()
            .join(".local/share/breakmycode/trace.db")
            .is_file()
    );
    assert!(lab.home().join(".cache/breakmycode").is_dir());
    // Data of the user is for the user alone, as the trace holds output of tests.
    assert!(!lab.database().exists());
}

#[test]
fn until_and_duration_choose_the_runs() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let report = finish(lab.scan(
        &project,
        &["--format", "json", "--until", "rate=0.5,confidence=0.9"],
    ))
    .expect(0)
    .report();
    assert_eq!((report.plan.unwrap().runs, report.totals.runs), (4, 4));
    let arguments = [
        "--format",
        "json",
        "--runs",
        "100000",
        "--fresh",
        "--jobs",
        "1",
        "--duration",
        "0.001s",
    ];
    let report = finish(lab.scan(&project, &arguments)).expect(0).report();
    assert_eq!(
        (
            report.status.as_str(),
            report.plan.unwrap().runs,
            report.totals.runs
        ),
        ("complete", 1, 1)
    );
}

#[test]
fn only_limits_a_scan_to_tests_and_to_those_of_an_earlier_one() {
    let lab = Lab::new();
    let project = lab.project("p", BOTH);
    let ids = |arguments: &[&str], code: i32| -> Vec<String> {
        let mut command = lab.scan(&project, &["--format", "json", "--fresh", "--runs", "4"]);
        command.args(arguments);
        finish(command)
            .expect(code)
            .report()
            .tests
            .iter()
            .map(|test| test.id.clone())
            .collect()
    };
    assert_eq!(ids(&[], 1).len(), 3);
    assert_eq!(
        ids(&["--from", "latest", "--only", "flaky"], 5),
        ["test_b.py::test_a"]
    );
    assert_eq!(
        ids(&["--only", "test_a.py::test_b"], 0),
        ["test_a.py::test_b"]
    );
    assert_eq!(
        ids(&["--only", "test_a.py::test_b", "nowhere.py::test"], 0),
        ["test_a.py::test_b"]
    );
    assert_eq!(ids(&["--only", "nowhere.py::test"], 4), [] as [&str; 0]);
    assert_eq!(
        ids(&["--", "-k", "test_a.py and test_b"], 0),
        ["test_a.py::test_b"]
    );
    refused(
        finish(lab.scan(&project, &["--from", "latest", "--only", "unsure"])),
        &["unsure"],
    );
    refused(
        finish(lab.scan(&project, &["--from", "latest", "--only", "sometimes"])),
        &["sometimes"],
    );
}

#[test]
fn the_same_seed_makes_the_same_conditions() {
    let lab = Lab::new();
    let project = lab.project("p", FLAKY);
    let scan = |seed: &str| {
        let mut command = lab.typed([
            "scan", "--format", "json", "--runs", "12", "--seed", seed, "--python",
        ]);
        command.arg(&environments::usual().python).arg(&project);
        let report = finish(command).report();
        (
            report.plan.unwrap().seed,
            report.tests[0].failing_runs.clone(),
        )
    };
    let mut first = scan("0x2a");
    let mut second = scan("42");
    // Runs are numbered, but end in an order that is not ours to choose.
    first.1.sort_unstable();
    second.1.sort_unstable();
    assert_eq!(first, second);
    assert_eq!(first.0, "0x000000000000002a");
}

#[test]
fn help_explains_every_code_that_the_documentation_lists() {
    let lab = Lab::new();
    let table =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md"))
            .unwrap();
    let codes: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| E")?.split(' ').next())
        .collect();
    assert!(codes.len() > 25, "{codes:?}");
    for code in codes {
        let done = finish(lab.typed(["help", &format!("E{code}")])).expect(0);
        assert!(
            done.stdout.contains(&format!("E{code}")) && done.stdout.lines().count() >= 3,
            "{done:#?}"
        );
        assert_eq!(done, finish(lab.typed(["help", &format!("bmc-e{code}")])));
    }
    for topic in [
        "scan", "resume", "show", "list", "replay", "doctor", "schema",
    ] {
        assert!(
            finish(lab.typed(["help", topic]))
                .expect(0)
                .stdout
                .contains("Usage"),
            "{topic}"
        );
    }
    refused(finish(lab.typed(["help", "E999"])), &["E999"]);
}

#[test]
fn help_and_version_go_to_standard_output_and_need_no_home() {
    let lab = Lab::new();
    for arguments in [
        &["--help"][..],
        &["scan", "--help"],
        &["help"],
        &["--version"],
        &["schema"],
    ] {
        let mut command = lab.typed(arguments);
        command.env_clear();
        let done = finish(command).expect(0);
        assert_eq!(done.stderr, "");
        assert!(!done.stdout.is_empty());
    }
}
