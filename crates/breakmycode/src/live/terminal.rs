//! Progress for people, on standard error: a block that moves on a terminal, plain lines elsewhere.
//!
//! A stream that is closed is no reason to stop a scan: faults are ignored. After the end of the scan nothing is written any more.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bmc_engine::workflow::{EventSink, Progress};
use bmc_types::{Event, EventKind, Severity};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::block::block;
use crate::render::header;
use crate::style::Look;
use crate::text::{clock, printable, seconds};

/// Plain lines come after so many seconds at the latest, and after each tenth of the runs.
const LINE_EVERY_S: f64 = 30.0;

/// Shows a scan as it goes on.
pub(crate) struct Terminal {
    look: Look,
    version: String,
    interrupt: Arc<AtomicU8>,
    out: Box<dyn Write + Send>,
    /// The moving block; `None` where nothing may move.
    bar: Option<ProgressBar>,
    columns: fn() -> Option<usize>,
    seen: Seen,
    over: bool,
}

/// What was shown already.
#[derive(Default)]
struct Seen {
    environment: bool,
    switched_off: Vec<(String, String)>,
    /// Stage of the last progress, and the runs that were done when it began.
    stage: Option<(String, u32)>,
    /// Tenths of the runs, and seconds, at the last plain line.
    tenth: u32,
    at_s: f64,
}

impl Terminal {
    /// Shows a scan on standard error. `moving` only if that is a terminal and not a log.
    pub(crate) fn new(look: Look, moving: bool, version: &str, interrupt: Arc<AtomicU8>) -> Self {
        let target = moving.then(ProgressDrawTarget::stderr);
        Self::with(
            look,
            target,
            Box::new(std::io::stderr()),
            columns,
            version,
            interrupt,
        )
    }

    fn with(
        look: Look,
        target: Option<ProgressDrawTarget>,
        out: Box<dyn Write + Send>,
        columns: fn() -> Option<usize>,
        version: &str,
        interrupt: Arc<AtomicU8>,
    ) -> Self {
        // A dumb terminal has no moving block: its target hides itself, and lines are better than silence.
        let bar = target.filter(|target| !target.is_hidden()).map(|target| {
            let bar = ProgressBar::with_draw_target(None, target);
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            look,
            version: version.to_owned(),
            interrupt,
            out,
            bar,
            columns,
            seen: Seen::default(),
            over: false,
        }
    }

    /// Writes lines above the block.
    fn say(&mut self, lines: &[String]) {
        let out = &mut self.out;
        let mut write = || {
            for line in lines {
                if writeln!(out, "{line}").is_err() {
                    return;
                }
            }
            let _ = out.flush();
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the block away for good.
    fn end(&mut self) {
        self.over = true;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// One plain line, if it is time for one.
    fn line(&mut self, progress: &Progress) {
        let tenth = progress.total.filter(|t| *t > 0).map_or(0, |total| {
            u32::try_from(u64::from(progress.done) * 10 / u64::from(total)).unwrap_or(10)
        });
        if tenth <= self.seen.tenth && progress.seconds - self.seen.at_s < LINE_EVERY_S {
            return;
        }
        self.seen.tenth = tenth;
        self.seen.at_s = progress.seconds;
        let total = progress
            .total
            .map(|total| format!("/{total}"))
            .unwrap_or_default();
        let flaky = progress
            .failing
            .iter()
            .filter(|(_, failed, runs)| failed < runs)
            .count();
        let failing = progress.failing.len() - flaky;
        let dot = self.look.dot();
        let line = format!(
            "{} {}{total} {dot} {failing} failing {dot} {flaky} flaky {dot} {}",
            printable(&progress.stage),
            progress.done,
            clock(progress.seconds)
        );
        self.say(&[line]);
    }
}

impl EventSink for Terminal {
    fn event(&mut self, event: &Event) {
        if self.over {
            return;
        }
        let look = self.look;
        match &event.kind {
            EventKind::ScanStarted { project } => {
                let mut lines = vec![header::started(&self.version, &event.scan_id, &look)];
                // A scan that was stopped goes on with the numbers it had.
                if event.seq > 1 {
                    lines[0].push_str("  (resumed)");
                }
                lines.push(String::new());
                lines.extend(header::project(project, &look));
                self.say(&lines);
            }
            EventKind::EnvironmentFound { environment } if !self.seen.environment => {
                self.seen.environment = true;
                self.seen.switched_off.clone_from(&environment.switched_off);
                self.say(&header::environment(environment, &look));
            }
            EventKind::EnvironmentFound { environment } => {
                // Told again by the first process: only what is new.
                if environment.switched_off != self.seen.switched_off {
                    self.seen.switched_off.clone_from(&environment.switched_off);
                    self.say(&header::switched_off(&environment.switched_off, &look));
                }
            }
            EventKind::CollectionFinished { tests, seconds } => {
                self.say(&header::collected(*tests, *seconds, &look))
            }
            EventKind::PlanMade { plan } => self.say(&header::plan(plan, &look)),
            EventKind::StageFinished {
                stage,
                seconds: took,
                detail,
            } => {
                // On a terminal the block has shown it, and the result comes.
                if self.bar.is_none() {
                    self.say(&[format!(
                        "{} finished in {}: {}",
                        printable(stage),
                        seconds(*took),
                        printable(detail)
                    )]);
                }
            }
            EventKind::ProblemFound { problem } => match problem.severity {
                // In a long scan a weak result should be known early; notes can wait for the result.
                Severity::Warning | Severity::Error => {
                    let word = if problem.severity == Severity::Error {
                        "error"
                    } else {
                        "warning"
                    };
                    self.say(&[format!(
                        "{}: {}",
                        look.styles.flaky.style(word),
                        printable(&problem.text)
                    )]);
                }
                Severity::Note => {}
            },
            EventKind::Refused { .. } | EventKind::ScanFinished { .. } => self.end(),
            EventKind::StartReady { .. }
            | EventKind::RunStarted { .. }
            | EventKind::TestOutcome { .. }
            | EventKind::RunFinished { .. }
            | EventKind::StageStarted { .. } => {}
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if self.over {
            return;
        }
        if self
            .seen
            .stage
            .as_ref()
            .is_none_or(|(stage, _)| *stage != progress.stage)
        {
            self.seen.stage = Some((progress.stage.clone(), progress.done));
            self.seen.tenth = 0;
            self.seen.at_s = 0.0;
        }
        let base = self.seen.stage.as_ref().map_or(0, |(_, done)| *done);
        match &self.bar {
            Some(bar) => {
                // One column stays free: terminals differ in what they do after the last one.
                let columns = (self.columns)()
                    .unwrap_or(self.look.width)
                    .min(self.look.columns())
                    .saturating_sub(1);
                let stopping = self.interrupt.load(Ordering::Relaxed) > 0;
                bar.set_message(block(progress, base, stopping, columns, &self.look).join("\n"));
                bar.tick();
            }
            None => self.line(progress),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

/// Columns of the terminal on standard error as they are now.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests;
