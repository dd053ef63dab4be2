//! What ends a command early: a kind that decides the exit code, a cause chain, and hints that say what to type next.

use std::error::Error;
use std::fmt::Write as _;
use std::io::ErrorKind;

use bmc_engine::store::StoreError;
use bmc_engine::workflow::ScanError;
use bmc_types::Advice;

/// Kinds of failures. One exhaustive match gives the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What was typed or configured cannot be done.
    Usage,
    /// A fault of ours.
    Internal,
}

/// A command that cannot go on.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    code: Option<String>,
    headline: String,
    why: Vec<String>,
    help: Vec<String>,
}

impl Failure {
    pub(crate) fn usage(headline: impl Into<String>, help: &[&str]) -> Self {
        Self {
            kind: Kind::Usage,
            code: None,
            headline: headline.into(),
            why: Vec::new(),
            help: help.iter().map(|h| (*h).to_owned()).collect(),
        }
    }

    pub(crate) fn internal(doing: &str, error: &dyn Error) -> Self {
        Self {
            kind: Kind::Internal,
            code: None,
            headline: format!("cannot {doing}"),
            why: chain(error, true),
            help: Vec::new(),
        }
    }

    /// The exit code; see docs/exit-codes.md.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Usage => 2,
            Kind::Internal => 70,
        }
    }

    /// The four parts, for standard error.
    pub(crate) fn text(&self) -> String {
        let mut text = match &self.code {
            Some(code) => format!("error[BMC-{code}]: {}\n", self.headline),
            None => format!("error: {}\n", self.headline),
        };
        for line in &self.why {
            let _ = writeln!(text, "  why: {line}");
        }
        for line in &self.help {
            let _ = writeln!(text, "  help: {line}");
        }
        text
    }
}

fn chain(error: &dyn Error, itself: bool) -> Vec<String> {
    let mut causes = Vec::new();
    let mut next = if itself { Some(error) } else { error.source() };
    while let Some(error) = next {
        causes.push(error.to_string());
        next = error.source();
    }
    causes
}

impl From<&Advice> for Failure {
    fn from(advice: &Advice) -> Self {
        let mut why = advice.places.clone();
        why.extend(advice.why.iter().cloned());
        Self {
            kind: Kind::Usage,
            code: Some(advice.code.clone()),
            headline: advice.headline.clone(),
            why,
            help: advice.help.clone(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, help): (&str, Vec<String>) = match &error {
            StoreError::NoSuchScan { .. } => (
                "E060",
                vec!["breakmycode list   to see the scans there are".to_owned()],
            ),
            StoreError::Ambiguous { .. } => ("E060", vec!["type more of the name".to_owned()]),
            StoreError::Newer { .. } => (
                "E062",
                vec!["update breakmycode, or use another database: --db FILE".to_owned()],
            ),
            StoreError::Damaged { .. } => (
                "E063",
                vec!["breakmycode list   to see the other scans".to_owned()],
            ),
            StoreError::Folder { .. } | StoreError::Sqlite { .. } => (
                "E063",
                vec![
                    "use another place: --db FILE".to_owned(),
                    "df -h   shows whether the disk is full".to_owned(),
                ],
            ),
        };
        Self {
            kind: Kind::Usage,
            code: Some(code.to_owned()),
            headline: format!("cannot {error}"),
            why: chain(&error, false),
            help,
        }
    }
}

impl From<ScanError> for Failure {
    fn from(error: ScanError) -> Self {
        let usage = |code: &str, help: &[&str]| Self {
            kind: Kind::Usage,
            code: Some(code.to_owned()),
            headline: format!("cannot {error}"),
            why: chain(&error, false),
            help: help.iter().map(|h| (*h).to_owned()).collect(),
        };
        match &error {
            ScanError::Store(_) => {}
            ScanError::Path(advice) => return Self::from(&**advice),
            ScanError::Io { source, .. } => {
                let elsewhere = "XDG_CACHE_HOME=DIR   puts the cache elsewhere";
                let full = "df -h   shows whether the disk is full";
                let help = match source.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => vec![full, elsewhere],
                    _ => vec![elsewhere],
                };
                return usage("E064", &help);
            }
            ScanError::Request { .. } => {
                return usage("E061", &["breakmycode .   starts a new scan"]);
            }
            ScanError::NoSuchRun { .. } => {
                return usage(
                    "E060",
                    &["breakmycode show SCAN --runs   to see the runs there are"],
                );
            }
            ScanError::Complete { scan } => {
                return usage(
                    "E061",
                    &[
                        &format!("breakmycode show {scan}   prints its result"),
                        "breakmycode .   starts a new scan",
                    ],
                );
            }
            ScanError::Changed { .. } => {
                return usage(
                    "E061",
                    &[
                        "git stash   to go on with the old code, or",
                        "breakmycode .   for a new scan",
                    ],
                );
            }
        }
        match error {
            ScanError::Store(error) => error.into(),
            other => Self::internal("scan", &other),
        }
    }
}
