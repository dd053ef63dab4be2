//! From what was typed and the environment to plain values, once, before any work starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use bmc_engine::lab::stats;
use bmc_engine::store::Store;
use bmc_engine::workflow::{Directories, Gate, ScanRequest, Setting};
use bmc_pytest::interpreter::Surroundings;
use bmc_sandbox::Launcher;
use bmc_types::TestClass;

use crate::args::{FailOn, GlobalArgs, NetworkChoice, OutputArgs, ScanArgs};
use crate::failure::Failure;

/// Resolves what surrounds every workflow. The only place that reads the environment.
pub(crate) fn setting(global: &GlobalArgs, interrupt: Arc<AtomicU8>) -> Result<Setting, Failure> {
    let vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let home = vars
        .get(&OsString::from("HOME"))
        .map(PathBuf::from)
        .filter(|h| h.is_absolute());
    let own_executable =
        std::env::current_exe().map_err(|e| Failure::internal("find its own executable", &e))?;
    let launcher = Launcher::new().map_err(|e| Failure::internal("prepare the isolation", &e))?;
    let directory = |variable: &str, below: &str| -> Result<PathBuf, Failure> {
        // The XDG base directory specification: a relative path in the variable is to be ignored.
        let given = vars
            .get(&OsString::from(variable))
            .map(PathBuf::from)
            .filter(|p| p.is_absolute());
        given
            .or_else(|| home.as_ref().map(|h| h.join(below)))
            .map(|p| p.join("breakmycode"))
            .ok_or_else(|| {
                Failure::usage(
                    format!("neither {variable} nor HOME says where files may be put"),
                    &[&format!("export {variable}=DIR")],
                )
            })
    };
    let database = match &global.db {
        Some(path) => {
            std::path::absolute(path).map_err(|e| Failure::internal("resolve --db", &e))?
        }
        None => directory("XDG_DATA_HOME", ".local/share")?.join("trace.db"),
    };
    let cache = directory("XDG_CACHE_HOME", ".cache")?;
    Ok(Setting {
        surroundings: Surroundings {
            vars,
            home,
            own_executable,
        },
        directories: Directories { database, cache },
        interrupt,
        launcher,
        now: || {
            jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
                .to_string()
        },
    })
}

/// Resolves what a scan is asked to do.
pub(crate) fn scan_request(args: &ScanArgs, setting: &Setting) -> Result<ScanRequest, Failure> {
    let runs = match &args.until {
        None => args.runs,
        Some(text) => runs_until(text)?,
    };
    let seed = match &args.seed {
        Some(text) => parse_seed(text)?,
        None => {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(|e| {
                Failure::usage(format!("cannot get random numbers: {e}"), &["--seed SEED"])
            })?;
            u64::from_le_bytes(bytes)
        }
    };
    if let Some(timeout) = args.test_timeout
        && !(timeout.is_finite() && timeout > 0.0 && timeout <= 1e7)
    {
        return Err(Failure::usage(
            format!("--test-timeout {timeout} is not a number of seconds above 0"),
            &["--test-timeout 30"],
        ));
    }
    let (only, from) = selection(args, setting)?;
    let jobs = args
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
    Ok(ScanRequest {
        path: std::path::absolute(&args.path)
            .map_err(|e| Failure::internal("resolve the path", &e))?,
        runs,
        fresh_starts: args.fresh_starts,
        fresh: args.fresh,
        jobs,
        seed,
        python: args.python.clone(),
        active: args.active,
        host_network: args.network == NetworkChoice::Host,
        copy: args.copy,
        test_timeout_s: args.test_timeout,
        duration_s: args.duration.as_deref().map(parse_duration).transpose()?,
        only,
        from,
        pytest_args: args.pytest_args.clone(),
        continue_on_collection_errors: args.continue_on_collection_errors,
        pass_env: args.pass_env.clone(),
    })
}

/// A request that only looks.
pub(crate) fn plain_request(
    path: &Path,
    python: Option<String>,
    active: bool,
) -> Result<ScanRequest, Failure> {
    Ok(ScanRequest {
        path: std::path::absolute(path).map_err(|e| Failure::internal("resolve the path", &e))?,
        runs: 1,
        fresh_starts: None,
        fresh: false,
        jobs: 1,
        seed: 0,
        python,
        active,
        host_network: false,
        copy: false,
        test_timeout_s: None,
        duration_s: None,
        only: Vec::new(),
        from: None,
        pytest_args: Vec::new(),
        continue_on_collection_errors: false,
        pass_env: Vec::new(),
    })
}

/// What gates.
pub(crate) fn gate(output: &OutputArgs) -> Gate {
    let has = |what: FailOn| {
        output.fail_on.contains(&what)
            && !output.exit_zero
            && !output.fail_on.contains(&FailOn::None)
    };
    Gate {
        failing: has(FailOn::Failing),
        flaky: has(FailOn::Flaky),
    }
}

/// The node ids that `--only` names, or the tests of those classes in the scan that `--from` names.
fn selection(args: &ScanArgs, setting: &Setting) -> Result<(Vec<String>, Option<String>), Failure> {
    let Some(from) = &args.from else {
        return Ok((args.only.clone(), None));
    };
    let mut classes = Vec::new();
    for word in args.only.iter().flat_map(|only| only.split(',')) {
        let class = TestClass::parse(&word.replace('-', "_")).ok_or_else(|| {
            Failure::usage(
                format!("{word:?} is not a class of tests"),
                &["--only flaky,failing   (also: unstable, unsure, isolation-dependent, clean, not-judged)"],
            )
        })?;
        classes.push(class);
    }
    let store = Store::open_read_only(&setting.directories.database)?;
    let id = store.resolve(from)?;
    let stored = store.load(&id)?;
    let report = bmc_engine::workflow::assemble(stored.row.into(), &stored.history);
    let only: Vec<String> = report
        .tests
        .iter()
        .filter(|t| classes.contains(&t.class))
        .map(|t| t.id.clone())
        .collect();
    if only.is_empty() {
        return Err(Failure::usage(
            format!("no test of {id} is {}", args.only.join(",")),
            &[&format!(
                "breakmycode show {id} --tests   lists all of them"
            )],
        ));
    }
    Ok((only, Some(id.to_string())))
}

fn runs_until(text: &str) -> Result<u32, Failure> {
    let (mut rate, mut confidence) = (None, Some(0.95));
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("rate", value)) => rate = value.trim().parse::<f64>().ok(),
            Some(("confidence", value)) => confidence = value.trim().parse::<f64>().ok(),
            _ => rate = None,
        }
    }
    rate.zip(confidence)
        .and_then(|(rate, confidence)| stats::runs_needed(rate, confidence))
        .filter(|runs| *runs <= 1_000_000)
        .ok_or_else(|| {
            Failure::usage(
                format!("--until {text} is not a rate and a confidence between 0 and 1 that a million runs can reach"),
                &["--until rate=0.05,confidence=0.95"],
            )
        })
}

/// Seeds are printed in hexadecimal and can be given so or in decimal.
fn parse_seed(text: &str) -> Result<u64, Failure> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| {
        Failure::usage(
            format!("--seed {text} is not a number below 2^64"),
            &["--seed 0x5d1f", "--seed 42"],
        )
    })
}

fn parse_duration(text: &str) -> Result<f64, Failure> {
    let (digits, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    digits
        .trim()
        .parse::<f64>()
        .ok()
        .zip(factor)
        .map(|(number, factor)| number * factor)
        .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
        .ok_or_else(|| {
            Failure::usage(
                format!("--duration {text} is not a time"),
                &["--duration 90s", "--duration 10m", "--duration 2h"],
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_seeds_and_goals_are_read() {
        assert_eq!(parse_duration("10m").unwrap(), 600.0);
        assert_eq!(parse_duration("1.5h").unwrap(), 5400.0);
        assert_eq!(parse_duration("90").unwrap(), 90.0);
        for bad in ["", "m", "-1s", "0", "1d", "nan", "inf"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_seed("0x10").unwrap(), 16);
        assert_eq!(parse_seed("10").unwrap(), 10);
        assert!(parse_seed("0xfffffffffffffffff").is_err());
        assert_eq!(runs_until("rate=0.05,confidence=0.95").unwrap(), 59);
        assert_eq!(runs_until("rate=0.05").unwrap(), 59);
        for bad in [
            "",
            "rate=0",
            "rate=2",
            "rate=0.05,confidence=1",
            "confidence=0.9",
            "rate=0.000000001",
        ] {
            assert!(runs_until(bad).is_err(), "{bad}");
        }
    }
}
