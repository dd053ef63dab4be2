//! `breakmycode list`: the scans in the trace, newest first.

use super::{Surface, answer, trace};
use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::render::terminal::{self, ListRow};

/// Lists.
pub(crate) fn list(args: &ListArgs, surface: &Surface) -> Result<u8, Failure> {
    let rows = trace(surface)?.list(args.limit)?;
    let look = surface.stdout_look();
    let rows: Vec<ListRow> = rows
        .into_iter()
        .enumerate()
        .map(|(place, row)| ListRow {
            id: row.id.to_string(),
            when: row.started_at,
            status: row.status,
            runs: row.runs,
            failing: row.report.as_ref().map(|r| r.totals.consistent_failures),
            flaky: row.report.as_ref().map(|r| r.totals.flaky),
            root: row.root.to_string_lossy().into_owned(),
            latest: place == 0,
        })
        .collect();
    answer(|out| match args.format {
        Format::Json => {
            let values: Vec<_> = rows
                .iter()
                .map(|r| {
                    serde_json::json!({"scan_id": r.id, "started_at": r.when, "status": r.status.as_str(), "runs": r.runs,
                        "failing": r.failing, "flaky": r.flaky, "root": r.root})
                })
                .collect();
            serde_json::to_writer_pretty(&mut *out, &values)?;
            out.write_all(b"\n")
        }
        Format::Text | Format::Jsonl | Format::Junit => terminal::list(&rows, &look, out),
    })?;
    Ok(0)
}
