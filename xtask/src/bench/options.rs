//! What a benchmark is asked to do, read from the command line. Starts nothing.

use std::path::PathBuf;

const USAGE: &str = "\
--suite DIR --python PY [--args 'ARGS'] for each suite; besides: --runs N (20), --rounds N (3), --jobs N (2), --program FILE, \
--overhead (with --python PY)";

/// One suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suite {
    /// The project.
    pub(crate) directory: PathBuf,
    /// An interpreter with the project's dependencies and pytest.
    pub(crate) python: PathBuf,
    /// Arguments for pytest, split at spaces.
    pub(crate) arguments: Vec<String>,
}

impl Suite {
    /// A short name.
    pub(crate) fn name(&self) -> String {
        self.directory.file_name().map_or_else(
            || self.directory.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    }
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// The suites.
    pub(crate) suites: Vec<Suite>,
    /// Runs of each contender.
    pub(crate) runs: u32,
    /// How often everything is measured.
    pub(crate) rounds: u32,
    /// Runs at a time.
    pub(crate) jobs: u32,
    /// The program to measure; built if absent.
    pub(crate) program: Option<PathBuf>,
    /// Measure the plugin.
    pub(crate) overhead: bool,
    /// The interpreter that was named last.
    pub(crate) python: Option<PathBuf>,
}

impl Options {
    /// Reads the command line. `--python` and `--args` belong to the suite before them.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            suites: Vec::new(),
            runs: 20,
            rounds: 3,
            jobs: 2,
            program: None,
            overhead: false,
            python: None,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word == "--overhead" {
                options.overhead = true;
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| format!("read `{word}` without a value; the options are {USAGE}"))?;
            match word.as_str() {
                "--suite" => options.suites.push(Suite {
                    directory: value.into(),
                    python: PathBuf::new(),
                    arguments: Vec::new(),
                }),
                "--python" => {
                    options.python = Some(value.into());
                    if let Some(suite) = options.suites.last_mut() {
                        suite.python = value.into();
                    }
                }
                "--args" => match options.suites.last_mut() {
                    Some(suite) => {
                        suite.arguments = value.split_whitespace().map(str::to_owned).collect()
                    }
                    None => return Err("read `--args` before any `--suite`".to_owned()),
                },
                "--runs" => options.runs = number(word, value)?,
                "--rounds" => options.rounds = number(word, value)?,
                "--jobs" => options.jobs = number(word, value)?,
                "--program" => options.program = Some(value.into()),
                other => return Err(format!("read `{other}`; the options are {USAGE}")),
            }
        }
        if let Some(suite) = options
            .suites
            .iter()
            .find(|suite| suite.python.as_os_str().is_empty())
        {
            return Err(format!(
                "measure {}: name its interpreter, --python PY",
                suite.directory.display()
            ));
        }
        if options.suites.is_empty() && !options.overhead {
            return Err(format!("measure nothing; the options are {USAGE}"));
        }
        Ok(options)
    }
}

fn number(option: &str, value: &str) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("read `{option} {value}`: a number from 1 on is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Options, String> {
        Options::parse(
            &line
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn each_suite_has_its_interpreter_and_arguments() {
        let options = parse(&[
            "--runs",
            "5",
            "--suite",
            "a/click",
            "--python",
            "p1",
            "--args",
            "-k x tests",
            "--suite",
            "b",
            "--python",
            "p2",
            "--rounds",
            "1",
        ])
        .unwrap();
        assert_eq!(
            (options.runs, options.rounds, options.jobs, options.overhead),
            (5, 1, 2, false)
        );
        let names: Vec<String> = options.suites.iter().map(Suite::name).collect();
        assert_eq!(names, ["click", "b"]);
        assert_eq!(options.suites[0].arguments, ["-k", "x", "tests"]);
        assert_eq!(options.suites[1].python, PathBuf::from("p2"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            &[][..],
            &["--suite", "a"],
            &["--suite"],
            &["--args", "x"],
            &["--runs", "0", "--overhead"],
            &["--fast", "1"],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
        assert!(parse(&["--overhead", "--python", "p"]).unwrap().overhead);
    }
}
