//! The report as JUnit XML, for systems that collect test results. One test case for each test, however often it ran.
//!
//! A flaky test is a passing case with `flakyFailure` (as Surefire and nextest write it), one for each way in which it failed; a test that
//! fails every time is a failing case. Names are derived from node ids as pytest's own `--junitxml` does.

use std::io::{self, Write};
use std::time::Duration;

use bmc_types::report::SignatureReport;
use bmc_types::{Outcome, ScanReport, ScanStatus, TestClass, TestReport};
use quick_junit::{
    NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite,
};

use super::verdicts::{failure_words, interval, tally};
use crate::text::{percent, percent_number, printable};

/// Writes the document.
///
/// # Errors
/// What the writer says.
pub(crate) fn junit(report: &ScanReport, out: &mut dyn Write) -> io::Result<()> {
    let mut suite = TestSuite::new("pytest");
    suite.set_time(duration(report.seconds));
    suite.add_property(property("breakmycode.scan_id", &report.scan_id));
    suite.add_property(property("breakmycode.version", &report.tool_version));
    suite.add_property(property("breakmycode.status", report.status.as_str()));
    suite.add_property(property(
        "breakmycode.runs",
        &report.totals.runs.to_string(),
    ));
    suite.add_property(property(
        "breakmycode.fresh_starts",
        &report.totals.fresh_starts.to_string(),
    ));
    suite.add_property(property("breakmycode.started_at", &report.started_at));
    if let Some(environment) = &report.environment {
        suite.add_property(property("breakmycode.python", &environment.python));
        suite.add_property(property("breakmycode.pytest", &environment.pytest));
        suite.add_property(property("breakmycode.isolation", &environment.isolation));
    }
    for test in &report.tests {
        suite.add_test_case(case(test));
    }
    if report.status == ScanStatus::NoResult {
        suite.add_test_cases(no_result(report));
    }
    let mut document = Report::new("breakmycode");
    document.set_time(duration(report.seconds));
    document.add_test_suite(suite);
    // The document is made in memory first: a closed pipe must stay an error of the writer, with its kind.
    let mut text = Vec::new();
    document.serialize(&mut text).map_err(io::Error::other)?;
    out.write_all(&text)
}

/// What kept the scan from a result, as errors: a collector must not mistake it for an empty, good suite.
fn no_result(report: &ScanReport) -> Vec<TestCase> {
    report
        .advice
        .iter()
        .map(|advice| {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type(format!("BMC-{}", printable(&advice.code)));
            status.set_message(printable(&advice.headline));
            let parts = advice.places.iter().chain(&advice.why).chain(&advice.help);
            status.set_description(lines(&parts.cloned().collect::<Vec<_>>().join("\n")));
            let mut case = TestCase::new(format!("BMC-{}", printable(&advice.code)), status);
            case.set_classname("breakmycode");
            case
        })
        .collect()
}

fn case(test: &TestReport) -> TestCase {
    let status = status(test);
    let (classname, mut name) = pytest_names(&test.id);
    if test.occurrence > 0 {
        name.push_str(&format!(" (item {})", u64::from(test.occurrence) + 1));
    }
    let mut case = TestCase::new(printable(&name), status);
    case.set_classname(printable(&classname));
    if let Some(median) = test.median_s {
        case.set_time(duration(median));
    }
    case.add_property(property("breakmycode.nodeid", &test.id));
    case.add_property(property("breakmycode.class", test.class.as_str()));
    case.add_property(property("breakmycode.runs", &test.runs.to_string()));
    case.add_property(property(
        "breakmycode.failed",
        &test.counts.failed.to_string(),
    ));
    if let Some(rate) = test.rate.filter(|rate| rate.is_finite()) {
        case.add_property(property("breakmycode.rate", &rate.to_string()));
    }
    if let Some((low, high)) = test.ci95 {
        case.add_property(property("breakmycode.ci95", &format!("{low} {high}")));
    }
    case
}

fn status(test: &TestReport) -> TestCaseStatus {
    let ways = &test.signatures;
    match test.class {
        TestClass::Clean => TestCaseStatus::success(),
        TestClass::Flaky => {
            let mut status = TestCaseStatus::success();
            if ways.is_empty() {
                let mut rerun = TestRerun::new(NonSuccessKind::Failure);
                rerun.set_message(rate_words(test));
                status.add_rerun(rerun);
            }
            status.add_reruns(ways.iter().map(|way| rerun(way, test)));
            status
        }
        TestClass::Failing => {
            let Some((first, others)) = ways.split_first() else {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(rate_words(test));
                return status;
            };
            let mut status = TestCaseStatus::non_success(kind(first));
            status.set_message(failure_words(first));
            status.set_type(printable(&first.kind));
            status.set_description(description(first, test));
            status.add_reruns(others.iter().map(|way| rerun(way, test)));
            status
        }
        // A fault of the surroundings, whatever the test said: it passed outside the isolation.
        TestClass::IsolationDependent => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type(test.class.as_str());
            status.set_message(format!("fails only in isolation: {}", rate_words(test)));
            status.set_description(
                ways.iter()
                    .map(|way| description(way, test))
                    .collect::<Vec<_>>()
                    .join("\n"),
            );
            status
        }
        TestClass::Unstable | TestClass::Unsure | TestClass::NotJudged => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(test.class.as_str());
            let mut words = format!(
                "{}: {}",
                test.class.as_str().replace('_', " "),
                tally(&test.counts)
            );
            for remark in &test.remarks {
                words.push_str("; ");
                words.push_str(&printable(remark));
            }
            status.set_message(words);
            status
        }
    }
}

fn rerun(way: &SignatureReport, test: &TestReport) -> TestRerun {
    let mut rerun = TestRerun::new(kind(way));
    rerun.set_type(printable(&way.kind));
    rerun.set_message(failure_words(way));
    rerun.set_description(description(way, test));
    rerun
}

/// Setup and teardown errors, timeouts and crashes are errors to JUnit; a failed call is a failure.
fn kind(way: &SignatureReport) -> NonSuccessKind {
    match Outcome::parse(&way.outcome) {
        Some(Outcome::Error | Outcome::TimedOut | Outcome::Crashed) => NonSuccessKind::Error,
        Some(
            Outcome::Passed
            | Outcome::Failed
            | Outcome::Skipped
            | Outcome::Xfailed
            | Outcome::Xpassed
            | Outcome::XpassedStrict
            | Outcome::NotRun
            | Outcome::Missing,
        )
        | None => NonSuccessKind::Failure,
    }
}

fn description(way: &SignatureReport, test: &TestReport) -> String {
    let mut text = lines(&way.message);
    if !text.is_empty() {
        text.push('\n');
    }
    if let Some(place) = &way.location {
        text.push_str(&format!("at {}\n", printable(place)));
    }
    let total: u64 = test.signatures.iter().map(|s| u64::from(s.count)).sum();
    text.push_str(&format!(
        "{} of {total} failures; {}",
        way.count,
        rate_words(test)
    ));
    text
}

/// `6/20 failed (30.0 %), true rate 14.5-51.9 %`.
fn rate_words(test: &TestReport) -> String {
    let mut words = format!("{}/{} failed", test.counts.failed, test.runs);
    if let Some(rate) = test.rate {
        words.push_str(&format!(" ({})", percent(rate)));
    }
    match (test.at_most, test.ci95) {
        (Some(most), _) => {
            words.push_str(&format!(", true rate at most {} %", percent_number(most)))
        }
        (None, Some((low, high))) => {
            words.push_str(&format!(", true rate {}", interval(low, high)))
        }
        (None, None) => {}
    }
    words
}

/// Class name and name as pytest derives them: `tests/test_a.py::TestB::test_c[x]` is `tests.test_a.TestB` and `test_c[x]`.
fn pytest_names(id: &str) -> (String, String) {
    // As pytest does: the parameters may hold anything, also `::`.
    let (before, parameters) = id.find('[').map_or((id, ""), |at| id.split_at(at));
    let mut names: Vec<String> = before.split("::").map(str::to_owned).collect();
    names[0] = names[0].replace('/', ".");
    if let Some(stem) = names[0].strip_suffix(".py") {
        names[0] = stem.to_owned();
    }
    let mut name = names.pop().unwrap_or_default();
    name.push_str(parameters);
    (names.join("."), name)
}

fn property(name: &str, value: &str) -> Property {
    Property::new(name, printable(value))
}

/// Several lines, each made printable.
fn lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
