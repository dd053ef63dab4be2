//! Constructed reports for tests of the renderers: every class, every way in which a scan ends, and ids that are meant to do harm.

use bmc_engine::lab::stats;
use bmc_types::report::{
    Counts, EnvironmentFacts, PlanFacts, Power, ProjectFacts, SCAN_SCHEMA, SignatureReport, Totals,
};
use bmc_types::{Advice, Problem, ScanReport, ScanStatus, TestClass, TestReport};

/// A test with counts; rate and interval follow from them as in a real report.
pub(super) fn test(id: &str, class: TestClass, passed: u32, failed: u32) -> TestReport {
    let runs = passed + failed;
    let counts = Counts {
        passed,
        failed,
        ..Counts::default()
    };
    TestReport {
        id: id.to_owned(),
        occurrence: 0,
        class,
        counts,
        runs,
        rate: (runs > 0).then(|| f64::from(failed) / f64::from(runs)),
        ci95: stats::wilson95(failed, runs),
        at_most: (runs > 0 && failed == 0).then(|| stats::at_most95(runs)),
        fresh: counts,
        forked: Counts::default(),
        failing_runs: Vec::new(),
        start_up: false,
        remarks: Vec::new(),
        signatures: Vec::new(),
        median_s: Some(0.05),
        max_s: Some(0.2),
    }
}

pub(super) fn way(
    kind: &str,
    message: &str,
    location: Option<&str>,
    count: u32,
    outcome: &str,
) -> SignatureReport {
    SignatureReport {
        digest: "f3a9c1d200000000".to_owned(),
        kind: kind.to_owned(),
        message: message.to_owned(),
        location: location.map(str::to_owned),
        count,
        outcome: outcome.to_owned(),
    }
}

fn power(runs: u32) -> Vec<Power> {
    [0.1, 0.05, 0.01]
        .map(|rate| Power {
            rate,
            caught_with: stats::caught_with(rate, runs),
        })
        .to_vec()
}

/// A report with these tests; all sums follow from them.
pub(super) fn report(status: ScanStatus, runs: u32, tests: Vec<TestReport>) -> ScanReport {
    let count = |class: TestClass| tests.iter().filter(|t| t.class == class).count() as u64;
    let starts = runs.div_ceil(4);
    ScanReport {
        schema: SCAN_SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        scan_id: "scan_8c13045d132c".to_owned(),
        status,
        started_at: "2026-11-30T14:02:11Z".to_owned(),
        seconds: 98.2,
        project: ProjectFacts {
            root: "/home/dev/src/shop".to_owned(),
            commit: Some("4f1c2d9aa0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5".to_owned()),
            branch: Some("main".to_owned()),
            dirty: Some(false),
            tree_digest: format!("sha256:{}", "1f".repeat(32)),
        },
        environment: Some(environment()),
        plan: Some(plan(20)),
        totals: Totals {
            runs,
            fresh_runs: starts,
            fresh_starts: starts,
            confirm_runs: 0,
            tests: tests.len() as u64,
            outcomes: u64::from(runs) * tests.len() as u64,
            consistent_failures: count(TestClass::Failing),
            flaky: count(TestClass::Flaky),
            clean: count(TestClass::Clean),
            unstable: count(TestClass::Unstable),
            not_judged: count(TestClass::NotJudged),
            unsure: count(TestClass::Unsure),
            isolation_dependent: count(TestClass::IsolationDependent),
            timeouts: 0,
            crashes: 0,
        },
        power: power(runs),
        start_power: power(starts),
        tests,
        problems: Vec::new(),
        advice: Vec::new(),
        exit_code: 0,
    }
}

pub(crate) fn environment() -> EnvironmentFacts {
    EnvironmentFacts {
        python: "3.12.5".to_owned(),
        implementation: "cpython".to_owned(),
        executable: ".venv/bin/python".to_owned(),
        found_by: ".venv next to pyproject.toml".to_owned(),
        pytest: "9.2.0".to_owned(),
        plugins: vec![
            ("pytest-asyncio".to_owned(), "1.2.0".to_owned()),
            ("hypothesis".to_owned(), "6.150.0".to_owned()),
        ],
        switched_off: vec![("pytest-cov".to_owned(), "it slows every run".to_owned())],
        isolation: "full".to_owned(),
        isolation_detail: "user, mount, pid, network, ipc and uts namespaces, overlay".to_owned(),
        network: "loopback".to_owned(),
    }
}

pub(crate) fn plan(runs: u32) -> PlanFacts {
    PlanFacts {
        runs,
        fresh_starts: runs.div_ceil(4),
        engine: "hybrid".to_owned(),
        engine_why: None,
        jobs: 2,
        seed: "0x00000000005d1f2a".to_owned(),
        order: "collected".to_owned(),
        test_timeout_s: None,
        pytest_args: Vec::new(),
        only: Vec::new(),
        from: None,
    }
}

/// Clean tests with numbers in their names.
fn clean(n: usize, runs: u32) -> impl Iterator<Item = TestReport> {
    (0..n).map(move |i| {
        test(
            &format!("tests/test_more.py::test_{i}"),
            TestClass::Clean,
            runs,
            0,
        )
    })
}

/// One consistent failure and two flaky tests among 412.
pub(super) fn shop() -> ScanReport {
    let mut rounding = test(
        "tests/test_tax.py::test_rounding[half-even]",
        TestClass::Failing,
        0,
        20,
    );
    rounding.failing_runs = (1..=20).collect();
    let message =
        "assert Decimal('1.11') == Decimal('1.12')\n +  where Decimal('1.11') = round_cents()";
    rounding.signatures = vec![way(
        "AssertionError",
        message,
        Some("shop/tax.py:41"),
        20,
        "failed",
    )];
    let mut payment = test(
        "tests/test_checkout.py::test_payment",
        TestClass::Flaky,
        14,
        6,
    );
    payment.failing_runs = vec![2, 5, 6, 11, 13, 18];
    let message = "gateway stub did not answer within 0.05 s";
    payment.signatures = vec![way(
        "TimeoutError",
        message,
        Some("shop/gateway.py:77"),
        6,
        "failed",
    )];
    let mut order = test(
        "tests/test_cache.py::test_cache_order",
        TestClass::Flaky,
        16,
        4,
    );
    order.failing_runs = vec![3, 8, 13, 18];
    order.start_up = true;
    order.signatures = vec![
        way(
            "AssertionError",
            "assert ['b', 'a'] == ['a', 'b']",
            Some("tests/test_cache.py:9"),
            3,
            "failed",
        ),
        way("KeyError", "'a'", Some("shop/cache.py:30"), 1, "error"),
    ];
    let mut report = report(
        ScanStatus::Complete,
        20,
        [rounding, payment, order]
            .into_iter()
            .chain(clean(409, 20))
            .collect(),
    );
    report.exit_code = 1;
    report
}

/// Every class, remarks of every kind, several items with one id.
pub(super) fn every_class() -> ScanReport {
    let mut failing = test(
        "tests/test_tax.py::TestTax::test_rounding",
        TestClass::Failing,
        0,
        20,
    );
    failing.occurrence = 1;
    failing.signatures = (1..=5)
        .map(|i| way("ValueError", &format!("number {i}"), None, 4, "failed"))
        .collect();
    let mut crash = test(
        "tests/test_native.py::test_segfault",
        TestClass::Failing,
        0,
        20,
    );
    crash.signatures = vec![
        way("crash", "", None, 19, "crashed"),
        way("timeout", "killed after 60 s", None, 1, "timed_out"),
    ];
    let mut flaky = test(
        "tests/test_checkout.py::test_payment",
        TestClass::Flaky,
        999,
        1,
    );
    flaky.failing_runs = vec![17];
    flaky.remarks = vec!["passed 2/3 times in fresh processes".to_owned()];
    let mut isolated = test(
        "tests/test_net.py::test_real_server",
        TestClass::IsolationDependent,
        0,
        20,
    );
    isolated.remarks = vec!["passed 2 of 2 times outside the isolation".to_owned()];
    isolated.signatures = vec![way(
        "OSError",
        "[Errno 101] Network is unreachable",
        Some("shop/net.py:5"),
        20,
        "error",
    )];
    let mut unstable = test(
        "tests/test_skip.py::test_sometimes",
        TestClass::Unstable,
        14,
        0,
    );
    unstable.counts.skipped = 6;
    let mut changing = test(
        "tests/test_xfail.py::test_known_bug",
        TestClass::Unstable,
        0,
        0,
    );
    changing.counts.xfailed = 12;
    changing.counts.xpassed = 8;
    let mut forked = test("tests/test_fork.py::test_threads", TestClass::Unsure, 18, 2);
    forked.failing_runs = (1..=14).collect();
    forked.signatures = vec![way(
        "RuntimeError",
        "cannot start a thread",
        Some("shop/pool.py:8"),
        3,
        "failed",
    )];
    forked.remarks = vec!["failed 2/15 in forked children and 0/5 in fresh processes: not enough fresh processes to tell".to_owned()];
    let mut never = test(
        "tests/test_late.py::test_turn_never_came",
        TestClass::Unsure,
        0,
        0,
    );
    never.counts.not_run = 20;
    let mut artefact = test("tests/test_fork.py::test_pid", TestClass::Clean, 5, 0);
    artefact.remarks = vec!["failed 15/15 in forked children".to_owned()];
    let mut skipped = test(
        "tests/test_windows.py::test_registry",
        TestClass::NotJudged,
        0,
        0,
    );
    skipped.counts.skipped = 20;
    let list = vec![
        failing, crash, flaky, isolated, unstable, changing, forked, never, artefact, skipped,
    ];
    let mut report = report(
        ScanStatus::Complete,
        20,
        list.into_iter().chain(clean(30, 20)).collect(),
    );
    report.totals.outcomes -= 20;
    report.totals.confirm_runs = 4;
    report.totals.timeouts = 1;
    report.totals.crashes = 19;
    report.problems = vec![
        Problem::note(
            "engine",
            "every run is made in a fresh process, since the suite starts threads while it is collected",
        ),
        Problem::warning("missing", "not collected: tests/test_gone.py::test_x"),
        Problem::note(
            "variables_withheld",
            "not passed to tests, because the names look secret: GITHUB_TOKEN (pass one with --pass-env NAME)",
        ),
    ];
    report.exit_code = 1;
    report
}

/// Nothing found.
pub(super) fn green() -> ScanReport {
    report(ScanStatus::Complete, 20, clean(412, 20).collect())
}

/// Stopped by the user.
pub(super) fn interrupted() -> ScanReport {
    let mut payment = test(
        "tests/test_checkout.py::test_payment",
        TestClass::Flaky,
        218,
        94,
    );
    payment.failing_runs = (1..=94).map(|n| n * 3).collect();
    let mut report = report(
        ScanStatus::Interrupted,
        312,
        std::iter::once(payment).chain(clean(5, 312)).collect(),
    );
    report.plan = Some(plan(1000));
    report.exit_code = 130;
    report
}

/// The files changed under it.
pub(super) fn code_changed() -> ScanReport {
    let mut report = report(ScanStatus::CodeChanged, 12, clean(3, 12).collect());
    report.problems = vec![Problem::error(
        "code_changed",
        "the code changed during the scan: shop/cache.py changed",
    )];
    report.plan = Some(PlanFacts {
        pytest_args: vec!["-k".to_owned(), "not slow".to_owned()],
        ..plan(20)
    });
    report.exit_code = 3;
    report
}

/// Two groups of files that cannot be imported.
pub(super) fn no_result() -> ScanReport {
    let mut report = report(ScanStatus::NoResult, 0, Vec::new());
    report.advice = vec![
        Advice {
            code: "E021".to_owned(),
            headline: "missing module `httpx` (2 files)".to_owned(),
            places: vec!["tests/test_client.py:3   import httpx".to_owned(), "tests/test_sync.py:1   from ledger.client import Client".to_owned()],
            why: vec![
                "not installed for this interpreter; it is a declared dependency (pyproject.toml, [project.dependencies])".to_owned(),
            ],
            help: vec!["uv sync".to_owned(), "breakmycode . --python path/to/python   for another interpreter".to_owned()],
        },
        Advice {
            code: "E022".to_owned(),
            headline: "module `ledger` comes from somewhere else (1 file)".to_owned(),
            places: vec!["tests/test_cli.py:1   from ledger import cli".to_owned()],
            why: Vec::new(),
            help: vec!["uv pip install -e .".to_owned()],
        },
    ];
    report.exit_code = 3;
    report
}

/// Names that try to clear the screen, to forge lines, to turn the reading direction, and that are too long.
pub(super) fn hostile() -> ScanReport {
    let mut erase = test(
        "tests/test_\u{1b}[2J.py::test_clear\u{7}",
        TestClass::Failing,
        0,
        20,
    );
    erase.signatures = vec![way(
        "\u{1b}[31mError",
        "\u{9b}31mred\r\nforged: 0 failures",
        Some("a\nb.py:1"),
        20,
        "failed",
    )];
    erase.remarks = vec!["remark\u{1b}]0;title\u{7}".to_owned()];
    erase.failing_runs = vec![1];
    let mut forge = test(
        "tests/test_a.py::test_b\n✓ 400 tests passed",
        TestClass::Flaky,
        10,
        10,
    );
    forge.failing_runs = vec![4];
    let turn = test(
        "tests/test_\u{202e}yp.txet::test_\u{2066}x",
        TestClass::Flaky,
        10,
        10,
    );
    let long = test(
        &format!(
            "tests/{}test_long.py::test_it[{}]",
            "folder/".repeat(20),
            "p".repeat(300)
        ),
        TestClass::Flaky,
        10,
        10,
    );
    let wide = test(
        "tests/日本語/試験/テスト/とても長い名前のフォルダー/さらに長い/test_🐍.py::test_蛇[値]",
        TestClass::Flaky,
        10,
        10,
    );
    let mut report = report(
        ScanStatus::Complete,
        20,
        vec![erase, forge, turn, long, wide],
    );
    report.scan_id = "scan_\u{1b}[0m".to_owned();
    report.project.root = "/home/dev/\u{1b}[2J".to_owned();
    report.problems = vec![Problem::warning(
        "session",
        "outside any test: \u{1b}[1m\u{202e}",
    )];
    report
}
