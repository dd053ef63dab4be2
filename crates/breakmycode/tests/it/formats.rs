//! What programs read: JSON, JSON Lines and JUnit, and their schemas.

use std::process::Command;

use bmc_types::ScanReport;
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use serde_json::Value;

use crate::common::{Lab, finish};
use crate::live::{finished_runs, parse};
use crate::schema;

const FILES: &[(&str, &str)] = &[(
    "test_a.py",
    "import os\nimport pytest\n\n\
     def test_fails():\n    assert 'a\\x1b[31m' == '<b> & ]]>'\n\n\
     def test_flaky():\n    assert int(os.environ['PYTHONHASHSEED']) % 2 == 0\n\n\
     def test_clean():\n    pass\n\n\
     @pytest.mark.skip\ndef test_skipped():\n    pass\n\n\
     @pytest.mark.parametrize('word', ['a<b', 'c\\n d', '\\x00', 'ü'])\ndef test_ids(word):\n    pass\n",
)];

fn scan(lab: &Lab, format: &str) -> Command {
    let project = lab.project("p", FILES);
    lab.scan(&project, &["--runs", "4", "--fresh", "--format", format])
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn json_is_one_document_that_fits_its_schema() {
    let lab = Lab::new();
    let schema = document(&finish(lab.typed(["schema", "scan"])).expect(0).stdout);
    assert_eq!(
        schema,
        document(&finish(lab.typed(["schema"])).expect(0).stdout)
    );
    let done = finish(scan(&lab, "json")).expect(1);
    let value = document(&done.stdout);
    assert_eq!(schema::faults(&value, &schema), [] as [String; 0]);
    assert_eq!(value["schema"], "breakmycode.scan/1");
    // Reading and writing again loses nothing.
    let report: ScanReport = done.report();
    assert_eq!(serde_json::to_value(&report).unwrap(), value);
    let broken = lab.fixture("missing-module");
    let refused = document(
        &finish(lab.scan(&broken, &["--format", "json"]))
            .expect(3)
            .stdout,
    );
    assert_eq!(schema::faults(&refused, &schema), [] as [String; 0]);
    assert_eq!(
        (refused["status"].as_str(), refused["exit_code"].as_i64()),
        (Some("no_result"), Some(3))
    );
}

#[test]
fn jsonl_is_one_event_a_line_numbered_without_gaps() {
    let lab = Lab::new();
    let schema = document(&finish(lab.typed(["schema", "event"])).expect(0).stdout);
    let done = finish(scan(&lab, "jsonl")).expect(1);
    let events: Vec<Value> = done.stdout.lines().map(parse).collect();
    let mut before = 0;
    for (place, event) in events.iter().enumerate() {
        assert_eq!(schema::faults(event, &schema), [] as [String; 0]);
        assert_eq!(event["seq"].as_u64(), Some(place as u64 + 1), "{event}");
        assert_eq!(event["scan_id"], events[0]["scan_id"]);
        let at = event["at_ms"].as_u64().unwrap();
        assert!(at >= before, "time runs backwards: {event}");
        before = at;
    }
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        (kinds.first(), kinds.last()),
        (Some(&"scan.started"), Some(&"scan.finished"))
    );
    for kind in [
        "environment.found",
        "collection.finished",
        "plan.made",
        "start.ready",
        "run.started",
        "stage.started",
        "stage.finished",
    ] {
        assert!(kinds.contains(&kind), "no {kind}: {kinds:?}");
    }
    let scan_runs: Vec<u64> = finished_runs(&events)
        .into_iter()
        .filter(|run| *run <= 4)
        .collect();
    assert_eq!(scan_runs, (1..=4).collect::<Vec<u64>>());
    // Every failure of a scan run is an event, and no pass is.
    let outcomes: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "test.outcome")
        .collect();
    assert!(outcomes.iter().all(|event| event["outcome"] == "failed"));
    let fails = outcomes
        .iter()
        .filter(|event| event["id"] == "test_a.py::test_fails" && event["run"].as_u64() <= Some(4));
    assert_eq!(fails.count(), 4);
    // Failures are kept in a table of their own and not a second time as events.
    let kept: Vec<&str> = done
        .stdout
        .lines()
        .filter(|line| parse(line)["event"] != "test.outcome")
        .collect();
    for arguments in [["show", "--events"], ["show", "--format=jsonl"]] {
        let stored = finish(lab.typed(arguments)).expect(0);
        assert_eq!(stored.stdout.lines().collect::<Vec<_>>(), kept);
    }
}

#[test]
fn jsonl_of_a_scan_without_result_ends_with_the_reason() {
    let lab = Lab::new();
    let copy = lab.fixture("no-tests");
    let done = finish(lab.scan(&copy, &["--format", "jsonl"])).expect(4);
    let events: Vec<Value> = done.stdout.lines().map(parse).collect();
    let refused = events
        .iter()
        .find(|event| event["event"] == "scan.refused")
        .unwrap();
    assert_eq!(refused["advice"][0]["code"], "E028");
    let last = events.last().unwrap();
    assert_eq!(
        (last["event"].as_str(), last["exit_code"].as_i64()),
        (Some("scan.finished"), Some(4))
    );
}

#[test]
fn junit_has_one_case_a_test_and_flaky_ones_pass_with_their_failures() {
    let lab = Lab::new();
    let done = finish(scan(&lab, "junit")).expect(1);
    let report = Report::deserialize_from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}", done.stdout));
    let cases: Vec<_> = report
        .test_suites
        .iter()
        .flat_map(|suite| &suite.test_cases)
        .collect();
    assert_eq!(cases.len(), 8, "{}", done.stdout);
    let status = |name: &str| {
        let found: Vec<_> = cases
            .iter()
            .filter(|case| case.name.as_str().contains(name))
            .collect();
        assert_eq!(found.len(), 1, "{name}: {}", done.stdout);
        &found[0].status
    };
    assert!(matches!(
        status("test_fails"),
        TestCaseStatus::NonSuccess {
            kind: NonSuccessKind::Failure,
            ..
        }
    ));
    assert!(
        matches!(status("test_flaky"), TestCaseStatus::Success { flaky_runs } if !flaky_runs.is_empty())
    );
    assert!(
        matches!(status("test_clean"), TestCaseStatus::Success { flaky_runs } if flaky_runs.is_empty())
    );
    assert!(matches!(
        status("test_skipped"),
        TestCaseStatus::Skipped { .. }
    ));
    assert_eq!(
        finish(lab.typed(["show", "--format", "junit"]))
            .expect(0)
            .stdout,
        done.stdout
    );
}

#[test]
fn junit_of_a_scan_without_result_is_no_good_suite() {
    let lab = Lab::new();
    let copy = lab.fixture("missing-module");
    let done = finish(lab.scan(&copy, &["--format", "junit"])).expect(3);
    let report = Report::deserialize_from_str(&done.stdout).unwrap();
    let cases: Vec<_> = report
        .test_suites
        .iter()
        .flat_map(|suite| &suite.test_cases)
        .collect();
    assert!(!cases.is_empty());
    assert!(cases.iter().all(|case| matches!(
        case.status,
        TestCaseStatus::NonSuccess {
            kind: NonSuccessKind::Error,
            ..
        }
    )));
}
