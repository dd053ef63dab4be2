use bmc_types::conditions::{Engine, Purpose};
use bmc_types::{Event, EventKind, ScanReport, ScanStatus, TestClass, TestReport};
use insta::assert_snapshot;
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};

use super::samples;
use super::terminal::{ListRow, RunRow};
use crate::style::{Look, Styles};
use crate::text::{printable, width};

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn result(report: &ScanReport, look: &Look) -> String {
    written(|out| super::terminal::result(report, look, out))
}

fn plain(report: &ScanReport) -> String {
    result(report, &Look::plain(100))
}

fn junit(report: &ScanReport) -> String {
    written(|out| super::junit::junit(report, out))
}

fn event(seq: u64, at_ms: u64, kind: EventKind) -> Event {
    Event {
        scan_id: "scan_8c13045d132c".to_owned(),
        seq,
        at_ms,
        kind,
    }
}

fn all() -> Vec<ScanReport> {
    let mut running = samples::interrupted();
    running.status = ScanStatus::Running;
    let mut nothing = samples::report(ScanStatus::Interrupted, 0, Vec::new());
    nothing.plan = None;
    vec![
        samples::shop(),
        samples::every_class(),
        samples::green(),
        samples::interrupted(),
        samples::code_changed(),
        samples::no_result(),
        samples::hostile(),
        running,
        nothing,
    ]
}

#[test]
fn result_of_a_failing_and_two_flaky_tests() {
    assert_snapshot!(plain(&samples::shop()));
}

#[test]
fn result_in_colour() {
    let look = Look {
        styles: Styles::coloured(),
        ..Look::plain(100)
    };
    assert_snapshot!(result(&samples::shop(), &look).replace('\u{1b}', "⟦"));
}

#[test]
fn result_in_ascii() {
    let look = Look {
        ascii: true,
        ..Look::plain(100)
    };
    let text = result(&samples::every_class(), &look);
    assert!(text.is_ascii(), "{text}");
    assert_snapshot!(text);
}

#[test]
fn result_at_60_columns() {
    assert_snapshot!(result(&samples::every_class(), &Look::plain(60)));
}

#[test]
fn result_with_every_class() {
    assert_snapshot!(plain(&samples::every_class()));
}

#[test]
fn result_when_all_is_green() {
    assert_snapshot!(plain(&samples::green()));
}

#[test]
fn result_when_interrupted() {
    assert_snapshot!(plain(&samples::interrupted()));
}

#[test]
fn result_when_interrupted_before_the_first_run() {
    assert_snapshot!(plain(&samples::report(
        ScanStatus::Interrupted,
        0,
        Vec::new()
    )));
}

#[test]
fn result_when_the_code_changed() {
    assert_snapshot!(plain(&samples::code_changed()));
}

#[test]
fn result_when_there_is_none() {
    assert_snapshot!(plain(&samples::no_result()));
}

#[test]
fn result_of_a_hostile_project() {
    assert_snapshot!(plain(&samples::hostile()));
}

#[test]
fn colours_change_nothing_but_colours() {
    for report in all() {
        let look = Look {
            styles: Styles::coloured(),
            ..Look::plain(80)
        };
        let coloured = result(&report, &look);
        // Every escape sequence there is is a colour of ours: nothing of the project's gets through.
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            stripped.push_str(before);
            let end = after.find('m').unwrap();
            assert!(
                after[..end]
                    .strip_prefix('[')
                    .unwrap()
                    .chars()
                    .all(|c| c.is_ascii_digit() || c == ';'),
                "{after}"
            );
            rest = &after[end + 1..];
        }
        stripped.push_str(rest);
        assert_eq!(stripped, result(&report, &Look::plain(80)));
    }
}

#[test]
fn nothing_that_a_terminal_obeys_is_ever_printed() {
    let look = Look::plain(80);
    for report in all() {
        let texts = [
            result(&report, &look),
            written(|out| super::terminal::show(&report, &[], &look, out)),
            written(|out| super::terminal::tests(&report, &look, out)),
            written(|out| super::terminal::advice(&report.advice, &look, out)),
            junit(&report),
        ];
        for text in texts {
            for line in text.lines() {
                assert_eq!(printable(line), line);
            }
        }
    }
}

#[test]
fn lines_fit_unless_they_are_a_name_or_a_command() {
    for report in all() {
        for columns in [60, 80, 100] {
            for line in result(&report, &Look::plain(columns)).lines() {
                let whole = line.contains("::") || line.contains("breakmycode ");
                assert!(
                    whole || width(line) <= columns,
                    "{columns}: {} {line}",
                    width(line)
                );
            }
        }
    }
}

#[test]
fn a_rate_is_never_printed_without_counts_and_interval() {
    for report in all() {
        let text = plain(&report);
        assert!(
            !text.contains(" 0 %") && !text.contains("100.0 %"),
            "{text}"
        );
        for line in text.lines().filter(|line| line.contains(" failed   ")) {
            assert!(line.contains('/') && line.contains("true rate "), "{line}");
        }
    }
}

#[test]
fn commands_name_the_project_the_scan_and_the_arguments_for_pytest() {
    let mut report = samples::shop();
    report.project.root = "/home/dev/my shop".to_owned();
    report.plan.as_mut().unwrap().pytest_args = vec!["-k".to_owned(), "not slow".to_owned()];
    report.tests[1].id = "tests/test_a.py::test_b[it's $HOME]".to_owned();
    let text = plain(&report);
    for command in [
        "breakmycode replay scan_8c13045d132c 2 'tests/test_a.py::test_b[it'\\''s $HOME]'\n",
        "breakmycode '/home/dev/my shop' --from scan_8c13045d132c --only flaky,failing -- -k 'not slow'\n",
        "breakmycode '/home/dev/my shop' --runs 59 -- -k 'not slow'",
        "breakmycode show scan_8c13045d132c --tests",
    ] {
        assert!(text.contains(command), "{command}{text}");
    }
}

#[test]
fn the_next_number_of_runs_is_computed() {
    let runs = |n: u32| {
        let text = plain(&samples::report(
            ScanStatus::Complete,
            n,
            vec![samples::test("t.py::t", TestClass::Clean, n, 0)],
        ));
        text.split_once("--runs ")
            .map(|(_, rest)| rest.split_whitespace().next().unwrap().to_owned())
    };
    assert_eq!(
        (
            runs(20).as_deref(),
            runs(59).as_deref(),
            runs(298).as_deref()
        ),
        (Some("59"), Some("299"), Some("299"))
    );
    assert_eq!(runs(299), None);
}

#[test]
fn ten_thousand_flaky_tests_are_counted_in_a_short_result_and_listed_in_full() {
    let tests: Vec<TestReport> = (0..10_000)
        .map(|i| {
            let mut test = samples::test(
                &format!("tests/package/test_module_{}.py::test_{i}", i % 97),
                TestClass::Flaky,
                15,
                5,
            );
            test.signatures = vec![samples::way(
                "ValueError",
                "no",
                Some("a.py:1"),
                5,
                "failed",
            )];
            test.failing_runs = vec![1, 2, 3, 4, 5];
            test
        })
        .collect();
    let report = samples::report(ScanStatus::Complete, 20, tests);
    let text = plain(&report);
    let table = written(|out| super::terminal::tests(&report, &Look::plain(100), out));
    let xml = junit(&report);
    assert!(text.lines().count() < 120);
    assert!(
        text.contains("and 9 975 more: breakmycode show scan_8c13045d132c --tests"),
        "{text}"
    );
    assert_eq!(table.lines().count(), 10_001);
    assert_eq!(
        Report::deserialize_from_str(&xml).unwrap().test_suites[0]
            .test_cases
            .len(),
        10_000
    );
}

#[test]
fn show_prints_the_stages_and_then_what_the_live_run_printed() {
    let report = samples::every_class();
    let environment = samples::environment();
    let stage = |stage: &str| stage.to_owned();
    let events = [
        event(
            1,
            0,
            EventKind::ScanStarted {
                project: report.project.clone(),
            },
        ),
        event(
            2,
            400,
            EventKind::EnvironmentFound {
                environment: environment.clone(),
            },
        ),
        event(
            3,
            410,
            EventKind::StageStarted {
                stage: stage("run"),
            },
        ),
        event(4, 2400, EventKind::EnvironmentFound { environment }),
        event(
            5,
            2400,
            EventKind::CollectionFinished {
                tests: 412,
                seconds: 1.9,
            },
        ),
        event(
            6,
            83_000,
            EventKind::StageFinished {
                stage: stage("run"),
                seconds: 82.6,
                detail: "20 runs".to_owned(),
            },
        ),
        event(
            7,
            83_001,
            EventKind::StageStarted {
                stage: stage("confirm"),
            },
        ),
        event(
            8,
            90_000,
            EventKind::StageFinished {
                stage: stage("plain"),
                seconds: 2.0,
                detail: "1\u{1b}[2J".to_owned(),
            },
        ),
    ];
    let text = written(|out| super::terminal::show(&report, &events, &Look::plain(100), out));
    let live = plain(&report);
    assert!(text.contains(&live));
    assert_snapshot!(text.replace(&live, "(the result)\n"));
}

#[test]
fn the_table_of_tests_has_every_test_with_its_whole_name() {
    let report = samples::every_class();
    let text = written(|out| super::terminal::tests(&report, &Look::plain(60), out));
    assert_eq!(text.lines().count(), report.tests.len() + 1);
    let shown: Vec<&str> = text.lines().take(13).collect();
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn tables_of_runs_and_scans() {
    let row = |run, engine, purpose, processes| RunRow {
        run,
        purpose,
        engine,
        start: run.div_ceil(4),
        hash_seed: 3_141_592_653,
        seconds: 0.83,
        outcomes: 412,
        failed: 2,
        processes,
    };
    let rows = [
        row(20, Engine::Fresh, Purpose::Scan, 3),
        row(1, Engine::Forked, Purpose::Scan, 1),
        row(21, Engine::Fresh, Purpose::Confirm, 1),
    ];
    let scan = |id: &str, status, failing, latest| ListRow {
        id: id.to_owned(),
        when: "2026-11-30T14:02:11.409Z".to_owned(),
        status,
        runs: 1000,
        failing,
        flaky: failing.map(|n| n + 1),
        root: "/home/dev/src/shop".to_owned(),
        latest,
    };
    let scans = [
        scan("scan_8c13045d132c", ScanStatus::Complete, Some(1), true),
        scan("scan_77aa01f2be90", ScanStatus::Running, None, false),
        scan("scan_000000000001", ScanStatus::NoResult, Some(0), false),
    ];
    let look = Look::plain(100);
    let mut text = written(|out| super::terminal::runs(&rows, &look, out));
    text.push_str(&written(|out| super::terminal::list(&scans, &look, out)));
    text.push_str(&written(|out| super::terminal::list(&[], &look, out)));
    assert_snapshot!(text);
}

#[test]
fn json_is_one_document_that_reads_back() {
    for report in all() {
        let text = written(|out| super::json::json(&report, out));
        assert!(
            text.ends_with("}\n") && text.starts_with("{\n  \"schema\": \"breakmycode.scan/1\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<ScanReport>(&text).unwrap(), report);
    }
}

#[test]
fn json_has_a_number_where_there_should_be_one() {
    let mut report = samples::shop();
    report.seconds = f64::NAN;
    report.tests[0].rate = Some(f64::INFINITY);
    report.tests[0].ci95 = Some((0.0, f64::NAN));
    report.power[0].caught_with = f64::NEG_INFINITY;
    report.plan.as_mut().unwrap().test_timeout_s = Some(f64::NAN);
    let text = written(|out| super::json::json(&report, out));
    let read: ScanReport = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            read.seconds,
            read.tests[0].rate,
            read.tests[0].ci95,
            read.power[0].caught_with
        ),
        (0.0, None, None, 0.0)
    );
    assert_eq!(read.tests[1], report.tests[1]);
}

#[test]
fn junit_of_every_class() {
    let mut report = samples::every_class();
    report.tests.truncate(10);
    assert_snapshot!(junit(&report));
}

#[test]
fn junit_reads_back_with_flaky_runs_reruns_errors_and_skips() {
    let report = samples::every_class();
    let read = Report::deserialize_from_str(&junit(&report)).unwrap();
    let suite = &read.test_suites[0];
    assert_eq!(
        (suite.tests, suite.failures, suite.errors, suite.skipped),
        (40, 1, 2, 5)
    );
    let case = |name: &str| {
        suite
            .test_cases
            .iter()
            .find(|c| c.name.as_str() == name)
            .unwrap()
    };
    let rounding = case("test_rounding (item 2)");
    assert_eq!(
        rounding.classname.as_deref(),
        Some("tests.test_tax.TestTax")
    );
    let TestCaseStatus::NonSuccess {
        kind: NonSuccessKind::Failure,
        reruns,
        ..
    } = &rounding.status
    else {
        panic!("{rounding:?}")
    };
    assert_eq!(reruns.runs.len(), 4);
    let TestCaseStatus::NonSuccess {
        kind: NonSuccessKind::Error,
        ..
    } = &case("test_segfault").status
    else {
        panic!()
    };
    let flaky = Report::deserialize_from_str(&junit(&samples::shop())).unwrap();
    let flaky: Vec<usize> = flaky.test_suites[0]
        .test_cases
        .iter()
        .filter_map(|c| match &c.status {
            TestCaseStatus::Success { flaky_runs } if !flaky_runs.is_empty() => {
                Some(flaky_runs.len())
            }
            _ => None,
        })
        .collect();
    assert_eq!(flaky, [1, 2]);
}

#[test]
fn junit_of_a_flaky_test_without_a_signature_is_not_green() {
    let report = samples::report(
        ScanStatus::Complete,
        20,
        vec![samples::test("t.py::t", TestClass::Flaky, 10, 10)],
    );
    let read = Report::deserialize_from_str(&junit(&report)).unwrap();
    let TestCaseStatus::Success { flaky_runs } = &read.test_suites[0].test_cases[0].status else {
        panic!()
    };
    assert_eq!(
        flaky_runs[0].message.as_deref(),
        Some("10/20 failed (50.0 %), true rate 29.9-70.1 %")
    );
}

#[test]
fn junit_without_a_result_is_an_error_and_not_an_empty_suite() {
    let read = Report::deserialize_from_str(&junit(&samples::no_result())).unwrap();
    assert_eq!(
        (read.test_suites[0].tests, read.test_suites[0].errors),
        (2, 2)
    );
}

#[test]
fn junit_of_a_hostile_project_keeps_every_test_apart() {
    let report = samples::hostile();
    let read = Report::deserialize_from_str(&junit(&report)).unwrap();
    let ids: Vec<String> = read.test_suites[0]
        .test_cases
        .iter()
        .map(|c| {
            c.properties
                .iter()
                .find(|p| p.name.as_str() == "breakmycode.nodeid")
                .unwrap()
                .value
                .to_string()
        })
        .collect();
    let expected: Vec<String> = report.tests.iter().map(|t| printable(&t.id)).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_writer_that_fails_is_an_error_and_not_a_panic() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let report = samples::shop();
    let faults = [
        super::terminal::result(&report, &Look::plain(80), &mut Closed),
        super::json::json(&report, &mut Closed),
        super::junit::junit(&report, &mut Closed),
    ];
    for fault in faults {
        assert_eq!(fault.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    }
}
