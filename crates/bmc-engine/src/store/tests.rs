use bmc_types::conditions::{Conditions, Engine, Purpose};
use bmc_types::report::ProjectFacts;
use bmc_types::{Failure, Outcome, ScanId, TestId};

use super::*;
use crate::history::{History, RunRecord, duration_code};

fn project() -> ProjectFacts {
    ProjectFacts {
        root: "/p".into(),
        commit: None,
        branch: None,
        dirty: None,
        tree_digest: "sha256:0".into(),
    }
}

fn run(history: &mut History, number: u32) -> RunRecord {
    let tests = [
        history.intern(&TestId::new("t.py::a")),
        history.intern(&TestId {
            nodeid: "t.py::a".into(),
            occurrence: 1,
        }),
    ];
    let failure = Failure {
        phase: None,
        kind: "ValueError".into(),
        message: format!("number {number}"),
        path: None,
        line: None,
        longrepr: "long".into(),
        rerun: false,
        extra: Vec::new(),
    };
    let record = history.failure(tests[1], Outcome::Failed, failure);
    RunRecord {
        run: number,
        conditions: Conditions {
            purpose: Purpose::Scan,
            engine: Engine::Forked,
            start: 1,
            hash_seed: 3,
            seed: u64::MAX,
            start_seed: 4,
            order: "collected".into(),
            worker: 1,
            isolation: "full".into(),
            selected: None,
        },
        outcomes: vec![Outcome::Passed.code(), Outcome::Failed.code()],
        durations: vec![duration_code(10), duration_code(20)],
        failures: vec![record],
        remarks: vec![(0, "a remark".into())],
        seconds: 0.5,
        processes: 1,
        session_error: None,
    }
}

fn filled(path: &Path) -> (ScanId, History) {
    let mut store = Store::open(path).unwrap();
    let id = ScanId::from_bytes([1, 2, 3, 4, 5, 6]);
    store
        .begin_scan(
            &id,
            "2026-01-01T00:00:00Z",
            Path::new("/p"),
            "{}",
            &project(),
        )
        .unwrap();
    let mut history = History::default();
    for number in 1..=2 {
        let (tests, signatures) = (history.tests().len(), history.signatures().len());
        let record = run(&mut history, number);
        store
            .add_run(
                &id,
                FinishedRun {
                    run: &record,
                    tests: (tests, &history.tests()[tests..]),
                    signatures: (signatures, &history.signatures()[signatures..]),
                    events: &[],
                    seconds_so_far: 1.0,
                },
            )
            .unwrap();
        history.push(record);
    }
    (id, history)
}

#[test]
fn a_scan_reads_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/trace.db");
    let (id, history) = filled(&path);
    let stored = Store::open_read_only(&path).unwrap().load(&id).unwrap();
    assert_eq!(stored.history.tests(), history.tests());
    assert_eq!(stored.history.runs(), history.runs());
    assert_eq!(stored.history.signatures(), history.signatures());
    assert_eq!(
        (stored.row.runs, stored.row.status),
        (2, bmc_types::ScanStatus::Running)
    );
}

#[test]
fn names_are_resolved_by_unique_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let (id, _) = filled(&path);
    let store = Store::open(&path).unwrap();
    let other = ScanId::from_bytes([1, 2, 9, 9, 9, 9]);
    store
        .begin_scan(
            &other,
            "2026-01-02T00:00:00Z",
            Path::new("/p"),
            "{}",
            &project(),
        )
        .unwrap();
    assert_eq!(store.resolve("0102030").unwrap(), id);
    assert_eq!(store.resolve("scan_010203040506").unwrap(), id);
    assert_eq!(store.resolve("latest").unwrap(), other);
    assert!(matches!(
        store.resolve("0102"),
        Err(StoreError::Ambiguous { .. })
    ));
    for bad in ["", "scan_", "zz", "*", "0102%", "ff"] {
        assert!(
            matches!(store.resolve(bad), Err(StoreError::NoSuchScan { .. })),
            "{bad}"
        );
    }
}

#[test]
fn a_newer_database_is_read_but_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let (id, _) = filled(&path);
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Newer { found: 99, .. })
    ));
    assert_eq!(
        Store::open_read_only(&path)
            .unwrap()
            .load(&id)
            .unwrap()
            .history
            .runs()
            .len(),
        2
    );
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    std::fs::write(
        &path,
        "not a database, but long enough to be taken for a header of one",
    )
    .unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Sqlite { .. })));
}

#[test]
fn two_that_open_at_once_both_get_a_migrated_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || Store::open(&path).map(|s| version(&s.connection).unwrap()))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap().unwrap(), MIGRATIONS.len() as u32);
    }
}
