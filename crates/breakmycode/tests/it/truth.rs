//! What is known about a fixture project, and the comparison of a report with it. The only place that reads truth.toml.

use std::collections::{BTreeMap, BTreeSet};

use bmc_types::{Outcome, ScanReport, TestClass};
use serde::Deserialize;

use crate::common;

/// truth.toml of a fixture project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truth {
    #[serde(rename = "what")]
    _what: String,
    /// Packages that it needs besides pytest.
    pub(crate) requires: Vec<String>,
    /// Exit code under the default gates.
    pub(crate) exit_code: i32,
    /// Further arguments for the scan.
    pub(crate) args: Vec<String>,
    /// Runs that the bounds below were computed for.
    pub(crate) runs: u32,
    #[serde(rename = "min_python")]
    _min_python: String,
    engine: Option<String>,
    engine_why: Option<String>,
    #[serde(default)]
    advice: Vec<String>,
    #[serde(default)]
    switched_off: Vec<String>,
    others: Option<String>,
    #[serde(default)]
    tests: Vec<TestTruth>,
}

/// What is known about one test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestTruth {
    id: String,
    #[serde(default)]
    occurrence: u32,
    class: String,
    #[serde(rename = "why")]
    _why: String,
    rate: Option<(f64, f64)>,
    #[serde(default)]
    outcomes: Vec<String>,
    #[serde(default)]
    start_up: bool,
}

/// How the scan was made, where that changes what can be expected.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Made<'a> {
    /// Every run in a fresh process because the scan was told so.
    pub(crate) fresh: bool,
    /// Fewer runs than the truth asks for: flaky tests need not have shown both sides, rates are not compared.
    pub(crate) fewer_runs: bool,
    /// Tests that were kept out of the scan.
    pub(crate) left_out: &'a [&'a str],
    /// The exit code, where it is not that of the truth.
    pub(crate) exit_code: Option<i32>,
}

impl Truth {
    /// Reads it.
    pub(crate) fn of(project: &str) -> Self {
        let path = common::fixtures().join(project).join("truth.toml");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What in the report is not as it should be.
    pub(crate) fn differences(&self, report: &ScanReport, made: &Made<'_>) -> Vec<String> {
        let mut wrong = Vec::new();
        let expected = made.exit_code.unwrap_or(self.exit_code);
        if report.exit_code != expected {
            wrong.push(format!(
                "exit code {} instead of {expected}",
                report.exit_code
            ));
        }
        let codes: Vec<&str> = report
            .advice
            .iter()
            .map(|advice| advice.code.as_str())
            .collect();
        if codes != self.advice {
            wrong.push(format!(
                "advice {codes:?} instead of {:?}: {:#?}",
                self.advice, report.advice
            ));
        }
        let status = if self.advice.is_empty() {
            "complete"
        } else {
            "no_result"
        };
        if report.status.as_str() != status {
            wrong.push(format!(
                "status {} instead of {status}",
                report.status.as_str()
            ));
        }
        let off: Vec<&str> = report
            .environment
            .iter()
            .flat_map(|e| &e.switched_off)
            .map(|(name, _)| name.as_str())
            .collect();
        for name in self
            .switched_off
            .iter()
            .filter(|name| !off.contains(&name.as_str()))
        {
            wrong.push(format!(
                "{name} is not among what was switched off: {off:?}"
            ));
        }
        if self.advice.is_empty() {
            self.compare_plan(report, made, &mut wrong);
            self.compare_tests(report, made, &mut wrong);
            arithmetic(report, &mut wrong);
        }
        for problem in report
            .problems
            .iter()
            .filter(|problem| problem.kind == "trace")
        {
            wrong.push(format!("trouble with the trace: {}", problem.text));
        }
        wrong
    }

    fn compare_plan(&self, report: &ScanReport, made: &Made<'_>, wrong: &mut Vec<String>) {
        let Some(plan) = &report.plan else {
            return wrong.push("no plan".to_owned());
        };
        let (engine, why) = if made.fresh {
            (Some("fresh"), None)
        } else {
            (self.engine.as_deref(), self.engine_why.as_deref())
        };
        if engine.is_some_and(|engine| plan.engine != engine) {
            wrong.push(format!("engine {} instead of {engine:?}", plan.engine));
        }
        if !made.fresh && plan.engine_why.as_deref() != why {
            wrong.push(format!(
                "reason for the engine {:?} instead of {why:?}",
                plan.engine_why
            ));
        }
        if report.totals.runs != plan.runs {
            wrong.push(format!("{} of {} runs", report.totals.runs, plan.runs));
        }
    }

    fn compare_tests(&self, report: &ScanReport, made: &Made<'_>, wrong: &mut Vec<String>) {
        let known: BTreeMap<(&str, u32), &TestTruth> = self
            .tests
            .iter()
            .map(|test| ((test.id.as_str(), test.occurrence), test))
            .collect();
        assert_eq!(
            known.len(),
            self.tests.len(),
            "a test is named twice in truth.toml"
        );
        let mut seen = BTreeSet::new();
        for test in &report.tests {
            let key = (test.id.as_str(), test.occurrence);
            seen.insert(key);
            let truth = known.get(&key);
            let class = truth
                .map(|truth| truth.class.as_str())
                .or(self.others.as_deref());
            let Some(class) = class else {
                wrong.push(format!("{} is not known", test.id));
                continue;
            };
            let unsettled = made.fewer_runs && matches!(class, "flaky" | "unstable");
            if test.class.as_str() != class && !unsettled {
                wrong.push(format!(
                    "{} is {} instead of {class}: {test:#?}",
                    test.id,
                    test.class.as_str()
                ));
            }
            let Some(truth) = truth else {
                if test.start_up {
                    wrong.push(format!(
                        "{} is said to be decided at start-up: {test:#?}",
                        test.id
                    ));
                }
                continue;
            };
            if unsettled {
                continue;
            }
            // With one run a start, nothing can be said about what differs between starts only.
            let start_up = truth.start_up
                && report
                    .plan
                    .as_ref()
                    .is_some_and(|plan| plan.engine == "hybrid");
            if test.start_up != start_up {
                wrong.push(format!(
                    "{}: start_up is {} instead of {start_up}: {test:#?}",
                    test.id, test.start_up
                ));
            }
            if let (Some((low, high)), false) = (truth.rate, made.fewer_runs)
                && !test.rate.is_some_and(|rate| (low..=high).contains(&rate))
            {
                wrong.push(format!(
                    "{}: rate {:?} is not between {low} and {high}",
                    test.id, test.rate
                ));
            }
            let outcomes = outcomes(test);
            for word in &truth.outcomes {
                let outcome = Outcome::parse(word)
                    .unwrap_or_else(|| panic!("truth.toml: {word} is no outcome"));
                if !outcomes.contains(&outcome) {
                    wrong.push(format!("{}: never {word}, but {outcomes:?}", test.id));
                }
            }
        }
        for (id, _) in known
            .keys()
            .filter(|key| !seen.contains(*key) && !made.left_out.contains(&key.0))
        {
            wrong.push(format!("{id} is not in the report"));
        }
    }
}

/// The outcomes that the report shows for a test.
fn outcomes(test: &bmc_types::TestReport) -> BTreeSet<Outcome> {
    let counts = test.counts;
    let mut found: BTreeSet<Outcome> = [
        (counts.passed, Outcome::Passed),
        (counts.skipped, Outcome::Skipped),
        (counts.xfailed, Outcome::Xfailed),
        (counts.xpassed, Outcome::Xpassed),
        (counts.not_run, Outcome::NotRun),
        (counts.missing, Outcome::Missing),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(_, outcome)| outcome)
    .collect();
    found.extend(
        test.signatures
            .iter()
            .filter_map(|signature| Outcome::parse(&signature.outcome)),
    );
    found
}

/// Numbers of a report that must agree with each other.
fn arithmetic(report: &ScanReport, wrong: &mut Vec<String>) {
    let totals = &report.totals;
    for test in &report.tests {
        let c = test.counts;
        let mut say = |what: &str| wrong.push(format!("{}: {what}: {test:#?}", test.id));
        if test.runs != c.passed + c.failed {
            say("runs is not passed + failed");
        }
        let rate = (test.runs > 0).then(|| f64::from(c.failed) / f64::from(test.runs));
        if test
            .rate
            .zip(rate)
            .is_some_and(|(a, b)| (a - b).abs() > 1e-9)
            || test.rate.is_some() != rate.is_some()
        {
            say("rate is not failed / runs");
        }
        if let (Some(rate), Some((low, high))) = (test.rate, test.ci95)
            && !(low <= rate && rate <= high)
        {
            say("the interval does not contain the rate");
        }
        let all = c.passed + c.failed + c.skipped + c.xfailed + c.xpassed + c.not_run + c.missing;
        // Confirming runs may be of suspects only, and a verdict may rest on fresh processes alone.
        if totals.confirm_runs == 0 && all != totals.runs {
            say("the counts do not add up to the runs");
        }
        if totals.confirm_runs == 0 && test.failing_runs.len() != c.failed as usize {
            say("the failing runs are not as many as the failures");
        }
        let shown: u32 = test
            .signatures
            .iter()
            .map(|signature| signature.count)
            .sum();
        if totals.confirm_runs == 0 && shown != c.failed {
            say("the groups of failures do not add up to the failures");
        }
    }
    for (class, total) in [
        (TestClass::Failing, totals.consistent_failures),
        (TestClass::Flaky, totals.flaky),
        (TestClass::Clean, totals.clean),
        (TestClass::Unstable, totals.unstable),
        (TestClass::NotJudged, totals.not_judged),
        (TestClass::Unsure, totals.unsure),
        (TestClass::IsolationDependent, totals.isolation_dependent),
    ] {
        let count = report
            .tests
            .iter()
            .filter(|test| test.class == class)
            .count() as u64;
        if count != total {
            wrong.push(format!(
                "{count} tests are {}, the total says {total}",
                class.as_str()
            ));
        }
    }
    if report.tests.len() as u64 != totals.tests {
        wrong.push(format!(
            "{} tests, the total says {}",
            report.tests.len(),
            totals.tests
        ));
    }
}
