//! Rules of the repository that no compiler knows. Every check is a pure function of what was read; this file reads and prints.

mod edges;
mod errors;
mod fixtures;
mod migrations;
mod rust_code;
mod sources;
mod words;

use std::process::ExitCode;

use crate::repository::{Metadata, Repository, TextFile};

/// Something that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// File, and line where there is one: `path` or `path:12`.
    place: String,
    /// What is wrong and what to do.
    message: String,
    /// A notice is printed and does not fail.
    notice: bool,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            message: message.into(),
            notice: false,
        }
    }

    fn notice(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            notice: true,
            ..Self::new(place, message)
        }
    }
}

type Check = (&'static str, fn(&Metadata, &[TextFile]) -> Vec<Finding>);

const CHECKS: &[Check] = &[
    ("edges between crates", |metadata, _| {
        edges::inside(metadata)
    }),
    ("outside crates of the lowest floors", |metadata, _| {
        edges::outside(metadata)
    }),
    ("module docs", |_, files| sources::module_docs(files)),
    ("unsafe code", |_, files| sources::unsafe_code(files)),
    ("left-over macros and ignored tests", |_, files| {
        sources::left_over(files)
    }),
    ("length of files", |_, files| sources::long_files(files)),
    ("paths and hosts of one machine", |_, files| {
        words::machine_words(files)
    }),
    ("numbers of migrations", |_, files| {
        migrations::numbered(files)
    }),
    ("fixture projects", |_, files| fixtures::described(files)),
    ("error codes", |_, files| errors::explained(files)),
];

/// Runs all checks and prints what they find.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode, String> {
    let metadata = repository.metadata()?;
    let files = repository.text_files()?;
    let mut wrong = 0;
    for (name, check) in CHECKS {
        for finding in check(&metadata, &files) {
            let kind = if finding.notice { "notice" } else { "error" };
            println!("{kind}: {}: {} [{name}]", finding.place, finding.message);
            wrong += usize::from(!finding.notice);
        }
    }
    if wrong == 0 {
        println!(
            "tidy: {} checks over {} files, nothing wrong",
            CHECKS.len(),
            files.len()
        );
        Ok(ExitCode::SUCCESS)
    } else {
        println!("tidy: {wrong} things are wrong");
        Ok(ExitCode::FAILURE)
    }
}

#[cfg(test)]
fn file(path: &str, text: &str) -> TextFile {
    TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[cfg(test)]
fn places(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.place.as_str())
        .collect()
}
