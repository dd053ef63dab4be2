//! The moving block on a terminal: at most six lines from the progress of the running stage. Pure: text out of numbers.

use bmc_engine::workflow::Progress;

use crate::style::Look;
use crate::text::{self, clock, plural, printable, seconds, thousands};

/// A test that takes longer than this is shown as slow.
const SLOW_S: f64 = 1.0;

/// Tests that are named on one line.
const NAMED: usize = 4;

/// Columns of the label with the gap after it, as in the lines above the block.
const BODY: usize = 14;

/// The lines of the block. `base` is the number of runs that were finished before this sitting; no line is wider than `columns`.
pub(super) fn block(
    progress: &Progress,
    base: u32,
    stopping: bool,
    columns: usize,
    look: &Look,
) -> Vec<String> {
    let mut lines = vec![first(progress, base, columns, look)];
    let room = columns.saturating_sub(BODY);
    let mut body = |words: String, dim: bool| {
        let words = look.cut(&words, room);
        let words = if dim {
            look.styles.dim.style(words).to_string()
        } else {
            words
        };
        lines.push(format!("{}{words}", " ".repeat(BODY)));
    };
    // Tests of this stage only: the counts of the main stage stand still while others run.
    let (always, sometimes): (Vec<_>, Vec<_>) = progress
        .failing
        .iter()
        .partition(|(_, failed, runs)| failed >= runs);
    if !sometimes.is_empty() {
        let verb = if sometimes.len() == 1 {
            "test disagrees with itself"
        } else {
            "tests disagree with themselves"
        };
        body(
            format!(
                "{} {verb}: {}",
                thousands(sometimes.len() as u64),
                names(&sometimes, look)
            ),
            false,
        );
    }
    if !always.is_empty() {
        let word = if always.len() == 1 { "test" } else { "tests" };
        body(
            format!(
                "{} {word} failed every time so far: {}",
                thousands(always.len() as u64),
                names(&always, look)
            ),
            false,
        );
    }
    if let Some((id, took)) = progress.running.first().filter(|(_, took)| *took >= SLOW_S) {
        let took = seconds(*took);
        let label = "slow now: ";
        let id = look.node_id(id, room.saturating_sub(label.len() + 1 + took.len()));
        body(
            format!(
                "{label}{} {took}",
                look.cut(&id, room.saturating_sub(label.len() + 1 + took.len()))
            ),
            true,
        );
    }
    let hint = if stopping {
        "Stopping: finishing the running tests and saving. Ctrl-C again kills them now."
    } else {
        "Ctrl-C stops and keeps what is done."
    };
    body(hint.to_owned(), !stopping);
    lines
}

/// Label, bar, counts and the time that is left.
fn first(progress: &Progress, base: u32, columns: usize, look: &Look) -> String {
    let label = match progress.stage.as_str() {
        "run" if progress.done == base && progress.outcomes == 0 => "Starting",
        "run" => "Running",
        "confirm" => "Confirming",
        "plain" => "Comparing",
        "collect" => "Collecting",
        _ => "Working",
    };
    let mut counts = match progress.total {
        Some(total) => format!(
            "{}/{}",
            thousands(u64::from(progress.done)),
            plural(u64::from(total), "run", "runs")
        ),
        None => plural(u64::from(progress.done), "run", "runs"),
    };
    let outcomes = format!("   {}", plural(progress.outcomes, "outcome", "outcomes"));
    let time = match left(progress, base) {
        Some(seconds) => format!("   {} left", clock(seconds)),
        None => format!("   {}", clock(progress.seconds)),
    };
    if BODY + 12 + text::width(&counts) + text::width(&outcomes) + text::width(&time) <= columns
        && progress.outcomes > 0
    {
        counts.push_str(&outcomes);
    }
    counts.push_str(&time);
    let bar = columns
        .saturating_sub(BODY + 2 + text::width(&counts))
        .min(34);
    let label = look
        .styles
        .bold
        .style(text::pad_left(label, BODY - 2))
        .to_string();
    match progress.total.filter(|total| *total > 0 && bar >= 8) {
        Some(total) => format!(
            "{label}  {}  {counts}",
            self::bar(progress.done, total, bar, look)
        ),
        None => format!(
            "{label}  {}",
            look.cut(&counts, columns.saturating_sub(BODY))
        ),
    }
}

/// Seconds that the rest will take at the pace of this sitting. `None` until a run is finished, and when none is left.
fn left(progress: &Progress, base: u32) -> Option<f64> {
    let done = progress.done.saturating_sub(base);
    let rest = progress
        .total?
        .checked_sub(progress.done)
        .filter(|rest| *rest > 0)?;
    (done > 0 && progress.seconds.is_finite())
        .then(|| progress.seconds / f64::from(done) * f64::from(rest))
}

fn bar(done: u32, total: u32, columns: usize, look: &Look) -> String {
    let (full, empty) = if look.ascii {
        ("#", ".")
    } else {
        ("━", "─")
    };
    let share = f64::from(done.min(total)) / f64::from(total);
    let filled = ((share * columns as f64) as usize).min(columns);
    format!(
        "{}{}",
        full.repeat(filled),
        look.styles.dim.style(empty.repeat(columns - filled))
    )
}

/// `test_payment (4/14), test_cache_order (1/14) and 2 more`.
fn names(tests: &[&(String, u32, u32)], look: &Look) -> String {
    let named: Vec<String> = tests
        .iter()
        .take(NAMED)
        .map(|(id, failed, runs)| format!("{} ({failed}/{runs})", look.cut(&short_name(id), 40)))
        .collect();
    let more = tests.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", named.join(", "))
}

/// The test's own name, without path and class: the whole node id is in the result.
fn short_name(id: &str) -> String {
    let head = id.find('[').map_or(id, |at| &id[..at]);
    printable(head.rfind("::").map_or(id, |at| &id[at + 2..]))
}

#[cfg(test)]
mod tests;
