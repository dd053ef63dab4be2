//! `breakmycode [scan] PATH` and `breakmycode resume SCAN`.

use std::io::{self, IsTerminal};

use bmc_engine::workflow::{self, EventSink};
use bmc_types::ScanReport;

use super::{Surface, answer};
use crate::args::{Format, OutputArgs, ResumeArgs, ScanArgs};
use crate::failure::Failure;
use crate::live::{Jsonl, Terminal};
use crate::render;
use crate::settings;

/// Scans.
pub(crate) fn scan(args: &ScanArgs, surface: &Surface) -> Result<u8, Failure> {
    let setting = settings::setting(&surface.global, surface.interrupt.clone())?;
    let request = settings::scan_request(args, &setting)?;
    let mut sink = sink(&args.output, surface);
    let report = workflow::scan(&request, &setting, &mut *sink)?;
    drop(sink);
    finish(&report, &args.output, surface)
}

/// Goes on with a scan.
pub(crate) fn resume(args: &ResumeArgs, surface: &Surface) -> Result<u8, Failure> {
    let setting = settings::setting(&surface.global, surface.interrupt.clone())?;
    let mut sink = sink(&args.output, surface);
    let report = workflow::resume(&args.scan, &setting, &mut *sink)?;
    drop(sink);
    finish(&report, &args.output, surface)
}

fn sink(output: &OutputArgs, surface: &Surface) -> Box<dyn EventSink> {
    let ci = std::env::var_os("CI").is_some_and(|v| !v.is_empty() && v != "false" && v != "0");
    match output.format {
        Format::Jsonl => Box::new(Jsonl::new(io::stdout())),
        Format::Text | Format::Json | Format::Junit => {
            let moving = io::stderr().is_terminal() && !ci;
            Box::new(Terminal::new(
                surface.stderr_look(),
                moving,
                env!("CARGO_PKG_VERSION"),
                surface.interrupt.clone(),
            ))
        }
    }
}

fn finish(report: &ScanReport, output: &OutputArgs, surface: &Surface) -> Result<u8, Failure> {
    let look = surface.stdout_look();
    answer(|out| match output.format {
        Format::Text => render::terminal::result(report, &look, out),
        Format::Json => render::json::json(report, out),
        Format::Junit => render::junit::junit(report, out),
        // The events have been written as they happened.
        Format::Jsonl => Ok(()),
    })?;
    let code = workflow::exit_code(report, settings::gate(output));
    // A scan without a result or without an end is never a success, whatever gates.
    Ok(u8::try_from(code).unwrap_or(70))
}
