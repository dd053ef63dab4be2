//! The tests that are not clean, worst first, with counts, intervals and the ways in which they failed.

use std::io::{self, Write};

use bmc_types::report::{Counts, SignatureReport};
use bmc_types::{ScanReport, TestClass, TestReport};
use owo_colors::Style;

use super::page::paragraph;
use crate::style::Look;
use crate::text::{self, first_line, percent, percent_number, plural, printable};

/// Tests shown of each class. The last screenful has to hold the answer; `--tests` lists the rest.
const SHOWN: usize = 25;

/// Ways of failing shown of each test.
const WAYS_SHOWN: usize = 3;

/// Numbers of failing runs shown of each test.
const RUNS_SHOWN: usize = 10;

/// Least columns for a node id beside its counts; with less, the counts go below it.
const ID_COLUMNS: usize = 40;

struct Heading {
    symbol: &'static str,
    style: Style,
    title: &'static str,
    note: &'static str,
}

fn heading(class: TestClass, look: &Look) -> Option<Heading> {
    let styles = &look.styles;
    let (symbol, style, title, note) = match class {
        TestClass::Failing => (look.cross(), styles.fail, "FAILS EVERY TIME", ""),
        TestClass::Flaky => (
            look.wave(),
            styles.flaky,
            "FLAKY",
            "passed and failed on identical code",
        ),
        TestClass::IsolationDependent => (
            look.bang(),
            styles.env,
            "FAILS ONLY IN ISOLATION",
            "passed outside it: this says nothing about the project",
        ),
        TestClass::Unstable => (
            look.wave(),
            styles.flaky,
            "UNSTABLE",
            "never failed, but not the same in every run",
        ),
        TestClass::Unsure => (
            look.bang(),
            styles.env,
            "UNSURE",
            "too little was seen for a verdict",
        ),
        TestClass::Clean | TestClass::NotJudged => return None,
    };
    Some(Heading {
        symbol,
        style,
        title,
        note,
    })
}

/// Writes a block for each class that has tests.
pub(super) fn blocks(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    for class in [
        TestClass::Failing,
        TestClass::Flaky,
        TestClass::IsolationDependent,
        TestClass::Unstable,
        TestClass::Unsure,
    ] {
        let tests: Vec<&TestReport> = report.tests.iter().filter(|t| t.class == class).collect();
        let Some(heading) = heading(class, look).filter(|_| !tests.is_empty()) else {
            continue;
        };
        block(&heading, &tests, report, look, out)?;
    }
    Ok(())
}

fn block(
    heading: &Heading,
    tests: &[&TestReport],
    report: &ScanReport,
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Heading {
        symbol,
        style,
        title,
        note,
    } = heading;
    let head = format!("{symbol} {title}");
    let count = plural(tests.len() as u64, "test", "tests");
    let fits = text::width(&head) + text::width(&count) + note.len() + 5 <= look.columns();
    match (note.is_empty(), fits) {
        (true, _) => writeln!(out, "{}  {count}", style.style(head))?,
        (false, true) => writeln!(out, "{}  {count} ({note})", style.style(head))?,
        (false, false) => {
            writeln!(out, "{}  {count}", style.style(head))?;
            paragraph("  ", &format!("({note})"), Style::new(), look, out)?;
        }
    }
    let shown = &tests[..tests.len().min(SHOWN)];
    let numbers: Vec<(String, String)> = shown.iter().map(|test| numbers(test)).collect();
    let counts = numbers
        .iter()
        .map(|(count, _)| text::width(count))
        .max()
        .unwrap_or(0);
    let rates = numbers
        .iter()
        .map(|(_, rate)| text::width(rate))
        .max()
        .unwrap_or(0);
    let beside = if rates > 0 {
        counts + 3 + rates
    } else {
        counts
    };
    let room = look.columns().saturating_sub(2 + 2 + beside);
    let widest = shown
        .iter()
        .map(|test| text::width(&named(test, look, usize::MAX)))
        .max()
        .unwrap_or(0);
    let column = widest.min(room);
    for (test, (count, rate)) in shown.iter().zip(&numbers) {
        let rate = if rate.is_empty() {
            String::new()
        } else {
            format!("   {}", look.styles.dim.style(rate))
        };
        let id = named(test, look, column);
        if (room >= ID_COLUMNS || widest <= room) && text::width(&id) <= column {
            writeln!(
                out,
                "  {}  {}{rate}",
                text::pad(&id, column),
                text::pad_left(count, counts)
            )?;
        } else {
            writeln!(out, "  {}", named(test, look, look.columns() - 2))?;
            writeln!(out, "      {count}{rate}")?;
        }
        details(test, look, out)?;
    }
    if tests.len() > SHOWN {
        let more = plural((tests.len() - SHOWN) as u64, "more", "more");
        writeln!(
            out,
            "  {} and {more}: breakmycode show {} --tests",
            look.ellipsis(),
            printable(&report.scan_id)
        )?;
    }
    Ok(())
}

/// Node id, and which item it is where several have it.
fn named(test: &TestReport, look: &Look, width: usize) -> String {
    if test.occurrence == 0 {
        return look.node_id(&test.id, width);
    }
    let which = format!(" (item {})", u64::from(test.occurrence) + 1);
    format!(
        "{}{which}",
        look.node_id(&test.id, width.saturating_sub(which.len()))
    )
}

/// Counts, and what they say about the true rate.
fn numbers(test: &TestReport) -> (String, String) {
    let rate = match (test.ci95, test.at_most) {
        (_, Some(most)) => format!("true rate at most {}", percent(most)),
        (Some((low, high)), None) => format!("true rate {}", interval(low, high)),
        (None, None) => String::new(),
    };
    match test.class {
        TestClass::Unstable | TestClass::NotJudged => (tally(&test.counts), rate),
        TestClass::Unsure if test.runs == 0 => (tally(&test.counts), rate),
        TestClass::Unsure
        | TestClass::Failing
        | TestClass::Flaky
        | TestClass::IsolationDependent
        | TestClass::Clean => (format!("{}/{} failed", test.counts.failed, test.runs), rate),
    }
}

/// `14.5-51.9 %`.
pub(super) fn interval(low: f64, high: f64) -> String {
    format!("{}-{} %", percent_number(low), percent_number(high))
}

/// All outcomes that occurred, in words.
pub(super) fn tally(counts: &Counts) -> String {
    let Counts {
        passed,
        failed,
        skipped,
        xfailed,
        xpassed,
        not_run,
        missing,
    } = *counts;
    let parts: Vec<String> = [
        (failed, "failed"),
        (passed, "passed"),
        (skipped, "skipped"),
        (xfailed, "xfailed"),
        (xpassed, "xpassed"),
        (not_run, "not run"),
        (missing, "not collected"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, word)| format!("{n} {word}"))
    .collect();
    if parts.is_empty() {
        "nothing seen".to_owned()
    } else {
        parts.join(", ")
    }
}

fn details(test: &TestReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let total: u64 = test.signatures.iter().map(|s| u64::from(s.count)).sum();
    for signature in test.signatures.iter().take(WAYS_SHOWN) {
        // Signatures also count confirming runs, which the counts of a verdict may leave out.
        let more = if total > u64::from(test.counts.failed) {
            ", confirming runs included"
        } else {
            ""
        };
        let share = match (test.signatures.len(), total) {
            (_, 0 | 1) => String::new(),
            (1, _) => format!("({} of {total} failures{more})", signature.count),
            (_, _) => format!("({} of {total}{more})", signature.count),
        };
        way(signature, &share, look, out)?;
    }
    if test.signatures.len() > WAYS_SHOWN {
        let more = (test.signatures.len() - WAYS_SHOWN) as u64;
        writeln!(
            out,
            "      {}",
            look.styles.dim.style(format!(
                "and {}",
                plural(more, "other way of failing", "other ways of failing")
            ))
        )?;
    }
    if test.start_up {
        let words = "decided at start-up: within one start of Python it is always the same, between starts it differs (import time, hash seed, address layout)";
        paragraph("      ", words, Style::new(), look, out)?;
    }
    if matches!(test.class, TestClass::Flaky | TestClass::Unsure) && !test.failing_runs.is_empty() {
        let numbers: Vec<String> = test
            .failing_runs
            .iter()
            .take(RUNS_SHOWN)
            .map(u32::to_string)
            .collect();
        let more = test.failing_runs.len().saturating_sub(RUNS_SHOWN);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let word = if test.failing_runs.len() == 1 {
            "run"
        } else {
            "runs"
        };
        paragraph(
            "      ",
            &format!("failed in {word} {}{more}", numbers.join(", ")),
            look.styles.dim,
            look,
            out,
        )?;
    }
    for remark in &test.remarks {
        paragraph("      ", &printable(remark), Style::new(), look, out)?;
    }
    Ok(())
}

/// One way of failing: message, place, how often.
fn way(
    signature: &SignatureReport,
    share: &str,
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let words = failure_words(signature);
    let mut about: Vec<String> = signature
        .location
        .iter()
        .map(|place| printable(place))
        .collect();
    if !share.is_empty() {
        about.push(share.to_owned());
    }
    let about = about.join("   ");
    let room = look.columns().saturating_sub(10);
    if about.is_empty() {
        return writeln!(out, "      E   {}", look.cut(&words, room));
    }
    if text::width(&words) + 3 + text::width(&about) <= room {
        return writeln!(out, "      E   {words}   {}", look.styles.dim.style(about));
    }
    writeln!(out, "      E   {}", look.cut(&words, room))?;
    for line in text::wrap(&about, room) {
        writeln!(
            out,
            "          {}",
            look.styles.dim.style(look.cut(&line, room))
        )?;
    }
    Ok(())
}

/// Type and first line of the message, as pytest's own summary has them.
pub(super) fn failure_words(signature: &SignatureReport) -> String {
    let kind = printable(&signature.kind);
    let message = first_line(&signature.message);
    if message.is_empty() {
        return if kind.is_empty() {
            printable(&signature.outcome)
        } else {
            kind
        };
    }
    let said = kind.is_empty()
        || message.starts_with(&kind)
        || (kind == "AssertionError" && message.starts_with("assert"));
    if said {
        message
    } else {
        format!("{kind}: {message}")
    }
}

/// Says how many tests are not judged at all.
pub(super) fn not_judged(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let n = report
        .tests
        .iter()
        .filter(|t| t.class == TestClass::NotJudged)
        .count() as u64;
    if n == 0 {
        return Ok(());
    }
    let verb = if n == 1 { "was" } else { "were" };
    let words = format!(
        "{} {verb} skipped or expected to fail every time: not judged.",
        plural(n, "test", "tests")
    );
    paragraph("  ", &words, look.styles.dim, look, out)
}
