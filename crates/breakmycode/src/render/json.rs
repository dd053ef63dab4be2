//! The report as one JSON document, `breakmycode.scan/1`. Complete: nothing is shortened or left out.

use std::borrow::Cow;
use std::io::{self, Write};

use bmc_types::ScanReport;

/// Writes the document and a newline.
///
/// # Errors
/// What the writer says.
pub(crate) fn json(report: &ScanReport, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &*finite(report)).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// The report with every number a number. JSON has none for infinity, and `null` where readers expect a number breaks them.
fn finite(report: &ScanReport) -> Cow<'_, ScanReport> {
    let good = |x: f64| x.is_finite();
    let good_option = |x: &Option<f64>| x.is_none_or(good);
    let tests_good = report.tests.iter().all(|t| {
        good_option(&t.rate)
            && good_option(&t.at_most)
            && good_option(&t.median_s)
            && good_option(&t.max_s)
            && t.ci95.is_none_or(|(low, high)| good(low) && good(high))
    });
    let powers = || report.power.iter().chain(&report.start_power);
    let timeout_good = report
        .plan
        .as_ref()
        .is_none_or(|plan| good_option(&plan.test_timeout_s));
    if tests_good
        && timeout_good
        && good(report.seconds)
        && powers().all(|p| good(p.rate) && good(p.caught_with))
    {
        return Cow::Borrowed(report);
    }
    let mut report = report.clone();
    let mend = |x: &mut f64| {
        if !x.is_finite() {
            *x = 0.0;
        }
    };
    mend(&mut report.seconds);
    for power in report.power.iter_mut().chain(&mut report.start_power) {
        mend(&mut power.rate);
        mend(&mut power.caught_with);
    }
    if let Some(plan) = &mut report.plan {
        plan.test_timeout_s = plan.test_timeout_s.filter(|x| x.is_finite());
    }
    for test in &mut report.tests {
        for number in [
            &mut test.rate,
            &mut test.at_most,
            &mut test.median_s,
            &mut test.max_s,
        ] {
            *number = number.filter(|x| x.is_finite());
        }
        test.ci95 = test
            .ci95
            .filter(|(low, high)| low.is_finite() && high.is_finite());
    }
    Cow::Owned(report)
}
