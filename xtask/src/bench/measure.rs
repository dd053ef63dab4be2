//! Times a shell script as a shell does: wall clock, and the processor time of everything it started and waited for.

use std::path::Path;
use std::process::{Command, Stdio};

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Wall-clock seconds.
    pub(crate) wall: f64,
    /// User and system seconds.
    pub(crate) processor: f64,
    /// Exit code of the script.
    pub(crate) exit: i32,
}

/// Runs a script in a folder with some variables; what it prints is thrown away. A failing script is a measurement too: suites have
/// failing tests.
pub(crate) fn measure(
    script: &str,
    folder: &Path,
    variables: &[(&str, &Path)],
) -> Result<Sample, String> {
    // The report of `time` goes to the shell's own standard error, past the redirection.
    let timed = format!("TIMEFORMAT='%3R %3U %3S'\ntime {{ (\n{script}\n) >/dev/null 2>&1; }}");
    let output = Command::new("bash")
        .args(["--norc", "-c", &timed])
        .env("LC_ALL", "C.UTF-8")
        .envs(variables.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("start bash: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let exit = output
        .status
        .code()
        .ok_or_else(|| format!("finish a measurement: bash was killed\n{script}"))?;
    read(&text, exit)
        .ok_or_else(|| format!("read what `time` printed: {:?}\n{script}", text.trim()))
}

fn read(text: &str, exit: i32) -> Option<Sample> {
    let mut numbers = text.lines().last()?.split(' ').map(str::parse::<f64>);
    let mut next = || numbers.next()?.ok();
    let (wall, user, system) = (next()?, next()?, next()?);
    Some(Sample {
        wall,
        processor: user + system,
        exit,
    })
}

/// The middle one of some numbers; of an even count the mean of the middle two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_timed_with_its_children_and_its_exit_code_is_kept() {
        let folder = std::env::temp_dir();
        let sample = measure(
            "bash -c 'for ((i = 0; i < 200000; i++)); do :; done'; echo noise >&2; exit $CODE",
            &folder,
            &[("CODE", Path::new("3"))],
        )
        .unwrap();
        assert_eq!(sample.exit, 3);
        assert!(sample.processor > 0.0 && sample.wall > 0.0, "{sample:?}");
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        assert_eq!(
            read("1.500 0.250 0.125\n", 0),
            Some(Sample {
                wall: 1.5,
                processor: 0.375,
                exit: 0
            })
        );
        for text in ["", "1.5", "a b c", "1 2"] {
            assert_eq!(read(text, 0), None, "{text}");
        }
    }

    #[test]
    fn the_median_of_an_even_count_is_between_two() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert!(median([].into_iter()).is_nan());
    }
}
