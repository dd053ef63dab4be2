//! `breakmycode show SCAN`: a scan from the trace, printed as the live run printed it.

use bmc_engine::history::RunRecord;
use bmc_engine::workflow::assemble;
use bmc_types::Outcome;

use super::{Surface, answer, trace};
use crate::args::{Format, ShowArgs};
use crate::failure::Failure;
use crate::render;
use crate::render::terminal::RunRow;

/// Shows.
pub(crate) fn show(args: &ShowArgs, surface: &Surface) -> Result<u8, Failure> {
    let store = trace(surface)?;
    let id = store.resolve(&args.scan)?;
    let look = surface.stdout_look();
    if args.events || args.format == Format::Jsonl {
        let events = store.events(&id)?;
        answer(|out| {
            for event in &events {
                serde_json::to_writer(&mut *out, event)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        return Ok(0);
    }
    if args.runs {
        let stored = store.load(&id)?;
        let rows: Vec<RunRow> = stored.history.runs().iter().map(run_row).collect();
        answer(|out| match args.format {
            Format::Json => {
                let conditions: Vec<_> = stored.history.runs().iter().map(run_json).collect();
                serde_json::to_writer_pretty(&mut *out, &conditions)?;
                out.write_all(b"\n")
            }
            _ => render::terminal::runs(&rows, &look, out),
        })?;
        return Ok(0);
    }
    // A finished scan has its report; one whose process died is judged from the runs that are there.
    let row = store.row(&id)?;
    let report = match row.report.clone() {
        Some(report) => report,
        None => {
            let stored = store.load(&id)?;
            assemble(stored.row.into(), &stored.history)
        }
    };
    let events = store.events(&id)?;
    answer(|out| match args.format {
        Format::Json => render::json::json(&report, out),
        Format::Junit => render::junit::junit(&report, out),
        Format::Text | Format::Jsonl if args.tests => render::terminal::tests(&report, &look, out),
        Format::Text | Format::Jsonl => render::terminal::show(&report, &events, &look, out),
    })?;
    Ok(0)
}

fn run_row(run: &RunRecord) -> RunRow {
    let happened = |code: &&u8| {
        !matches!(
            Outcome::from_code(**code),
            Some(Outcome::Missing | Outcome::NotRun) | None
        )
    };
    RunRow {
        run: run.run,
        purpose: run.conditions.purpose,
        engine: run.conditions.engine,
        start: run.conditions.start,
        hash_seed: run.conditions.hash_seed,
        seconds: run.seconds,
        outcomes: run.outcomes.iter().filter(happened).count() as u64,
        failed: run.failures.len() as u64,
        processes: run.processes,
    }
}

fn run_json(run: &RunRecord) -> serde_json::Value {
    let row = run_row(run);
    serde_json::json!({
        "run": run.run, "conditions": run.conditions, "seconds": run.seconds, "outcomes": row.outcomes, "failed": row.failed,
        "processes": run.processes, "session_error": run.session_error,
    })
}
