//! One recorded run again: what its seeds and its start had decided comes out the same.

use std::process::Command;

use crate::common::{Lab, finish, typed, write_files};
use crate::samples::MIXED;
use crate::tree::Tree;

/// Makes a scan, and then each run in which one of the tests failed again. Gives how many were made.
fn replay_failures(fixture: &str, arguments: &[&str], tests: &[&str], alone: bool) {
    let lab = Lab::new();
    let copy = lab.fixture(fixture);
    let before = Tree::of(&lab.home());
    let mut scan: Command = lab.scan(&copy, &["--format", "json"]);
    scan.args(arguments);
    let report = finish(scan).report();
    for id in tests {
        let test = report.tests.iter().find(|test| test.id == *id).unwrap();
        let run = test
            .failing_runs
            .first()
            .unwrap_or_else(|| panic!("{id} never failed: choose another seed"));
        let mut command = lab.typed(["replay", "latest", &run.to_string()]);
        if alone {
            command.arg(id);
        }
        let done = finish(command).expect(1);
        assert!(
            done.stdout
                .contains(&format!("failed  {id}   (as recorded)")),
            "run {run}: {}",
            done.stdout
        );
        if alone {
            assert!(
                done.stdout.contains("1 tests ran; 1 of 1 "),
                "{}",
                done.stdout
            );
        }
    }
    // A replayed run is no part of the scan.
    let again = typed(&lab, &["show", "--format", "json"])
        .expect(0)
        .report();
    assert_eq!(again, report);
    before.assert_unchanged();
    lab.assert_clean();
}

#[test]
fn replay_reproduces_what_the_seed_of_the_run_decided() {
    let tests = [
        "tests/test_chance.py::test_global_random",
        "tests/test_chance.py::test_shuffle",
    ];
    replay_failures("call-time", &["--runs", "16"], &tests, false);
}

#[test]
fn replay_reproduces_what_was_decided_at_start_up_also_for_a_test_alone() {
    let tests = [
        "tests/test_import_time.py::test_hash_parity",
        "tests/test_import_time.py::test_hash_order",
        "tests/test_import_time.py::test_global_random",
    ];
    replay_failures(
        "start-up",
        &["--runs", "24", "--fresh-starts", "12"],
        &tests,
        true,
    );
}

#[test]
fn replay_reproduces_the_failures_of_the_shop() {
    let tests = [
        "tests/test_tax.py::test_rounding[half-even]",
        "tests/test_checkout.py::test_payment",
        "tests/test_cache.py::test_cache_order",
    ];
    replay_failures(
        "shop",
        &["--runs", "24", "--fresh-starts", "12"],
        &tests,
        false,
    );
}

#[test]
fn replay_says_when_the_code_is_not_what_was_scanned() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    finish(lab.scan(&project, &["--runs", "2"])).expect(1);
    write_files(&project, &[("test_a.py", "def test_fails():\n    pass\n")]);
    let done = typed(&lab, &["replay", "latest", "1", "test_a.py::test_fails"]).expect(0);
    assert!(
        done.stdout.contains("not what was scanned") && done.stdout.contains("recorded failed"),
        "{done:#?}"
    );
    lab.assert_clean();
}
