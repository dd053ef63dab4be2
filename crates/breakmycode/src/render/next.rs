//! The commands worth typing next. Each can be pasted as it is, from any folder.

use std::io::{self, Write};

use bmc_types::{ScanReport, ScanStatus, TestClass, TestReport};

use super::header::rate_words;
use super::proof;
use crate::style::Look;
use crate::text::{self, shell_word};

/// Commands shorter than this are aligned with what they do; longer ones have it below them.
const ALIGNED: usize = 64;

/// Writes the commands that fit the result.
pub(super) fn commands(report: &ScanReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let list = choose(report);
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "Next:")?;
    let column = list
        .iter()
        .map(|(c, _)| text::width(c))
        .filter(|w| *w <= ALIGNED)
        .max()
        .unwrap_or(0);
    for (command, what) in &list {
        let styled = look.styles.path.style(text::pad(command, column));
        let what_styled = look.styles.dim.style(what);
        if text::width(command) <= column && 2 + column + 3 + text::width(what) <= look.columns() {
            writeln!(out, "  {styled}   {what_styled}")?;
        } else {
            writeln!(out, "  {}", look.styles.path.style(command))?;
            writeln!(out, "      {what_styled}")?;
        }
    }
    Ok(())
}

fn choose(report: &ScanReport) -> Vec<(String, String)> {
    let scan = text::printable(&report.scan_id);
    let mut list = Vec::new();
    let has = |class: TestClass| report.tests.iter().any(|t| t.class == class);
    match report.status {
        ScanStatus::NoResult => {
            if let Some(advice) = report.advice.first() {
                list.push((
                    format!("breakmycode help {}", text::printable(&advice.code)),
                    "what this error means".to_owned(),
                ));
            }
            list.push((
                format!("breakmycode doctor{}", root_argument(report)),
                "what a scan depends on, and what is missing".to_owned(),
            ));
            return list;
        }
        ScanStatus::Interrupted | ScanStatus::Running => {
            list.push((
                format!("breakmycode resume {scan}"),
                "make the runs that are left".to_owned(),
            ));
        }
        ScanStatus::CodeChanged => {
            list.extend(
                again(report, "").map(|command| (command, "scan the code as it is now".to_owned())),
            );
        }
        ScanStatus::Complete => {}
    }
    let isolated = report
        .environment
        .as_ref()
        .is_some_and(|e| e.network == "loopback");
    if has(TestClass::IsolationDependent) && isolated {
        list.extend(again(report, " --network host").map(|command| {
            (
                command,
                "give the tests the network of this machine".to_owned(),
            )
        }));
    }
    let suspect = report
        .tests
        .iter()
        .find(|t| t.class == TestClass::Flaky && !t.failing_runs.is_empty())
        .or_else(|| {
            let judged = |t: &&TestReport| t.class != TestClass::IsolationDependent;
            report
                .tests
                .iter()
                .filter(judged)
                .find(|t| !t.failing_runs.is_empty())
        });
    if let Some(test) = suspect
        && let Some(run) = test.failing_runs.first()
    {
        // A node id that cannot be pasted is left out: the whole run is made again.
        let id = shell_word(&test.id)
            .map(|id| format!(" {id}"))
            .unwrap_or_default();
        list.push((
            format!("breakmycode replay {scan} {run}{id}"),
            format!("make run {run} again, under its conditions"),
        ));
    }
    if report.status == ScanStatus::Complete {
        let classes: Vec<&str> = [TestClass::Flaky, TestClass::Failing, TestClass::Unsure]
            .into_iter()
            .filter(|class| has(*class))
            .map(TestClass::as_str)
            .collect();
        if !classes.is_empty() {
            let options = format!(" --from {scan} --only {}", classes.join(","));
            list.extend(
                again(report, &options)
                    .map(|command| (command, "more runs of these tests only".to_owned())),
            );
        }
        if let Some((runs, rate)) = proof::more_runs(report) {
            let what = format!(
                "95 % sure to see a test that fails {} of the time",
                rate_words(rate)
            );
            list.extend(again(report, &format!(" --runs {runs}")).map(|command| (command, what)));
        }
    }
    list.push((
        format!("breakmycode show {scan} --tests"),
        "every test and its counts".to_owned(),
    ));
    list
}

/// The scan of the same project with other options, and the same arguments for pytest. `None` if one of those cannot be pasted.
fn again(report: &ScanReport, options: &str) -> Option<String> {
    let given = report
        .plan
        .as_ref()
        .map_or(&[][..], |plan| &plan.pytest_args);
    let arguments: Vec<String> = given.iter().map(|a| shell_word(a)).collect::<Option<_>>()?;
    let arguments = if arguments.is_empty() {
        String::new()
    } else {
        format!(" -- {}", arguments.join(" "))
    };
    let root = root_argument(report);
    Some(format!(
        "breakmycode{}{options}{arguments}",
        if root.is_empty() { " ." } else { &root }
    ))
}

/// The root as an argument; nothing if it cannot be pasted, and then the command is for the project's folder.
fn root_argument(report: &ScanReport) -> String {
    Some(&report.project.root)
        .filter(|root| root.starts_with('/'))
        .and_then(|root| shell_word(root))
        .map(|root| format!(" {root}"))
        .unwrap_or_default()
}
