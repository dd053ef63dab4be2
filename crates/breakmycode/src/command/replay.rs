//! `breakmycode replay SCAN RUN [NODEID]`: one recorded run again, compared test by test.

use bmc_engine::workflow;
use bmc_types::Outcome;

use super::{Surface, answer};
use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::settings;
use crate::text::printable;

/// Exit codes: 1 if a test failed now, 0 if none did, 3 if the run could not be made, 130 if it was interrupted.
pub(crate) fn replay(args: &ReplayArgs, surface: &Surface) -> Result<u8, Failure> {
    let setting = settings::setting(&surface.global, surface.interrupt.clone())?;
    let outcome = workflow::replay(&args.scan, args.run, args.nodeid.as_deref(), &setting)?;
    let look = surface.stdout_look();
    let styles = &look.styles;
    answer(|out| {
        writeln!(
            out,
            "Run {} of {}: {}",
            outcome.run, outcome.scan_id, outcome.conditions
        )?;
        if outcome.changed {
            writeln!(
                out,
                "  note: the code is not what was scanned, so another outcome proves nothing"
            )?;
        }
        if let Some(trouble) = &outcome.trouble {
            writeln!(out, "error: the run could not be made")?;
            for line in trouble
                .lines()
                .rev()
                .take(15)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
            {
                writeln!(out, "  {}", printable(line))?;
            }
            return Ok(());
        }
        let same = outcome.tests.iter().filter(|t| t.now == t.recorded).count();
        for test in &outcome.tests {
            let style = if test.now.is_failure() {
                styles.fail
            } else {
                styles.flaky
            };
            let verdict = if test.now == test.recorded {
                "as recorded"
            } else {
                "recorded"
            };
            let recorded = if test.now == test.recorded {
                String::new()
            } else {
                format!(" {}", words(test.recorded))
            };
            writeln!(
                out,
                "  {}  {}   ({verdict}{recorded})",
                style.style(words(test.now)),
                printable(&test.id.to_string())
            )?;
            if let Some(failure) = &test.failure {
                let line = failure.message.lines().next().unwrap_or("");
                writeln!(
                    out,
                    "      E   {}: {}",
                    printable(&failure.kind),
                    printable(line)
                )?;
            }
        }
        let interrupted = if outcome.interrupted {
            ", interrupted"
        } else {
            ""
        };
        writeln!(
            out,
            "{} tests ran{interrupted}; {same} of {} failures or differences are as recorded",
            outcome.ran,
            outcome.tests.len()
        )
    })?;
    Ok(if outcome.trouble.is_some() {
        3
    } else if outcome.interrupted {
        130
    } else {
        u8::from(outcome.tests.iter().any(|t| t.now.is_failure()))
    })
}

fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::TimedOut => "timed out",
        Outcome::XpassedStrict => "xpassed (strict)",
        Outcome::NotRun => "not run",
        Outcome::Missing => "not collected",
        other => other.as_str(),
    }
}
