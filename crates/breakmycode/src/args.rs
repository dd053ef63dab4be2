//! What can be typed: plain structs, one for each group of options. No decisions here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// Runs a pytest suite many times and says which tests are flaky, which fail, and how sure that is
#[derive(Debug, Parser)]
#[command(
    name = "breakmycode",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Without a sub-command, PATH is scanned: `breakmycode .` is `breakmycode scan .`\nExit codes: 0 clean, 1 fails every time, 2 usage, 3 no trustworthy result, 4 no tests, 5 flaky, 70 our bug, 130 interrupted"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) scan: ScanArgs,

    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

impl Cli {
    /// Reads the arguments. Options of a scan in front of another sub-command are an error, not a wish that is ignored.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        if let Some((sub, _)) = matches.subcommand() {
            let typed = |id: &&clap::Id| {
                let scan = command
                    .get_arguments()
                    .any(|a| a.get_id() == *id && !a.is_global_set());
                scan && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
            };
            if let Some(id) = matches.ids().find(typed) {
                let words = format!(
                    "{id:?} belongs to a scan and cannot be combined with the sub-command '{sub}'"
                );
                return Err(command.error(ErrorKind::ArgumentConflict, words));
            }
        }
        Self::from_arg_matches(&matches)
    }
}

/// Options that every command understands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,

    /// Use plain ASCII instead of symbols
    #[arg(long, global = true)]
    pub(crate) ascii: bool,

    /// Database with all scans [default: in the XDG data directory]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "BREAKMYCODE_DB",
        hide_env_values = true
    )]
    pub(crate) db: Option<PathBuf>,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the suite many times and judge every test
    Scan(Box<ScanArgs>),
    /// Go on with a scan that was stopped
    Resume(ResumeArgs),
    /// Print a scan again from the trace
    Show(ShowArgs),
    /// List the scans in the trace
    List(ListArgs),
    /// Make one recorded run again under its recorded conditions
    Replay(ReplayArgs),
    /// Show which interpreter and isolation would be used, and why
    Doctor(DoctorArgs),
    /// Print the JSON Schema of what --format json and jsonl write
    Schema(SchemaArgs),
    /// Explain an error code, such as E021
    Help(HelpArgs),
}

/// What to scan and how.
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// Project folder, or a folder or file in it
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,

    /// Number of runs
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, env = "BREAKMYCODE_RUNS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) runs: u32,

    /// Choose the number of runs so that a test failing at this rate is seen with this confidence
    #[arg(long, value_name = "rate=R,confidence=C", conflicts_with = "runs")]
    pub(crate) until: Option<String>,

    /// Begin no further run after this time, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,

    /// Make every run in a fresh process
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Fresh starts of the interpreter among the runs [default: 5 of 20]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) fresh_starts: Option<u32>,

    /// Runs at a time [default: number of cores]
    #[arg(long, short = 'j', value_name = "N", env = "BREAKMYCODE_JOBS", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) jobs: Option<u32>,

    /// Seed that all random choices come from [default: random, printed]
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<String>,

    /// Kill a test after so many seconds [default: 10 times its longest duration, at least 60; 300 if unknown]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) test_timeout: Option<f64>,

    /// Interpreter, environment folder or version to use
    #[arg(long, value_name = "PYTHON", env = "BREAKMYCODE_PYTHON")]
    pub(crate) python: Option<String>,

    /// Prefer the active environment over the project's own
    #[arg(long)]
    pub(crate) active: bool,

    /// Network that tests see
    #[arg(long, value_name = "NETWORK", default_value = "loopback")]
    pub(crate) network: NetworkChoice,

    /// Run on copies of the project instead of isolating it
    #[arg(long)]
    pub(crate) copy: bool,

    /// Pass this variable to tests although its name looks secret
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Limit the scan to these node ids; with --from to classes such as flaky,failing
    #[arg(long, value_name = "NODEID", num_args = 1..)]
    pub(crate) only: Vec<String>,

    /// Take the tests from an earlier scan; needs --only CLASSES
    #[arg(long, value_name = "SCAN", requires = "only")]
    pub(crate) from: Option<String>,

    /// Scan what can be collected when some files cannot
    #[arg(long)]
    pub(crate) continue_on_collection_errors: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Arguments for pytest, after --
    #[arg(last = true, value_name = "PYTEST_ARGS")]
    pub(crate) pytest_args: Vec<String>,
}

/// How a result is printed and what gates.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Form of the result on standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,

    /// What makes the exit code non-zero, separated by commas
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "failing,flaky",
        value_delimiter = ','
    )]
    pub(crate) fail_on: Vec<FailOn>,

    /// Exit with 0 whatever the tests did
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// Form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON event a line, as they happen
    Jsonl,
    /// JUnit XML with flakyFailure and rerunFailure
    Junit,
}

/// Classes that gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Tests that fail every time
    Failing,
    /// Tests that pass and fail
    Flaky,
    /// Nothing
    None,
}

/// Network of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkChoice {
    /// A loopback of its own for every run, nothing else
    Loopback,
    /// The network of this machine
    Host,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Name of the scan, a unique beginning of it, or latest
    #[arg(value_name = "SCAN")]
    pub(crate) scan: String,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the scan, a unique beginning of it, or latest
    #[arg(value_name = "SCAN", default_value = "latest")]
    pub(crate) scan: String,

    /// List every test
    #[arg(long, conflicts_with_all = ["runs", "events"])]
    pub(crate) tests: bool,

    /// List every run with its conditions
    #[arg(long, conflicts_with = "events")]
    pub(crate) runs: bool,

    /// Print the stored events, one JSON object a line
    #[arg(long)]
    pub(crate) events: bool,

    /// Form of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// How many scans, newest first
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,

    /// Form of the output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = list_format)]
    pub(crate) format: Format,
}

fn list_format(text: &str) -> Result<Format, String> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("expected text or json".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Name of the scan, a unique beginning of it, or latest
    #[arg(value_name = "SCAN")]
    pub(crate) scan: String,

    /// Number of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: u32,

    /// Run this test alone
    #[arg(value_name = "NODEID")]
    pub(crate) nodeid: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Project folder, or a folder or file in it
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,

    /// Interpreter, environment folder or version to use
    #[arg(long, value_name = "PYTHON", env = "BREAKMYCODE_PYTHON")]
    pub(crate) python: Option<String>,

    /// Prefer the active environment over the project's own
    #[arg(long)]
    pub(crate) active: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// What to describe
    #[arg(value_name = "WHAT", default_value = "scan")]
    pub(crate) what: SchemaChoice,
}

/// Documents with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaChoice {
    /// The document of --format json
    Scan,
    /// One line of --format jsonl
    Event,
}

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// An error code such as E021 or BMC-E021, or a sub-command; without one, the general help
    #[arg(value_name = "CODE")]
    pub(crate) topic: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::read(
            std::iter::once("breakmycode")
                .chain(words.iter().copied())
                .map(OsString::from),
        )
    }

    fn check(command: &clap::Command) {
        for argument in command.get_arguments() {
            let id = argument.get_id();
            if matches!(id.as_str(), "help" | "version") {
                continue;
            }
            let help = argument
                .get_help()
                .unwrap_or_else(|| panic!("{id} of {} has no help", command.get_name()))
                .to_string();
            assert!(
                !help.is_empty() && !help.ends_with('.'),
                "help of {id}: {help:?}"
            );
            if let Some(long) = argument.get_long() {
                assert!(
                    long.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                    "{long}"
                );
            }
        }
        for sub in command.get_subcommands() {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(
                !about.is_empty() && !about.ends_with('.'),
                "{}: {about:?}",
                sub.get_name()
            );
            check(sub);
        }
    }

    #[test]
    fn every_flag_is_spelled_out_and_has_a_help_line_without_full_stop() {
        Cli::command().debug_assert();
        check(&Cli::command());
    }

    #[test]
    fn a_path_alone_is_a_scan_and_arguments_after_two_dashes_go_to_pytest() {
        let cli = read(&[
            "some/dir", "--runs", "5", "--", "-k", "cart", "-m", "not slow",
        ])
        .unwrap();
        assert!(cli.command.is_none());
        assert_eq!(
            (cli.scan.path.to_str(), cli.scan.runs),
            (Some("some/dir"), 5)
        );
        assert_eq!(cli.scan.pytest_args, ["-k", "cart", "-m", "not slow"]);
    }

    #[test]
    fn global_options_stand_on_either_side_of_a_sub_command_and_scan_options_do_not() {
        for words in [
            ["--db", "x", "show", "latest"],
            ["show", "latest", "--db", "x"],
        ] {
            let cli = read(&words).unwrap();
            assert!(matches!(cli.command, Some(Command::Show(_))), "{words:?}");
            assert_eq!(cli.global.db, Some(PathBuf::from("x")));
        }
        let error = read(&["--runs", "5", "show"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
        assert!(matches!(
            read(&["scan", "--runs", "5", "."]).unwrap().command,
            Some(Command::Scan(_))
        ));
    }
}
