//! The ways of repeating a suite that are compared, as shell scripts that can be typed again. Measures nothing.
//!
//! Places are variables of the scripts, so that what was measured can be published as it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::Sample;
use crate::process::{self, quoted};

const LOOP_PLUGIN: &str = include_str!("loop_time.py");

/// What all scripts are made of.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The suite's interpreter.
    pub(crate) python: PathBuf,
    /// breakmycode.
    pub(crate) program: PathBuf,
    /// Arguments for pytest.
    pub(crate) arguments: Vec<String>,
    /// Where the benchmark may write.
    pub(crate) folder: PathBuf,
    /// How many runs.
    pub(crate) runs: u32,
    /// How many at a time.
    pub(crate) jobs: u32,
}

impl Facts {
    /// The variables that the scripts use.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 3] {
        [
            ("BENCH_PYTHON", &self.python),
            ("BENCH_PROGRAM", &self.program),
            ("BENCH_FOLDER", &self.folder),
        ]
    }
}

/// One way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contender {
    /// Its name in the table.
    pub(crate) name: String,
    /// What is measured, a shell script.
    pub(crate) script: String,
}

/// Where a plain run leaves the time of its test loop.
const LOOP: &str = "loop_time.txt";
/// Where our report goes.
const REPORT: &str = "report.json";

/// Name of the row that the others are compared with.
pub(crate) const LOOP_AT_A_TIME: &str = "loop, several at a time";
/// Name of our row.
pub(crate) const OURS: &str = "breakmycode";

/// The ways that this interpreter has the plugins for, ours last.
pub(crate) fn available(facts: &Facts) -> Vec<Contender> {
    let once = pytest(facts, "");
    let (runs, jobs) = (facts.runs, facts.jobs);
    let row = |name: &str, script: String| Contender {
        name: name.to_owned(),
        script,
    };
    let mut rows = vec![
        row(
            "loop",
            format!(
                "failed=0; for run in $(seq {runs}); do {once} || failed=1; done; exit $failed"
            ),
        ),
        row(
            LOOP_AT_A_TIME,
            format!("seq {runs} | xargs -P {jobs} -I RUN {once}"),
        ),
    ];
    let has = |module: &str| has_module(&facts.python, module);
    if has("pytest_flakefinder") {
        let flakes = format!(" --flake-finder --flake-runs={runs}");
        rows.push(row("flakefinder", pytest(facts, &flakes)));
        if has("xdist") {
            rows.push(row(
                "xdist and flakefinder",
                pytest(facts, &format!("{flakes} -n {jobs}")),
            ));
        }
    }
    rows.push(row(
        OURS,
        ours(facts, runs, &format!(" > \"$BENCH_FOLDER\"/{REPORT}")),
    ));
    rows
}

/// Fills our bytecode cache.
pub(crate) fn warm_up(facts: &Facts) -> String {
    ours(facts, 1, "")
}

/// A plain run that also writes what its test loop took.
pub(crate) fn floor(facts: &Facts) -> Result<String, String> {
    let plugin = facts.folder.join("loop_time.py");
    std::fs::write(&plugin, LOOP_PLUGIN)
        .map_err(|error| format!("write {}: {error}", plugin.display()))?;
    Ok(format!(
        "export BENCH_LOOP_FILE=\"$BENCH_FOLDER\"/{LOOP} PYTHONPATH=\"$BENCH_FOLDER${{PYTHONPATH:+:$PYTHONPATH}}\"; {}",
        pytest(facts, " -p loop_time")
    ))
}

/// Reads what the last plain run wrote.
pub(crate) fn read_floor(facts: &Facts, exit: i32) -> Result<Sample, String> {
    let file = facts.folder.join(LOOP);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        format!("measure the test loop, a plain run of the suite ended with exit code {exit} before it: {error}")
    })?;
    // Left in place it could be taken for that of a later run that wrote none.
    std::fs::remove_file(&file).map_err(|error| format!("remove {}: {error}", file.display()))?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(wall)), Some(Ok(processor))) => Ok(Sample {
            wall,
            processor,
            exit,
        }),
        _ => Err(format!("read the time of the test loop: {text:?}")),
    }
}

/// What our last scan says about itself: a fast scan that did something else would be no win.
pub(crate) fn said(facts: &Facts) -> Result<String, String> {
    let file = facts.folder.join(REPORT);
    let text = std::fs::read_to_string(&file)
        .map_err(|error| format!("read {}: {error}", file.display()))?;
    let report: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("read the report of breakmycode: {error}"))?;
    let totals = &report["totals"];
    Ok(format!(
        "status {}, isolation {}, engine {}, {} runs of {} tests, {} fresh starts, {} confirming processes; failing {}, flaky {}, clean {}, other {}",
        word(&report["status"]),
        word(&report["environment"]["isolation"]),
        word(&report["plan"]["engine"]),
        totals["runs"],
        totals["tests"],
        totals["fresh_starts"],
        totals["confirm_runs"],
        totals["consistent_failures"],
        totals["flaky"],
        totals["clean"],
        ["isolation_dependent", "unstable", "unsure", "not_judged"]
            .iter()
            .filter_map(|key| totals[key].as_u64())
            .sum::<u64>()
    ))
}

fn word(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or("none")
}

fn pytest(facts: &Facts, more: &str) -> String {
    let arguments: String = facts
        .arguments
        .iter()
        .map(|word| format!(" {}", quoted(word)))
        .collect();
    format!("\"$BENCH_PYTHON\" -m pytest -q -p no:cacheprovider{more}{arguments}")
}

fn ours(facts: &Facts, runs: u32, to: &str) -> String {
    let arguments: String = facts
        .arguments
        .iter()
        .map(|word| format!(" {}", quoted(word)))
        .collect();
    let arguments = if arguments.is_empty() {
        arguments
    } else {
        format!(" --{arguments}")
    };
    format!(
        "\"$BENCH_PROGRAM\" . --runs {runs} --jobs {} --python \"$BENCH_PYTHON\" --db \"$BENCH_FOLDER\"/trace.db --format json{arguments}{to}",
        facts.jobs
    )
}

fn has_module(python: &Path, module: &str) -> bool {
    let question = format!(
        "import importlib.util, sys; sys.exit(importlib.util.find_spec({module:?}) is None)"
    );
    process::output(Command::new(python).args(["-c", &question])).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            python: "/x/no such/python".into(),
            program: "/x/breakmycode".into(),
            arguments: vec!["-k".into(), "a or b".into()],
            folder: "/x/bench".into(),
            runs: 7,
            jobs: 2,
        }
    }

    #[test]
    fn scripts_can_be_typed_and_plugins_that_are_missing_are_left_out() {
        let rows = available(&facts());
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["loop", LOOP_AT_A_TIME, OURS]);
        let pytest = "\"$BENCH_PYTHON\" -m pytest -q -p no:cacheprovider -k 'a or b'";
        assert_eq!(
            rows[1].script,
            format!("seq 7 | xargs -P 2 -I RUN {pytest}")
        );
        assert_eq!(
            rows[2].script,
            "\"$BENCH_PROGRAM\" . --runs 7 --jobs 2 --python \"$BENCH_PYTHON\" --db \"$BENCH_FOLDER\"/trace.db --format json -- -k 'a or b' \
             > \"$BENCH_FOLDER\"/report.json"
        );
        assert_eq!(
            facts().variables()[0],
            ("BENCH_PYTHON", Path::new("/x/no such/python"))
        );
    }

    #[test]
    fn a_plain_run_that_never_came_to_its_tests_is_an_error() {
        assert!(read_floor(&facts(), 2).unwrap_err().contains("exit code 2"));
    }
}
