//! What the runs prove and what they do not: detection power, bounds, and how many runs would prove more.

use std::io::{self, Write};

use bmc_engine::lab::stats;
use bmc_types::report::Power;
use bmc_types::{ScanReport, ScanStatus, TestClass};

use super::header::rate_words;
use super::page::paragraph;
use crate::style::Look;
use crate::text::{chance, percent, plural, thousands};

/// Confidence of the advice on the number of runs.
const CONFIDENCE: f64 = 0.95;

/// Rates for which a number of runs is proposed, the next one when the first is reached.
const RATES: [f64; 2] = [0.05, 0.01];

/// What is decided once for each start of the interpreter.
const START_UP: &str = "is decided when Python starts (import time, hash seed, address layout)";

/// Number of runs that would be worth making next, and the rate they would show with 95 %. `None` when there are enough.
pub(super) fn more_runs(report: &ScanReport) -> Option<(u32, f64)> {
    RATES
        .iter()
        .filter_map(|rate| stats::runs_needed(*rate, CONFIDENCE).map(|runs| (runs, *rate)))
        .find(|(runs, _)| *runs > report.totals.runs)
}

/// Whether fewer interpreters were started than runs made, so that two powers have to be told apart.
fn two_powers(report: &ScanReport) -> bool {
    let totals = &report.totals;
    totals.fresh_starts > 0 && totals.fresh_starts < totals.runs
}

/// `88 % (5 %: 64 %; 1 %: 18 %)`, after the rate of the first.
fn power_words(power: &[Power]) -> Option<(String, String)> {
    let (first, others) = power.split_first()?;
    let others: Vec<String> = others
        .iter()
        .map(|p| format!("{}: {}", rate_words(p.rate), chance(p.caught_with)))
        .collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" ({})", others.join("; "))
    };
    Some((
        rate_words(first.rate),
        format!("{}{others}", chance(first.caught_with)),
    ))
}

fn start_sentence(report: &ScanReport) -> Option<String> {
    if !two_powers(report) {
        return None;
    }
    let (rate, chances) = power_words(&report.start_power)?;
    let starts = report.totals.fresh_starts;
    Some(format!(
        "What {START_UP} was tried only {}: failing {rate} of the time there would have been seen with probability {chances}.",
        plural(u64::from(starts), "time", "times")
    ))
}

/// Says how often the tests that always passed did so, and what a flaky one among them would have looked like.
pub(super) fn clean(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let runs: Vec<u32> = report
        .tests
        .iter()
        .filter(|t| t.class == TestClass::Clean)
        .map(|t| t.runs)
        .collect();
    let (Some(least), Some(most)) = (runs.iter().min().copied(), runs.iter().max().copied()) else {
        return Ok(());
    };
    let all = report.totals.runs;
    let times = if least == all && most == all {
        format!("{all} of {}", plural(u64::from(all), "time", "times"))
    } else if least == most {
        format!(
            "each of the {} that count",
            plural(u64::from(least), "time", "times")
        )
    } else {
        format!(
            "every time ({} to {} times)",
            thousands(u64::from(least)),
            thousands(u64::from(most))
        )
    };
    let mut words = format!("passed {times}.");
    if let Some((rate, chances)) = power_words(&report.power) {
        words.push_str(&format!(" A test that fails {rate} of the time would have been seen failing with probability {chances}."));
    }
    // A scan that did not come to its end has runs left to make first.
    if report.status == ScanStatus::Complete
        && let Some((runs, rate)) = more_runs(report)
    {
        words.push_str(&format!(
            " For 95 % at a {} rate use --runs {runs}.",
            rate_words(rate)
        ));
    }
    let head = format!(
        "{} {}",
        look.tick(),
        plural(runs.len() as u64, "test", "tests")
    );
    first_words(&head, &words, look, out)?;
    match start_sentence(report) {
        Some(words) => paragraph("  ", &words, owo_colors::Style::new(), look, out),
        None => Ok(()),
    }
}

/// A paragraph whose first words are green.
fn first_words(head: &str, words: &str, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let room = look.columns().saturating_sub(2);
    for (i, line) in crate::text::wrap(&format!("{head} {words}"), room)
        .into_iter()
        .enumerate()
    {
        match line.strip_prefix(head) {
            Some(rest) if i == 0 => writeln!(out, "{}{rest}", look.styles.ok.style(head))?,
            _ if i == 0 => writeln!(out, "{line}")?,
            _ => writeln!(out, "  {line}")?,
        }
    }
    Ok(())
}

/// The form for a scan in which nothing was found: what that proves, and what it does not.
pub(super) fn all_green(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let plain = owo_colors::Style::new();
    let runs = report.totals.runs;
    let head = format!("{} No failures and no flakiness seen.", look.tick());
    writeln!(out, "{}", look.styles.ok.style(head))?;
    let least = report
        .tests
        .iter()
        .filter(|t| t.class == TestClass::Clean)
        .map(|t| t.runs)
        .min()
        .unwrap_or(0);
    let mut proves = Vec::new();
    if let Some(Power { rate, caught_with }) = report.power.first() {
        proves.push(format!(
            "with {} a test failing {} of the time would have been caught with probability {}",
            plural(u64::from(runs), "run", "runs"),
            rate_words(*rate),
            chance(*caught_with)
        ));
    }
    let who = if report.totals.clean == 1 {
        "1 test".to_owned()
    } else {
        format!("each of {} tests", thousands(report.totals.clean))
    };
    let times = plural(u64::from(least), "run", "runs");
    proves.push(format!(
        "{who} passed every time, in {}{times}, so its true failure rate is at most {} (95 % confidence), if runs are independent",
        if least < runs { "at least " } else { "all " },
        percent(stats::at_most95(least))
    ));
    paragraph(
        "  What that proves: ",
        &format!("{}.", proves.join("; ")),
        plain,
        look,
        out,
    )?;
    let mut not = Vec::new();
    if let Some(Power { rate, caught_with }) =
        report.power.last().filter(|p| p.caught_with < CONFIDENCE)
    {
        not.push(format!(
            "rates near {} (caught with {})",
            rate_words(*rate),
            chance(*caught_with)
        ));
    }
    if two_powers(report)
        && let Some(Power { rate, caught_with }) = report.start_power.first()
    {
        not.push(format!(
            "what {START_UP}: {}, so failing there {} of the time is caught with {}",
            plural(
                u64::from(report.totals.fresh_starts),
                "fresh start",
                "fresh starts"
            ),
            rate_words(*rate),
            chance(*caught_with)
        ));
    }
    if report
        .plan
        .as_ref()
        .is_some_and(|plan| plan.order == "collected")
    {
        not.push("other orders of the tests".to_owned());
    }
    not.push("other machines, other Python versions".to_owned());
    if report
        .environment
        .as_ref()
        .is_some_and(|e| e.network == "loopback")
    {
        not.push("the real network (it was off)".to_owned());
    }
    paragraph(
        "  What it does not: ",
        &format!("{}.", not.join("; ")),
        plain,
        look,
        out,
    )
}
