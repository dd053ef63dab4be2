//! Stored scans as tables: stages of one, its tests, its runs, and the list of all.

use std::io::{self, Write};

use bmc_types::conditions::{Engine, Purpose};
use bmc_types::{Event, EventKind, ScanReport, ScanStatus, TestReport};
use jiff::{SignedDuration, Timestamp};

use super::header::git;
use super::page::{Flush, table};
use super::terminal::result;
use super::verdicts::interval;
use crate::style::Look;
use crate::text::{brief_seconds, percent, plural, printable, seconds, thousands};

/// One row of `show --runs`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunRow {
    /// Number of the run.
    pub(crate) run: u32,
    /// What it was for.
    pub(crate) purpose: Purpose,
    /// Kind of process.
    pub(crate) engine: Engine,
    /// Fresh start it came from.
    pub(crate) start: u32,
    /// `PYTHONHASHSEED`.
    pub(crate) hash_seed: u32,
    /// How long it took.
    pub(crate) seconds: f64,
    /// Outcomes that were recorded.
    pub(crate) outcomes: u64,
    /// How many of them are failures.
    pub(crate) failed: u64,
    /// Processes it took: more than one after a crash or a timeout.
    pub(crate) processes: u32,
}

/// One row of `list`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListRow {
    /// Name of the scan.
    pub(crate) id: String,
    /// When it started, RFC 3339; anything else is printed as it is.
    pub(crate) when: String,
    /// How it ended.
    pub(crate) status: ScanStatus,
    /// Finished runs.
    pub(crate) runs: u32,
    /// Tests that fail every time; `None` while that is not known.
    pub(crate) failing: Option<u64>,
    /// Flaky tests; `None` while that is not known.
    pub(crate) flaky: Option<u64>,
    /// Root of the project.
    pub(crate) root: String,
    /// The one that `latest` means.
    pub(crate) latest: bool,
}

/// Writes a stored scan: how it went stage by stage, then the result as the live run printed it.
pub(crate) fn show(
    report: &ScanReport,
    events: &[Event],
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let state = git(&report.project)
        .map(|git| format!(" ({git})"))
        .unwrap_or_default();
    writeln!(
        out,
        "{}   {}   {}   {}   {}{state}",
        look.styles.bold.style(printable(&report.scan_id)),
        words_of(report.status),
        moment(&report.started_at, 0).map_or_else(
            || printable(&report.started_at),
            |(day, time)| format!("{day} {time} UTC")
        ),
        seconds(report.seconds),
        printable(&report.project.root)
    )?;
    let rows: Vec<[String; 4]> = stages(events)
        .into_iter()
        .map(
            |Stage {
                 began_ms,
                 name,
                 took,
                 detail,
             }| {
                let time = moment(&report.started_at, began_ms).map_or_else(
                    || format!("+{}", seconds(began_ms as f64 / 1000.0)),
                    |(_, t)| t,
                );
                [
                    time,
                    printable(&name),
                    took.map_or_else(|| "not finished".to_owned(), seconds),
                    printable(&detail),
                ]
            },
        )
        .collect();
    if !rows.is_empty() {
        writeln!(out)?;
        let columns = [
            ("TIME", Flush::Left),
            ("STAGE", Flush::Left),
            ("DURATION", Flush::Right),
            ("DETAIL", Flush::Left),
        ];
        table(columns, &rows, look, out)?;
    }
    writeln!(out)?;
    result(report, look, out)?;
    writeln!(
        out,
        "{}",
        look.styles
            .dim
            .style("Use: --tests  --runs  --events  --format json")
    )
}

fn words_of(status: ScanStatus) -> &'static str {
    match status {
        ScanStatus::Running => "unfinished",
        ScanStatus::Complete => "complete",
        ScanStatus::Interrupted => "interrupted",
        ScanStatus::CodeChanged => "code changed",
        ScanStatus::NoResult => "no result",
    }
}

/// Day and time of a moment after an RFC 3339 start, in UTC.
fn moment(start: &str, after_ms: u64) -> Option<(String, String)> {
    let after = SignedDuration::from_millis(i64::try_from(after_ms).ok()?);
    let stamp: Timestamp = start.parse::<Timestamp>().ok()?.checked_add(after).ok()?;
    Some((
        stamp.strftime("%Y-%m-%d").to_string(),
        stamp.strftime("%H:%M:%S").to_string(),
    ))
}

struct Stage {
    began_ms: u64,
    name: String,
    took: Option<f64>,
    detail: String,
}

/// The stages of all sittings, in order.
fn stages(events: &[Event]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut sitting_ms = 0;
    let mut environment_seen = false;
    for event in events {
        match &event.kind {
            EventKind::ScanStarted { .. } => {
                sitting_ms = event.at_ms;
                environment_seen = false;
            }
            // Its second telling only adds what the first process reported.
            EventKind::EnvironmentFound { environment } if !environment_seen => {
                environment_seen = true;
                stages.push(Stage {
                    began_ms: sitting_ms,
                    name: "discover".to_owned(),
                    took: Some(event.at_ms.saturating_sub(sitting_ms) as f64 / 1000.0),
                    detail: format!(
                        "{} {}, pytest {}",
                        environment.executable, environment.python, environment.pytest
                    ),
                });
            }
            EventKind::CollectionFinished { tests, seconds } => {
                // The first process collects when the stage of runs has begun already; nobody thinks of it in that order.
                let open = stages
                    .last()
                    .is_some_and(|stage| stage.name == "run" && stage.took.is_none());
                let began_ms = match stages.last() {
                    Some(run) if open => run.began_ms,
                    _ => event.at_ms.saturating_sub(millis(*seconds)),
                };
                let stage = Stage {
                    began_ms,
                    name: "collect".to_owned(),
                    took: Some(*seconds),
                    detail: plural(*tests, "test", "tests"),
                };
                stages.insert(stages.len() - usize::from(open), stage);
            }
            EventKind::StageStarted { stage } => {
                stages.push(Stage {
                    began_ms: event.at_ms,
                    name: stage.clone(),
                    took: None,
                    detail: String::new(),
                });
            }
            EventKind::StageFinished {
                stage,
                seconds,
                detail,
            } => {
                match stages
                    .iter_mut()
                    .rev()
                    .find(|s| s.name == *stage && s.took.is_none())
                {
                    Some(open) => {
                        open.took = Some(*seconds);
                        open.detail.clone_from(detail);
                    }
                    None => stages.push(Stage {
                        began_ms: event.at_ms.saturating_sub(millis(*seconds)),
                        name: stage.clone(),
                        took: Some(*seconds),
                        detail: detail.clone(),
                    }),
                }
            }
            EventKind::EnvironmentFound { .. }
            | EventKind::PlanMade { .. }
            | EventKind::StartReady { .. }
            | EventKind::RunStarted { .. }
            | EventKind::TestOutcome { .. }
            | EventKind::RunFinished { .. }
            | EventKind::ProblemFound { .. }
            | EventKind::Refused { .. }
            | EventKind::ScanFinished { .. } => {}
        }
    }
    stages
}

/// Whole milliseconds; what is no duration is none.
fn millis(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0) as u64
}

/// Writes one line for each test, worst first. Node ids are whole.
pub(crate) fn tests(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<[String; 7]> = report
        .tests
        .iter()
        .map(|test| {
            let TestReport {
                id,
                occurrence,
                class,
                counts,
                runs,
                ci95,
                at_most,
                median_s,
                ..
            } = test;
            let which = if *occurrence == 0 {
                String::new()
            } else {
                format!(" (item {})", u64::from(*occurrence) + 1)
            };
            [
                class.as_str().replace('_', " "),
                if *runs == 0 {
                    "-".to_owned()
                } else {
                    format!("{}/{runs}", counts.failed)
                },
                match (at_most, ci95) {
                    (Some(most), _) => format!("at most {}", percent(*most)),
                    (None, Some((low, high))) => interval(*low, *high),
                    (None, None) => "-".to_owned(),
                },
                counts.skipped.to_string(),
                counts.missing.saturating_add(counts.not_run).to_string(),
                median_s.map_or_else(|| "-".to_owned(), brief_seconds),
                format!("{}{which}", printable(id)),
            ]
        })
        .collect();
    let columns = [
        ("CLASS", Flush::Left),
        ("FAILED", Flush::Right),
        ("TRUE RATE (95 %)", Flush::Right),
        ("SKIPPED", Flush::Right),
        ("MISSING", Flush::Right),
        ("MEDIAN", Flush::Right),
        ("TEST", Flush::Left),
    ];
    table(columns, &rows, look, out)
}

/// Writes one line for each run with its conditions, by number: parallel runs do not end in that order.
pub(crate) fn runs(rows: &[RunRow], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut sorted: Vec<&RunRow> = rows.iter().collect();
    sorted.sort_by_key(|row| row.run);
    let rows: Vec<[String; 9]> = sorted
        .into_iter()
        .map(|row| {
            let RunRow {
                run,
                purpose,
                engine,
                start,
                hash_seed,
                seconds: took,
                outcomes,
                failed,
                processes,
            } = row;
            [
                run.to_string(),
                purpose.as_str().to_owned(),
                engine.as_str().to_owned(),
                start.to_string(),
                hash_seed.to_string(),
                seconds(*took),
                outcomes.to_string(),
                failed.to_string(),
                processes.to_string(),
            ]
        })
        .collect();
    let columns = [
        ("RUN", Flush::Right),
        ("FOR", Flush::Left),
        ("PROCESS", Flush::Left),
        ("START", Flush::Right),
        ("HASH SEED", Flush::Right),
        ("DURATION", Flush::Right),
        ("OUTCOMES", Flush::Right),
        ("FAILED", Flush::Right),
        ("PROCESSES", Flush::Right),
    ];
    table(columns, &rows, look, out)
}

/// Writes one line for each scan.
pub(crate) fn list(rows: &[ListRow], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "No scan yet. Start one in a project:  breakmycode .");
    }
    let known = |n: &Option<u64>| n.map_or_else(|| "-".to_owned(), thousands);
    let rows: Vec<[String; 7]> = rows
        .iter()
        .map(|row| {
            let ListRow {
                id,
                when,
                status,
                runs,
                failing,
                flaky,
                root,
                latest,
            } = row;
            let mark = if *latest { "   *latest" } else { "" };
            [
                printable(id),
                moment(when, 0)
                    .map_or_else(|| printable(when), |(day, time)| format!("{day} {time}")),
                thousands(u64::from(*runs)),
                known(failing),
                known(flaky),
                words_of(*status).to_owned(),
                format!("{}{mark}", printable(root)),
            ]
        })
        .collect();
    let columns = [
        ("ID", Flush::Left),
        ("WHEN (UTC)", Flush::Left),
        ("RUNS", Flush::Right),
        ("FAIL", Flush::Right),
        ("FLAKY", Flush::Right),
        ("STATUS", Flush::Left),
        ("PROJECT", Flush::Left),
    ];
    table(columns, &rows, look, out)
}
