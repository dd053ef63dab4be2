//! The result for people: what is wrong, what exactly, how sure that is, what to type next; in that order.
//!
//! The same text for a scan that just ended and for one read back from the trace. Must not print anything that is not in the report.

use std::io::{self, Write};

use bmc_types::{ScanReport, ScanStatus, TestClass};
use owo_colors::Style;

use super::page::{labelled, lines, paragraph};
use super::{advice as faults, next, proof, verdicts};
use crate::style::Look;
use crate::text::{plural, printable, seconds, thousands, width};

pub(crate) use super::advice::advice;
pub(crate) use super::tables::{ListRow, RunRow, list, runs, show, tests};

/// Writes everything from "Finished …" to the end.
///
/// # Errors
/// What the writer says.
pub(crate) fn result(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    if report.status == ScanStatus::NoResult {
        return no_result(report, look, out);
    }
    ending(report, look, out)?;
    writeln!(out)?;
    if report.tests.is_empty() {
        writeln!(
            out,
            "{} Nothing was seen of any test, so nothing can be said.",
            look.styles.env.style(look.bang())
        )?;
    } else if is_all_green(report) {
        proof::all_green(report, look, out)?;
    } else {
        verdicts::blocks(report, look, out)?;
        proof::clean(report, look, out)?;
    }
    verdicts::not_judged(report, look, out)?;
    if !report.problems.is_empty() {
        writeln!(out)?;
        writeln!(out, "About this scan:")?;
        faults::problems(&report.problems, look, out)?;
    }
    writeln!(out)?;
    next::commands(report, look, out)
}

/// All planned runs are in, and every judged test passed every time.
fn is_all_green(report: &ScanReport) -> bool {
    let good = |class| matches!(class, TestClass::Clean | TestClass::NotJudged);
    report.status == ScanStatus::Complete
        && report.tests.iter().all(|t| good(t.class))
        && report.tests.iter().any(|t| t.class == TestClass::Clean)
}

/// How the scan ended and what it counted.
fn ending(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let bold = look.styles.bold;
    let planned = report.plan.as_ref().map(|plan| plan.runs);
    let done = report.totals.runs;
    let scan = printable(&report.scan_id);
    let of = match planned {
        Some(planned) => format!(
            "{} of {}",
            thousands(u64::from(done)),
            plural(u64::from(planned), "run", "runs")
        ),
        None => plural(u64::from(done), "run", "runs"),
    };
    let kept = if done == 1 {
        "it is saved".to_owned()
    } else {
        format!("all {} are saved", thousands(u64::from(done)))
    };
    match report.status {
        ScanStatus::Complete | ScanStatus::NoResult => {}
        ScanStatus::Interrupted if done == 0 => {
            let words = format!("before the first run was complete; {scan} can be resumed");
            lines(
                &labelled("Interrupted", &words, "", look.styles.env, look),
                out,
            )?;
        }
        ScanStatus::Interrupted => {
            lines(
                &labelled(
                    "Interrupted",
                    &format!("after {of}; {kept} in {scan}"),
                    "",
                    look.styles.env,
                    look,
                ),
                out,
            )?;
        }
        ScanStatus::Running => {
            let words = format!(
                "{scan} is still running, or its process died: {of} so far; what follows rests on these"
            );
            lines(
                &labelled("Unfinished", &words, "", look.styles.env, look),
                out,
            )?;
        }
        ScanStatus::CodeChanged => {
            let words = format!(
                "after {of}: the code changed meanwhile. What follows is about the code before; it says nothing about the code now"
            );
            lines(
                &labelled("Stopped", &words, "", look.styles.fail, look),
                out,
            )?;
        }
    }
    if matches!(report.status, ScanStatus::Interrupted | ScanStatus::Running) {
        lines(
            &labelled(
                "Resume",
                &format!("breakmycode resume {scan}"),
                "",
                bold,
                look,
            ),
            out,
        )?;
    }
    let label = if report.status == ScanStatus::Complete {
        "Finished"
    } else {
        "So far"
    };
    lines(&labelled(label, &counts(report), "", bold, look), out)
}

/// `20 runs x 412 tests = 8 240 outcomes in 1 min 38 s`, and what was special.
fn counts(report: &ScanReport) -> String {
    let totals = &report.totals;
    let (runs, tests) = (
        plural(u64::from(totals.runs), "run", "runs"),
        plural(totals.tests, "test", "tests"),
    );
    let outcomes = plural(totals.outcomes, "outcome", "outcomes");
    let full = u64::from(totals.runs).checked_mul(totals.tests) == Some(totals.outcomes);
    let mut words = if full {
        format!("{runs} x {tests} = {outcomes}")
    } else {
        format!("{runs} of {tests}, {outcomes}")
    };
    words.push_str(&format!(" in {}", seconds(report.seconds)));
    if totals.confirm_runs > 0 {
        let more = plural(
            u64::from(totals.confirm_runs),
            "fresh process",
            "fresh processes",
        );
        words.push_str(&format!("; {more} to confirm what forked children showed"));
    }
    if totals.timeouts > 0 {
        words.push_str(&format!(
            "; {}",
            plural(totals.timeouts, "timeout", "timeouts")
        ));
    }
    if totals.crashes > 0 {
        words.push_str(&format!("; {}", plural(totals.crashes, "crash", "crashes")));
    }
    words
}

/// The form for a scan that could not be made or trusted.
fn no_result(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let (title, words) = if report.exit_code == 4 {
        ("NO TESTS", "there is nothing to run")
    } else if report.totals.runs > 0 {
        (
            "NOT A TEST RESULT",
            "the scan could not go on, and what it saw is not enough for a result",
        )
    } else {
        (
            "NOT A TEST RESULT",
            "no run could be made, so nothing is known about the tests",
        )
    };
    let head = format!("{} {title}", look.bang());
    if width(&head) + 2 + words.len() <= look.columns() {
        writeln!(out, "{}  {words}", look.styles.env.style(head))?;
    } else {
        writeln!(out, "{}", look.styles.env.style(head))?;
        paragraph("  ", words, Style::new(), look, out)?;
    }
    if report.totals.runs > 0 {
        let words = format!(
            "The {} before it are kept.",
            plural(u64::from(report.totals.runs), "run", "runs")
        );
        paragraph("  ", &words, Style::new(), look, out)?;
    }
    if !report.advice.is_empty() {
        writeln!(out)?;
        advice(&report.advice, look, out)?;
    }
    if !report.problems.is_empty() {
        writeln!(out)?;
        writeln!(out, "About this scan:")?;
        faults::problems(&report.problems, look, out)?;
    }
    writeln!(out)?;
    next::commands(report, look, out)
}
