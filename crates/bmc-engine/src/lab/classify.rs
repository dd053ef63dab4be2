//! From outcomes to verdicts: which tests fail, which are flaky, which cannot be judged, and what that rests on.
//!
//! No verdict rests on forked children alone: what only they show is either confirmed by fresh processes, refuted, or called unsure.

use std::collections::HashMap;

use bmc_types::conditions::{Engine, Purpose};
use bmc_types::report::{Counts, Power, SignatureReport, Totals};
use bmc_types::{Failure, Outcome, TestClass, TestReport};

use super::stats;
use crate::history::{History, RunRecord, duration_seconds};

/// Failure rates for which detection power is stated.
const POWER_RATES: [f64; 3] = [0.10, 0.05, 0.01];

/// Fresh processes that have to disagree with forked children before "passes only when forked" is believed.
const REVERSE_MINIMUM: u32 = 3;

/// Verdicts on every test, worst first, and their sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// One report for each test.
    pub tests: Vec<TestReport>,
    /// Sums.
    pub totals: Totals,
    /// Power of all runs.
    pub power: Vec<Power>,
    /// Power of the fresh starts.
    pub start_power: Vec<Power>,
}

/// Judges everything that was seen.
pub fn judge(history: &History) -> Judgement {
    let scan: Vec<&RunRecord> = history.runs_for(Purpose::Scan).collect();
    let confirm: Vec<&RunRecord> = history.runs_for(Purpose::Confirm).collect();
    let plain: Vec<&RunRecord> = history.runs_for(Purpose::Plain).collect();
    let mut totals = Totals {
        runs: scan.len() as u32,
        fresh_runs: scan
            .iter()
            .filter(|r| r.conditions.engine == Engine::Fresh)
            .count() as u32,
        fresh_starts: distinct_starts(&scan),
        confirm_runs: confirm.len() as u32,
        ..Totals::default()
    };
    let signatures = signature_counts(&scan, &confirm);
    let remarks = remarks(history);
    let mut tests: Vec<TestReport> = (0..history.tests().len() as u32)
        .filter(|test| was_asked_for(*test, &scan))
        .map(|test| {
            let mut report = judge_test(history, test, &scan, &confirm, &plain);
            report.signatures = signatures.reports(history, test);
            report
                .remarks
                .extend(remarks.get(&test).into_iter().flatten().cloned());
            report
        })
        .collect();
    for run in &scan {
        for code in &run.outcomes {
            match Outcome::from_code(*code) {
                Some(Outcome::Missing | Outcome::NotRun) | None => continue,
                Some(Outcome::TimedOut) => totals.timeouts += 1,
                Some(Outcome::Crashed) => totals.crashes += 1,
                Some(_) => {}
            }
            totals.outcomes += 1;
        }
    }
    totals.tests = tests.len() as u64;
    for test in &tests {
        *match test.class {
            TestClass::Failing => &mut totals.consistent_failures,
            TestClass::Flaky => &mut totals.flaky,
            TestClass::IsolationDependent => &mut totals.isolation_dependent,
            TestClass::Unstable => &mut totals.unstable,
            TestClass::Unsure => &mut totals.unsure,
            TestClass::Clean => &mut totals.clean,
            TestClass::NotJudged => &mut totals.not_judged,
        } += 1;
    }
    tests.sort_by(|a, b| {
        a.class
            .cmp(&b.class)
            .then_with(|| b.rate.unwrap_or(0.0).total_cmp(&a.rate.unwrap_or(0.0)))
    });
    let power = power_of(totals.runs);
    let start_power = power_of(totals.fresh_starts);
    Judgement {
        tests,
        totals,
        power,
        start_power,
    }
}

fn power_of(n: u32) -> Vec<Power> {
    POWER_RATES
        .iter()
        .map(|&rate| Power {
            rate,
            caught_with: stats::caught_with(rate, n),
        })
        .collect()
}

/// Whether a test belongs to the scan: one that no run was to make is collected, but not the scan's business.
fn was_asked_for(test: u32, scan: &[&RunRecord]) -> bool {
    scan.iter()
        .any(|run| run.conditions.selected.is_none() || run.outcome(test) != Outcome::Missing)
}

fn distinct_starts(runs: &[&RunRecord]) -> u32 {
    let mut starts: Vec<u32> = runs.iter().map(|r| r.conditions.start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.len() as u32
}

fn judge_test(
    history: &History,
    test: u32,
    scan: &[&RunRecord],
    confirm: &[&RunRecord],
    plain: &[&RunRecord],
) -> TestReport {
    let id = &history.tests()[test as usize];
    let mut fresh = Counts::default();
    let mut forked = Counts::default();
    let mut failing_runs = Vec::new();
    let mut durations = Vec::new();
    for run in scan {
        let outcome = run.outcome(test);
        let counts = match run.conditions.engine {
            Engine::Fresh => &mut fresh,
            Engine::Forked => &mut forked,
        };
        if run.conditions.selected.is_none() || outcome != Outcome::Missing {
            count(counts, outcome);
        }
        if outcome.is_failure() {
            failing_runs.push(run.run);
        }
        if outcome == Outcome::Passed || outcome.is_failure() {
            durations.extend(run.durations.get(test as usize).copied());
        }
    }
    let scanned = sum(fresh, forked);
    let mut confirmed = Counts::default();
    for run in confirm {
        // A confirming run selects its suspects: what it did not select says nothing.
        let outcome = run.outcome(test);
        if outcome != Outcome::Missing && outcome != Outcome::NotRun {
            count(&mut confirmed, outcome);
        }
    }
    let all_fresh = sum(fresh, confirmed);
    let mut remarks = Vec::new();
    let (counts, mut class) = verdict(scanned, all_fresh, forked, &mut remarks);
    let start_up = class == TestClass::Flaky && is_start_up(test, scan);
    if class == TestClass::Failing {
        let outside: Vec<Outcome> = plain.iter().map(|r| r.outcome(test)).collect();
        let passed = outside.iter().filter(|o| **o == Outcome::Passed).count();
        if passed > 0 && !outside.iter().any(|o| o.is_failure()) {
            class = TestClass::IsolationDependent;
            remarks.push(format!(
                "passed {passed} of {} times outside the isolation",
                outside.len()
            ));
        }
    }
    if counts.missing > 0 && counts.passed + counts.failed > 0 {
        let all = scan.len() as u32;
        remarks.push(format!(
            "collected in {} of {all} runs",
            all.saturating_sub(counts.missing)
        ));
    }
    let runs = counts.passed + counts.failed;
    durations.sort_unstable();
    failing_runs.sort_unstable();
    TestReport {
        id: id.nodeid.clone(),
        occurrence: id.occurrence,
        class,
        counts,
        runs,
        rate: (runs > 0).then(|| f64::from(counts.failed) / f64::from(runs)),
        ci95: stats::wilson95(counts.failed, runs),
        at_most: (runs > 0 && counts.failed == 0).then(|| stats::at_most95(runs)),
        fresh: all_fresh,
        forked,
        failing_runs,
        start_up,
        remarks,
        signatures: Vec::new(),
        median_s: durations
            .get(durations.len() / 2)
            .map(|code| duration_seconds(*code)),
        max_s: durations.last().map(|code| duration_seconds(*code)),
    }
}

/// Decides which counts the verdict rests on, and the verdict.
fn verdict(
    scanned: Counts,
    fresh: Counts,
    forked: Counts,
    remarks: &mut Vec<String>,
) -> (Counts, TestClass) {
    let (fresh_n, forked_n) = (fresh.passed + fresh.failed, forked.passed + forked.failed);
    if forked.failed > 0 && fresh.failed == 0 {
        let seen = format!(
            "failed {}/{forked_n} in forked children and 0/{fresh_n} in fresh processes",
            forked.failed
        );
        if fresh_n > 0 && stats::fisher_less(forked.failed, forked_n, 0, fresh_n) < 0.05 {
            remarks.push(format!(
                "{seen}: an artefact of forking, so only the fresh processes count"
            ));
            return (fresh, class_of(fresh));
        }
        remarks.push(format!("{seen}: not enough fresh processes to tell"));
        return (scanned, TestClass::Unsure);
    }
    if forked.failed == 0 && forked_n > 0 && fresh.passed == 0 && fresh.failed >= REVERSE_MINIMUM {
        remarks.push(format!(
            "failed {}/{fresh_n} in fresh processes and 0/{forked_n} in forked children, so only the fresh processes count",
            fresh.failed
        ));
        return (fresh, class_of(fresh));
    }
    let class = class_of(scanned);
    // A test that failed in every scan run but passed in a confirming process is flaky all the same.
    if class == TestClass::Failing && fresh.passed > 0 {
        remarks.push(format!(
            "passed {}/{fresh_n} times in fresh processes",
            fresh.passed
        ));
        return (sum(forked, fresh), TestClass::Flaky);
    }
    (scanned, class)
}

fn class_of(counts: Counts) -> TestClass {
    let Counts {
        passed,
        failed,
        skipped,
        xfailed,
        xpassed,
        not_run,
        missing,
    } = counts;
    let other_kinds = [skipped, xfailed, xpassed]
        .iter()
        .filter(|n| **n > 0)
        .count();
    match (passed, failed) {
        (1.., 1..) => TestClass::Flaky,
        (0, 1..) => TestClass::Failing,
        (1.., 0) if other_kinds > 0 || missing > 0 || not_run > 0 => TestClass::Unstable,
        (1.., 0) => TestClass::Clean,
        (0, 0) if other_kinds > 1 || (other_kinds == 1 && (missing > 0 || not_run > 0)) => {
            TestClass::Unstable
        }
        (0, 0) if other_kinds == 1 => TestClass::NotJudged,
        (0, 0) => TestClass::Unsure,
    }
}

/// Failed in whole starts and passed in whole starts, and never both within one that ran it at least twice.
fn is_start_up(test: u32, scan: &[&RunRecord]) -> bool {
    let mut starts: std::collections::BTreeMap<u32, (u32, u32)> = std::collections::BTreeMap::new();
    for run in scan {
        let outcome = run.outcome(test);
        let entry = starts.entry(run.conditions.start).or_default();
        if outcome == Outcome::Passed {
            entry.0 += 1;
        } else if outcome.is_failure() {
            entry.1 += 1;
        }
    }
    let mixed = starts
        .values()
        .any(|(passed, failed)| *passed > 0 && *failed > 0);
    let repeated = |pick: fn(&(u32, u32)) -> u32| starts.values().any(|counts| pick(counts) >= 2);
    !mixed && repeated(|c| c.0) && repeated(|c| c.1)
}

fn count(counts: &mut Counts, outcome: Outcome) {
    *match outcome {
        Outcome::Passed => &mut counts.passed,
        Outcome::Failed
        | Outcome::Error
        | Outcome::XpassedStrict
        | Outcome::TimedOut
        | Outcome::Crashed => &mut counts.failed,
        Outcome::Skipped => &mut counts.skipped,
        Outcome::Xfailed => &mut counts.xfailed,
        Outcome::Xpassed => &mut counts.xpassed,
        Outcome::NotRun => &mut counts.not_run,
        Outcome::Missing => &mut counts.missing,
    } += 1;
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        passed: a.passed + b.passed,
        failed: a.failed + b.failed,
        skipped: a.skipped + b.skipped,
        xfailed: a.xfailed + b.xfailed,
        xpassed: a.xpassed + b.xpassed,
        not_run: a.not_run + b.not_run,
        missing: a.missing + b.missing,
    }
}

/// Signatures of each test: how often, and the first text that this test had with it.
struct SignatureCounts<'h>(HashMap<u32, Vec<Counted<'h>>>);

/// A signature, how often, and the first text.
type Counted<'h> = (u32, u32, Option<&'h Failure>);

fn signature_counts<'h>(scan: &[&'h RunRecord], confirm: &[&'h RunRecord]) -> SignatureCounts<'h> {
    let mut by_test: HashMap<u32, Vec<Counted<'h>>> = HashMap::new();
    for failure in scan.iter().chain(confirm).flat_map(|run| &run.failures) {
        let list = by_test.entry(failure.test).or_default();
        match list
            .iter_mut()
            .find(|(signature, ..)| *signature == failure.signature)
        {
            Some((_, count, text)) => {
                *count += 1;
                *text = text.or(failure.text.as_deref());
            }
            None => list.push((failure.signature, 1, failure.text.as_deref())),
        }
    }
    SignatureCounts(by_test)
}

impl SignatureCounts<'_> {
    fn reports(&self, history: &History, test: u32) -> Vec<SignatureReport> {
        let mut list = self.0.get(&test).cloned().unwrap_or_default();
        list.sort_by_key(|(signature, count, _)| (std::cmp::Reverse(*count), *signature));
        list.into_iter()
            .map(|(signature, count, text)| {
                let signature = &history.signatures()[signature as usize];
                let example = text.unwrap_or(&signature.example);
                SignatureReport {
                    digest: signature.digest.clone(),
                    kind: example.kind.clone(),
                    message: example.message.clone(),
                    location: example.path.as_ref().map(|path| match example.line {
                        Some(line) => format!("{path}:{line}"),
                        None => path.clone(),
                    }),
                    count,
                    outcome: signature.outcome.as_str().to_owned(),
                }
            })
            .collect()
    }
}

/// Remarks that the plugin made about tests, each once.
fn remarks(history: &History) -> HashMap<u32, Vec<String>> {
    let mut by_test: HashMap<u32, Vec<String>> = HashMap::new();
    for (test, words) in history.runs().iter().flat_map(|run| &run.remarks) {
        let list = by_test.entry(*test).or_default();
        if !list.contains(words) && list.len() < 3 {
            list.push(words.clone());
        }
    }
    by_test
}

#[cfg(test)]
mod tests {
    use super::*;
    use bmc_types::{Conditions, TestId};

    /// One scan: for each run (engine, start, purpose) and, per test, a letter: `p f e s x X . -`.
    fn history(rows: &[(Engine, u32, Purpose, &str)]) -> History {
        let mut history = History::default();
        for i in 0..rows.first().map_or(0, |row| row.3.len()) {
            history.intern(&TestId::new(format!("t.py::t{i}")));
        }
        for (number, (engine, start, purpose, letters)) in rows.iter().enumerate() {
            let outcomes = letters
                .chars()
                .map(|c| match c {
                    'p' => Outcome::Passed,
                    'f' => Outcome::Failed,
                    's' => Outcome::Skipped,
                    'x' => Outcome::Xfailed,
                    'X' => Outcome::Xpassed,
                    'n' => Outcome::NotRun,
                    _ => Outcome::Missing,
                })
                .map(Outcome::code)
                .collect();
            history.push(RunRecord {
                run: number as u32 + 1,
                conditions: Conditions {
                    purpose: *purpose,
                    engine: *engine,
                    start: *start,
                    hash_seed: 0,
                    seed: 0,
                    start_seed: 0,
                    order: "collected".into(),
                    worker: 1,
                    isolation: "full".into(),
                    selected: None,
                },
                outcomes,
                durations: Vec::new(),
                failures: Vec::new(),
                remarks: Vec::new(),
                seconds: 0.1,
                processes: 1,
                session_error: None,
            });
        }
        history
    }

    fn class(history: &History, test: usize) -> TestClass {
        let id = &history.tests()[test].nodeid;
        judge(history)
            .tests
            .iter()
            .find(|t| t.id == *id)
            .unwrap()
            .class
    }

    use Engine::{Forked, Fresh};
    use Purpose::{Confirm, Plain, Scan};

    #[test]
    fn the_classes_follow_the_counts() {
        let h = history(&[(Fresh, 1, Scan, "pfpsxs-pn"), (Fresh, 2, Scan, "pffsxpppn")]);
        let classes: Vec<TestClass> = (0..9).map(|t| class(&h, t)).collect();
        use TestClass::{Clean, Failing, Flaky, NotJudged, Unstable, Unsure};
        assert_eq!(
            classes,
            [
                Clean, Failing, Flaky, NotJudged, NotJudged, Unstable, Unstable, Clean, Unsure
            ]
        );
    }

    #[test]
    fn tests_that_no_run_selected_are_left_out() {
        let mut h = history(&[(Fresh, 1, Scan, "p-"), (Fresh, 2, Scan, "p-")]);
        assert_eq!(
            judge(&h).tests.len(),
            2,
            "collected elsewhere, but never here"
        );
        h = history(&[]);
        h.intern(&TestId::new("t.py::t0"));
        h.intern(&TestId::new("t.py::t1"));
        let mut run = history(&[(Fresh, 1, Scan, "p-")]).runs()[0].clone();
        run.conditions.selected = Some(vec!["t.py::t0".into()]);
        h.push(run);
        let judged = judge(&h);
        assert_eq!(
            (
                judged.tests.len(),
                judged.totals.tests,
                judged.totals.unsure
            ),
            (1, 1, 0)
        );
    }

    #[test]
    fn an_xfail_that_changes_sides_is_unstable() {
        assert_eq!(
            class(&history(&[(Fresh, 1, Scan, "x"), (Fresh, 2, Scan, "X")]), 0),
            TestClass::Unstable
        );
    }

    #[test]
    fn a_failure_only_in_forked_children_is_unsure_then_an_artefact() {
        let mut rows = vec![
            (Fresh, 1, Scan, "p"),
            (Forked, 1, Scan, "f"),
            (Forked, 1, Scan, "f"),
            (Forked, 1, Scan, "f"),
        ];
        assert_eq!(class(&history(&rows), 0), TestClass::Unsure);
        rows.extend([
            (Fresh, 2, Confirm, "p"),
            (Fresh, 3, Confirm, "p"),
            (Fresh, 4, Confirm, "p"),
        ]);
        let judged = judge(&history(&rows));
        assert_eq!(judged.tests[0].class, TestClass::Clean);
        assert_eq!(judged.tests[0].counts.failed, 0);
        assert!(
            judged.tests[0].remarks[0].contains("artefact"),
            "{:?}",
            judged.tests[0].remarks
        );
    }

    #[test]
    fn a_forked_failure_that_a_fresh_process_repeats_is_flaky() {
        let rows = [
            (Fresh, 1, Scan, "p"),
            (Forked, 1, Scan, "f"),
            (Forked, 1, Scan, "p"),
            (Fresh, 2, Confirm, "f"),
        ];
        let judged = judge(&history(&rows));
        assert_eq!(
            (
                judged.tests[0].class,
                judged.tests[0].counts.failed,
                judged.tests[0].runs
            ),
            (TestClass::Flaky, 1, 3)
        );
    }

    #[test]
    fn failing_only_when_fresh_counts_the_fresh_ones() {
        let rows = [
            (Fresh, 1, Scan, "f"),
            (Forked, 1, Scan, "p"),
            (Fresh, 2, Scan, "f"),
            (Forked, 2, Scan, "p"),
            (Fresh, 3, Scan, "f"),
        ];
        assert_eq!(class(&history(&rows), 0), TestClass::Failing);
    }

    #[test]
    fn start_up_flakiness_never_differs_within_a_start() {
        let whole = [
            (Fresh, 1, Scan, "f"),
            (Forked, 1, Scan, "f"),
            (Fresh, 2, Scan, "p"),
            (Forked, 2, Scan, "p"),
        ];
        assert!(judge(&history(&whole)).tests[0].start_up);
        let mixed = [
            (Fresh, 1, Scan, "f"),
            (Forked, 1, Scan, "p"),
            (Fresh, 2, Scan, "p"),
            (Forked, 2, Scan, "p"),
        ];
        assert!(!judge(&history(&mixed)).tests[0].start_up);
        let single = [(Fresh, 1, Scan, "f"), (Fresh, 2, Scan, "p")];
        assert!(
            !judge(&history(&single)).tests[0].start_up,
            "one run a start cannot tell"
        );
    }

    #[test]
    fn passing_outside_the_isolation_is_said() {
        let rows = [
            (Fresh, 1, Scan, "f"),
            (Fresh, 2, Scan, "f"),
            (Fresh, 3, Plain, "p"),
        ];
        assert_eq!(class(&history(&rows), 0), TestClass::IsolationDependent);
    }
}
