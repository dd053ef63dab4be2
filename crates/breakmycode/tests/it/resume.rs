//! Scans that end early, by a signal, a crash or a change of the code: what is kept, what is said, and how they are gone on with.

use std::fs;
use std::path::{Path, PathBuf};

use bmc_types::{ScanReport, ScanStatus, TestClass};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Lab, finish, json, typed, write_files};
use crate::gate::Gate;
use crate::live::{self, Live};
use crate::samples::MIXED;

/// Runs that the interrupted scans of this file are asked for.
pub(crate) const RUNS: u32 = 12;

/// A scan of a project whose test asks a gate, stopped there after so many runs.
struct Stopped {
    lab: Lab,
    gate: Gate,
    project: PathBuf,
    live: Live,
    /// Runs that had finished.
    before: Vec<u64>,
}

impl Stopped {
    fn after(runs: usize, arguments: &[&str]) -> Self {
        let lab = Lab::new();
        let gate = Gate::new(runs);
        let project = lab.project("p", &[("test_asks.py", &gate.test_file())]);
        let mut command = lab.scan(
            &project,
            &[
                "--network",
                "host",
                "--format",
                "jsonl",
                "--runs",
                &RUNS.to_string(),
            ],
        );
        command.args(arguments);
        let mut live = Live::start(command);
        let mut before: Vec<u64> = (0..runs).map(|_| live.wait_for_run()).collect();
        // One more has begun and asks the gate.
        let begun = |live: &Live| {
            live.lines
                .iter()
                .filter(|line| live::parse(line)["event"] == "run.started")
                .count()
        };
        while begun(&live) <= runs {
            live.wait_for("started run", |event| event["event"] == "run.started");
        }
        before.sort_unstable();
        Self {
            lab,
            gate,
            project,
            live,
            before,
        }
    }
}

/// Goes on with the newest scan and checks that it makes the missing runs, each once, and nothing else.
fn resume_completes(lab: &Lab, before: &[u64]) {
    let resumed = Live::start(lab.typed(["resume", "latest", "--format", "jsonl"]))
        .finish()
        .expect(0);
    let missing: Vec<u64> = (1..=u64::from(RUNS))
        .filter(|run| !before.contains(run))
        .collect();
    assert_eq!(resumed.finished_runs(), missing);
    let report = typed(lab, &["show", "--format", "json"]).expect(0).report();
    assert_eq!(
        (report.status, report.totals.runs),
        (ScanStatus::Complete, RUNS)
    );
    for test in &report.tests {
        assert_eq!(
            (test.class, test.counts.passed, test.runs),
            (TestClass::Clean, RUNS, RUNS),
            "{test:#?}"
        );
    }
    // The events of both sittings are one series.
    let events = stored_events(lab);
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<u64>>());
    assert_eq!(
        stored_runs(lab),
        (1..=u64::from(RUNS)).collect::<Vec<u64>>()
    );
    sound(&lab.database());
    lab.assert_clean();
}

fn stored_events(lab: &Lab) -> Vec<Value> {
    typed(lab, &["show", "--events"])
        .expect(0)
        .stdout
        .lines()
        .map(live::parse)
        .collect()
}

fn stored_runs(lab: &Lab) -> Vec<u64> {
    let runs = json(&typed(lab, &["show", "--runs", "--format", "json"]).expect(0));
    let mut numbers: Vec<u64> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The database is whole in the eyes of SQLite.
pub(crate) fn sound(database: &Path) {
    let connection = Connection::open(database).unwrap();
    let words: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(words, "ok");
}

#[test]
fn after_kill_9_every_finished_run_is_there_and_resume_makes_the_others() {
    let Stopped {
        lab,
        gate,
        live,
        before,
        ..
    } = Stopped::after(5, &["--jobs", "2"]);
    live.signal(Signal::KILL);
    let killed = live.finish();
    assert_eq!(killed.signal, Some(9), "{killed:#?}");
    crate::processes::assert_none_left(lab.folder());
    sound(&lab.database());
    let report = typed(&lab, &["show", "--format", "json"])
        .expect(0)
        .report();
    assert_eq!(
        (report.status, report.totals.runs),
        (ScanStatus::Running, 5)
    );
    assert!(
        report.tests.iter().all(|test| test.counts.passed == 5),
        "{:#?}",
        report.tests
    );
    assert_eq!(stored_runs(&lab), before);
    let text = typed(&lab, &["show"]).expect(0).stdout;
    assert!(
        text.contains(&format!("breakmycode resume {}", report.scan_id)),
        "{text}"
    );
    assert_eq!(
        json(&typed(&lab, &["list", "--format", "json"]))[0]["status"],
        "running"
    );
    gate.open();
    resume_completes(&lab, &before);
}

#[test]
fn what_a_killed_scan_left_is_removed_by_the_next_one() {
    let Stopped {
        lab,
        gate,
        project,
        live,
        ..
    } = Stopped::after(1, &["--jobs", "1"]);
    live.signal(Signal::KILL);
    live.finish();
    assert_eq!(lab.scratch_left().len(), 1);
    gate.open();
    finish(lab.scan(&project, &["--network", "host", "--runs", "1"])).expect(0);
    lab.assert_clean();
}

#[test]
fn ctrl_c_once_lets_running_tests_finish_and_saves() {
    let Stopped {
        lab,
        gate,
        mut live,
        before,
        ..
    } = Stopped::after(3, &["--jobs", "1"]);
    live.signal_group(Signal::INT);
    live.wait_for_words("Stopping");
    gate.open();
    let ended = live.finish().expect(130);
    let last = ended.events().pop().unwrap();
    assert_eq!(
        (last["event"].as_str(), last["status"].as_str()),
        (Some("scan.finished"), Some("interrupted"))
    );
    // The run that was waiting was let finish; no other began.
    let saved = ended.finished_runs();
    assert_eq!(saved.len(), 4, "{ended:#?}");
    assert!(before.iter().all(|run| saved.contains(run)));
    lab.assert_clean();
    let text = typed(&lab, &["show"]).expect(0).stdout;
    assert!(
        text.contains("Interrupted") && text.contains("breakmycode resume"),
        "{text}"
    );
    assert_eq!(
        typed(&lab, &["show", "--format", "json"])
            .expect(0)
            .report()
            .status,
        ScanStatus::Interrupted
    );
    resume_completes(&lab, &saved);
}

#[test]
fn ctrl_c_twice_kills_what_runs_and_saves_what_had_finished() {
    let Stopped {
        lab,
        gate,
        mut live,
        before,
        ..
    } = Stopped::after(3, &["--jobs", "2"]);
    live.signal_group(Signal::INT);
    live.wait_for_words("Stopping");
    live.signal_group(Signal::INT);
    let ended = live.finish().expect(130);
    assert_eq!(ended.finished_runs(), before);
    lab.assert_clean();
    gate.open();
    resume_completes(&lab, &before);
}

#[test]
fn sigterm_stops_like_ctrl_c_also_under_fresh_and_copy() {
    for way in ["--fresh", "--copy"] {
        let Stopped {
            lab,
            gate,
            mut live,
            before,
            ..
        } = Stopped::after(2, &["--jobs", "1", way]);
        live.signal(Signal::TERM);
        live.wait_for_words("Stopping");
        live.signal(Signal::TERM);
        let ended = live.finish().expect(130);
        assert_eq!(ended.finished_runs(), before);
        lab.assert_clean();
        gate.open();
        resume_completes(&lab, &before);
    }
}

#[test]
fn a_scan_that_was_stopped_before_its_first_run_can_be_resumed() {
    let Stopped {
        lab,
        gate,
        mut live,
        before,
        ..
    } = Stopped::after(0, &["--jobs", "1"]);
    live.signal(Signal::INT);
    live.wait_for_words("Stopping");
    live.signal(Signal::INT);
    live.finish().expect(130);
    assert_eq!(
        typed(&lab, &["show", "--format", "json"])
            .expect(0)
            .report()
            .totals
            .runs,
        0
    );
    typed(&lab, &["show"]).expect(0);
    gate.open();
    resume_completes(&lab, &before);
}

#[test]
fn a_scan_is_not_resumed_when_the_code_changed_and_is_when_it_is_back() {
    let Stopped {
        lab,
        gate,
        project,
        live,
        before,
        ..
    } = Stopped::after(2, &["--jobs", "1"]);
    live.signal(Signal::KILL);
    live.finish();
    gate.open();
    for (name, content) in [
        ("test_asks.py", "def test_asks():\n    pass\n"),
        ("new.py", ""),
    ] {
        let old = fs::read(project.join(name)).ok();
        write_files(&project, &[(name, content)]);
        let done = typed(&lab, &["resume", "latest"]).expect(2);
        assert!(
            done.stderr.contains("BMC-E061") && done.stderr.contains("the code"),
            "{done:#?}"
        );
        assert_eq!(done.stdout, "");
        match old {
            Some(old) => fs::write(project.join(name), old).unwrap(),
            None => fs::remove_file(project.join(name)).unwrap(),
        }
    }
    resume_completes(&lab, &before);
}

#[test]
fn a_complete_scan_and_one_without_result_are_not_resumed() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    finish(lab.scan(&project, &["--runs", "2"])).expect(1);
    assert!(
        typed(&lab, &["resume", "latest"])
            .expect(2)
            .stderr
            .contains("BMC-E061")
    );
    let broken = lab.fixture("missing-module");
    finish(lab.scan(&broken, &[])).expect(3);
    assert!(
        typed(&lab, &["resume", "latest"])
            .expect(2)
            .stderr
            .contains("BMC-E061")
    );
}

#[test]
fn a_scan_stops_when_the_code_changes_and_names_the_file() {
    for (name, word) in [("test_asks.py", "changed"), ("pkg/new.py", "added")] {
        let Stopped {
            lab,
            gate,
            project,
            mut live,
            before,
        } = Stopped::after(2, &["--jobs", "1"]);
        let old = fs::read(project.join(name)).ok();
        write_files(&project, &[(name, "x = 1\n")]);
        gate.open();
        let problem = live.wait_for("problem", |event| event["event"] == "problem");
        let text = problem["problem"]["text"].as_str().unwrap();
        assert!(text.contains(name) && text.contains(word), "{text}");
        assert_eq!(
            (
                problem["problem"]["kind"].as_str(),
                problem["problem"]["severity"].as_str()
            ),
            (Some("code_changed"), Some("error"))
        );
        let ended = live.finish().expect(3);
        // What was measured before is kept, and nothing else.
        assert_eq!(ended.finished_runs(), before);
        let report: ScanReport = typed(&lab, &["show", "--format", "json"])
            .expect(0)
            .report();
        assert_eq!(
            (report.status, report.exit_code, report.totals.runs),
            (ScanStatus::CodeChanged, 3, 2)
        );
        assert!(typed(&lab, &["show"]).expect(0).stdout.contains(name));
        lab.assert_clean();
        match old {
            Some(old) => fs::write(project.join(name), old).unwrap(),
            None => fs::remove_dir_all(project.join("pkg")).unwrap(),
        }
        resume_completes(&lab, &before);
    }
}
