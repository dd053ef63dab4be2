//! What is kept of a scan: printed again, listed, shared by scans at the same time, refused when it cannot be used.

use std::collections::BTreeSet;
use std::fs;

use bmc_types::ScanStatus;
use rusqlite::Connection;
use serde_json::Value;

use crate::common::{Lab, finish, json, typed};
use crate::gate::Gate;
use crate::live::{Ended, Live};
use crate::resume::{RUNS, sound};
use crate::samples::{CLEAN, MIXED};
use crate::tree::Tree;

#[test]
fn show_prints_what_the_scan_printed() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    let live = finish(lab.scan(&project, &["--runs", "4", "--fresh"])).expect(1);
    let shown = typed(&lab, &["show"]).expect(0);
    assert!(
        shown.stdout.contains(&live.stdout),
        "{}\n---\n{}",
        shown.stdout,
        live.stdout
    );
    assert_eq!(shown.stderr, "");
    let report = typed(&lab, &["show", "--format", "json"])
        .expect(0)
        .report();
    assert!(
        shown.stdout.starts_with(&report.scan_id),
        "{}",
        shown.stdout
    );
    // A scan without a result is printed again, too.
    let broken = lab.fixture("missing-module");
    let live = finish(lab.scan(&broken, &[])).expect(3);
    let shown = typed(&lab, &["show", "latest"]).expect(0);
    assert!(
        shown.stdout.contains(&live.stdout),
        "{}\n---\n{}",
        shown.stdout,
        live.stdout
    );
}

#[test]
fn show_as_json_is_the_document_that_the_scan_printed() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    let live = finish(lab.scan(&project, &["--runs", "16", "--format", "json"])).expect(1);
    assert_eq!(
        typed(&lab, &["show", "--format", "json"]).expect(0).stdout,
        live.stdout
    );
}

#[test]
fn a_scan_is_named_by_any_unique_beginning() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    let ids: Vec<String> = (0..2)
        .map(|_| {
            finish(lab.scan(&project, &["--runs", "1", "--format", "json"]))
                .expect(1)
                .report()
                .scan_id
        })
        .collect();
    let shown = |name: &str| {
        typed(&lab, &["show", name, "--format", "json"])
            .expect(0)
            .report()
            .scan_id
    };
    for id in &ids {
        let hexadecimal = id.strip_prefix("scan_").unwrap();
        for name in [id.as_str(), hexadecimal, &id[..12], &hexadecimal[..8]] {
            assert_eq!(&shown(name), id, "{name}");
        }
    }
    assert_eq!(shown("latest"), ids[1]);
    // A second scan whose name differs in the last digit only.
    let (start, last) = ids[0].split_at(ids[0].len() - 1);
    let twin = format!("{start}{}", if last == "0" { "1" } else { "0" });
    let connection = Connection::open(lab.database()).unwrap();
    let columns = "started_at, status, project_root, tool_version, request, project";
    let copy =
        format!("INSERT INTO scans (id, {columns}) SELECT ?1, {columns} FROM scans WHERE id = ?2");
    assert_eq!(connection.execute(&copy, [&twin, &ids[0]]).unwrap(), 1);
    drop(connection);
    for (name, words) in [
        (start, &ids[0]),
        (start, &twin),
        ("scan_x", &"scan_x".to_owned()),
        ("0x0", &"0x0".to_owned()),
    ] {
        for command in ["show", "resume"] {
            let done = typed(&lab, &[command, name]).expect(2);
            assert!(
                done.stderr.contains("BMC-E060") && done.stderr.contains(words),
                "{done:#?}"
            );
            assert_eq!(done.stdout, "");
        }
    }
    assert!(
        typed(&lab, &["replay", &ids[0], "99"])
            .expect(2)
            .stderr
            .contains("BMC-E060")
    );
}

#[test]
fn list_has_the_newest_first() {
    let lab = Lab::new();
    assert!(
        typed(&lab, &["list"])
            .expect(2)
            .stderr
            .contains("no scan yet")
    );
    let clean = lab.project("clean", CLEAN);
    let mixed = lab.project("mixed", MIXED);
    finish(lab.scan(&clean, &["--runs", "2"])).expect(0);
    finish(lab.scan(&mixed, &["--runs", "4", "--fresh"])).expect(1);
    let rows = json(&typed(&lab, &["list", "--format", "json"]).expect(0));
    let facts: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["root"].as_str().unwrap(),
                row["status"].as_str().unwrap(),
                row["failing"].as_u64(),
                row["flaky"].as_u64(),
            )
        })
        .collect();
    let (clean, mixed) = (clean.to_str().unwrap(), mixed.to_str().unwrap());
    assert_eq!(
        facts,
        [
            (mixed, "complete", Some(1), Some(1)),
            (clean, "complete", Some(0), Some(0))
        ]
    );
    let text = typed(&lab, &["list"]).expect(0).stdout;
    assert!(text.find(mixed) < text.find(clean), "{text}");
    assert_eq!(
        json(&typed(&lab, &["list", "-n", "1", "--format", "json"]))
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn show_lists_runs_with_their_conditions_and_every_test() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    let report = finish(lab.scan(
        &project,
        &["--runs", "8", "--fresh-starts", "2", "--format", "json"],
    ))
    .report();
    let runs = json(&typed(&lab, &["show", "--runs", "--format", "json"]).expect(0));
    let runs: Vec<&Value> = runs
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["conditions"]["purpose"] == "scan")
        .collect();
    let numbers: BTreeSet<u64> = runs
        .iter()
        .map(|run| run["run"].as_u64().unwrap())
        .collect();
    assert_eq!((runs.len(), numbers), (8, (1..=8).collect()));
    for (engine, count) in [("fresh", 2), ("forked", 6)] {
        assert_eq!(
            runs.iter()
                .filter(|run| run["conditions"]["engine"] == engine)
                .count(),
            count,
            "{engine}"
        );
    }
    for run in &runs {
        // What was decided at the start is the same for all runs of it.
        let first = runs
            .iter()
            .find(|other| other["conditions"]["start"] == run["conditions"]["start"])
            .unwrap();
        for what in ["hash_seed", "start_seed"] {
            assert_eq!(run["conditions"][what], first["conditions"][what]);
        }
        assert_eq!(
            (
                run["outcomes"].as_u64(),
                run["conditions"]["isolation"].as_str()
            ),
            (Some(3), Some("full"))
        );
    }
    let text = typed(&lab, &["show", "--runs"]).expect(0).stdout;
    assert!(
        text.lines().count() > 8 && text.contains("forked"),
        "{text}"
    );
    let text = typed(&lab, &["show", "--tests"]).expect(0).stdout;
    for test in &report.tests {
        assert!(text.contains(&test.id), "{} is not in {text}", test.id);
    }
}

#[test]
fn two_scans_write_to_one_database_at_once() {
    let lab = Lab::new();
    let gate = Gate::new(4);
    let projects =
        ["one", "two"].map(|name| lab.project(name, &[("test_asks.py", &gate.test_file())]));
    let runs = RUNS.to_string();
    let mut scans = projects.each_ref().map(|project| {
        Live::start(lab.scan(
            project,
            &[
                "--network",
                "host",
                "--format",
                "jsonl",
                "--jobs",
                "1",
                "--runs",
                &runs,
            ],
        ))
    });
    // Both are under way before either can end.
    for scan in &mut scans {
        scan.wait_for("started run", |event| event["event"] == "run.started");
    }
    gate.open();
    for scan in scans {
        let ended: Ended = scan.finish().expect(0);
        assert_eq!(ended.finished_runs().len(), RUNS as usize);
        let id = ended.events()[0]["scan_id"].as_str().unwrap().to_owned();
        let report = typed(&lab, &["show", &id, "--format", "json"])
            .expect(0)
            .report();
        assert_eq!(
            (report.status, report.totals.runs, report.problems.len()),
            (ScanStatus::Complete, RUNS, 0),
            "{report:#?}"
        );
        assert_eq!(
            typed(&lab, &["show", &id, "--events"])
                .stdout
                .lines()
                .collect::<Vec<_>>(),
            ended.lines
        );
    }
    assert_eq!(
        json(&typed(&lab, &["list", "--format", "json"]))
            .as_array()
            .unwrap()
            .len(),
        2
    );
    sound(&lab.database());
    lab.assert_clean();
}

#[test]
fn a_database_of_a_newer_version_is_read_and_not_written() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    let live = finish(lab.scan(&project, &["--runs", "2"])).expect(1);
    let connection = Connection::open(lab.database()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = Tree::of(&lab.database());
    for command in [
        lab.scan(&project, &["--runs", "2"]),
        lab.typed(["resume", "latest"]),
    ] {
        let done = finish(command).expect(2);
        assert!(
            done.stderr.contains("BMC-E062") && done.stderr.contains("99"),
            "{done:#?}"
        );
        assert_eq!(done.stdout, "");
    }
    before.assert_unchanged();
    assert!(
        typed(&lab, &["show"])
            .expect(0)
            .stdout
            .contains(&live.stdout)
    );
    assert_eq!(
        typed(&lab, &["list"])
            .expect(0)
            .stdout
            .matches("scan_")
            .count(),
        1
    );
}

#[test]
fn a_database_that_cannot_be_used_is_refused_and_left_alone() {
    let lab = Lab::new();
    let project = lab.project("p", MIXED);
    let text = lab.path("notes.txt");
    fs::write(&text, "these are notes and no database, and there are enough of them to be more than a header of SQLite\n".repeat(9))
        .unwrap();
    let before = Tree::of(&text);
    for database in [
        text.clone(),
        text.join("trace.db"),
        lab.home(),
        "/proc/breakmycode/trace.db".into(),
    ] {
        let mut scan = lab.scan(&project, &["--runs", "1"]);
        scan.arg("--db").arg(&database);
        let done = finish(scan).expect(2);
        assert!(done.stderr.contains("BMC-E063"), "{done:#?}");
        // The file, or the folder that cannot be made for it.
        let named = [database.as_path(), database.parent().unwrap()]
            .map(|path| path.to_string_lossy().into_owned());
        assert!(
            named.iter().any(|path| done.stderr.contains(path)),
            "{done:#?}"
        );
        assert_eq!(done.stdout, "");
        let mut show = lab.typed(["show", "--db"]);
        show.arg(&database);
        finish(show).expect(2);
    }
    before.assert_unchanged();
    lab.assert_clean();
}
