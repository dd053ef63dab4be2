//! A thousand runs of ten thousand tests: what the trace and the memory take. Sizes are asserted, times are for the benchmark.

use std::path::Path;

use bmc_engine::history::{History, RunRecord, duration_code};
use bmc_engine::store::{FinishedRun, Store};
use bmc_engine::workflow::assemble;
use bmc_types::conditions::{Conditions, Engine, Purpose};
use bmc_types::report::ProjectFacts;
use bmc_types::{Failure, Outcome, ScanId, TestClass, TestId};

const RUNS: u32 = 1000;
const TESTS: u32 = 10_000;

/// A small generator of our own (xorshift), so that durations differ as real ones do and do not compress by luck.
fn noise(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn run(history: &mut History, number: u32, state: &mut u64) -> RunRecord {
    let mut outcomes = vec![Outcome::Passed.code(); TESTS as usize];
    let durations = (0..TESTS)
        .map(|_| duration_code(noise(state) % 50_000))
        .collect();
    // 20 tests fail every tenth time, each with an address in its message that is new every time.
    let mut failures = Vec::new();
    for flaky in 0..20 {
        if noise(state).is_multiple_of(10) {
            let test = flaky * 500;
            outcomes[test as usize] = Outcome::Failed.code();
            let failure = Failure {
                phase: None,
                kind: "AssertionError".into(),
                message: format!("<Object at {:#x}> is not None", noise(state)),
                path: Some(format!("tests/test_{test}.py")),
                line: Some(3),
                longrepr: "a line of a traceback\n".repeat(150),
                rerun: false,
                extra: Vec::new(),
            };
            failures.push(history.failure(test, Outcome::Failed, failure));
        }
    }
    RunRecord {
        run: number,
        conditions: Conditions {
            purpose: Purpose::Scan,
            engine: if number.is_multiple_of(10) {
                Engine::Fresh
            } else {
                Engine::Forked
            },
            start: number % 103 + 1,
            hash_seed: number,
            seed: noise(state),
            start_seed: noise(state),
            order: "collected".into(),
            worker: 1,
            isolation: "full".into(),
            selected: None,
        },
        outcomes,
        durations,
        failures,
        remarks: Vec::new(),
        seconds: 1.0,
        processes: 1,
        session_error: None,
    }
}

#[test]
fn a_thousand_runs_of_ten_thousand_tests_fit_the_promised_memory_and_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut store = Store::open(&path).unwrap();
    let id = ScanId::from_bytes([1; 6]);
    let project = ProjectFacts {
        root: "/p".into(),
        commit: None,
        branch: None,
        dirty: None,
        tree_digest: "sha256:0".into(),
    };
    store
        .begin_scan(&id, "2026-01-01T00:00:00Z", Path::new("/p"), "{}", &project)
        .unwrap();
    let mut history = History::default();
    for test in 0..TESTS {
        let nodeid = format!(
            "tests/package/test_module_{}.py::TestClass::test_case[{test}]",
            test / 50
        );
        history.intern(&TestId::new(nodeid));
    }
    let (mut known_tests, mut known_signatures) = (0, 0);
    let mut state = 0x5d1f_8c13_045d_132c;
    for number in 1..=RUNS {
        let record = run(&mut history, number, &mut state);
        let tests = (known_tests, &history.tests()[known_tests..]);
        let signatures = (known_signatures, &history.signatures()[known_signatures..]);
        let finished = FinishedRun {
            run: &record,
            tests,
            signatures,
            events: &[],
            seconds_so_far: 1.0,
        };
        store.add_run(&id, finished).unwrap();
        (known_tests, known_signatures) = (history.tests().len(), history.signatures().len());
        history.push(record);
    }
    drop(store);
    drop(history);

    let files = std::fs::read_dir(folder.path()).unwrap();
    let size: u64 = files
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(size < 60 << 20, "the database takes {} MiB", size >> 20);

    let stored = Store::open_read_only(&path).unwrap().load(&id).unwrap();
    let report = assemble(stored.row.into(), &stored.history);
    assert_eq!(report.totals.outcomes, u64::from(RUNS) * u64::from(TESTS));
    let flaky: Vec<_> = report
        .tests
        .iter()
        .filter(|t| t.class == TestClass::Flaky)
        .collect();
    assert_eq!(flaky.len(), 20);
    assert!(
        flaky.iter().all(|t| t.signatures.len() == 1),
        "addresses split a signature"
    );

    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap();
    assert!(peak < 200 << 10, "the peak is {} MiB", peak >> 10);
}
