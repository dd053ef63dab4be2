//! Measurements as Markdown: tables, command lines, and the machine they were made on. Invents no number and rounds late.

use std::fmt::Write as _;

use super::Comparison;
use super::contender::{LOOP_AT_A_TIME, OURS};
use super::measure::{Sample, median};
use super::options::{Options, Suite};

/// What the machine is and how busy it was.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown", |rest| rest.trim_start_matches([':', '\t', ' ']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown").to_owned();
    format!(
        "## Machine\n\n{cores} cores of {model}, Linux {}, load average {load} before the first measurement.\n",
        kernel.trim()
    )
}

/// The table of one suite.
pub(crate) fn suite(suite: &Suite, options: &Options, result: &Comparison) -> String {
    let mut text = String::new();
    let (runs, jobs) = (f64::from(options.runs), f64::from(options.jobs));
    let loop_wall = median(result.floor.iter().map(|sample| sample.wall));
    let loop_processor = median(result.floor.iter().map(|sample| sample.processor));
    let floor = runs * loop_wall / jobs;
    let _ = writeln!(
        text,
        "\n## {}: {} runs, {} rounds, {} at a time\n",
        suite.name(),
        options.runs,
        options.rounds,
        options.jobs
    );
    let _ = writeln!(
        text,
        "| way | wall s (each round) | wall s (median) | processor s (median) | against the floor | exit |"
    );
    let _ = writeln!(text, "| --- | --- | --- | --- | --- | --- |");
    let _ = writeln!(
        text,
        "| floor: {} test loops / {} | {} | {floor:.2} | {:.2} | 1.00 | {} |",
        options.runs,
        options.jobs,
        each(result.floor.iter().map(|sample| runs * sample.wall / jobs)),
        runs * loop_processor,
        exits(&result.floor)
    );
    for (contender, samples) in &result.rows {
        let wall = median(samples.iter().map(|sample| sample.wall));
        let processor = median(samples.iter().map(|sample| sample.processor));
        let _ = writeln!(
            text,
            "| {} | {} | {wall:.2} | {processor:.2} | {:.2} | {} |",
            contender.name,
            each(samples.iter().map(|sample| sample.wall)),
            wall / floor,
            exits(samples)
        );
    }
    if let Some(factor) = factor(result) {
        let _ = writeln!(
            text,
            "\nbreakmycode is {factor:.2} × as fast as the loop with {} at a time (median of the rounds' ratios).",
            options.jobs
        );
    }
    let _ = writeln!(
        text,
        "\nbreakmycode said: {}.\n\nCommand lines, in the suite's folder, with the places in variables:\n\n```sh",
        result.said
    );
    for (contender, _) in &result.rows {
        let _ = writeln!(text, "# {}\n{}", contender.name, contender.script);
    }
    text.push_str("```\n");
    text
}

/// The geometric mean over all suites.
pub(crate) fn summary(results: &[Comparison]) -> String {
    let factors: Vec<f64> = results.iter().filter_map(factor).collect();
    if factors.len() < 2 {
        return String::new();
    }
    let mean = (factors.iter().map(|factor| factor.ln()).sum::<f64>() / factors.len() as f64).exp();
    format!(
        "\n## All suites\n\nGeometric mean over {} suites: {mean:.2} × as fast as the loop with several at a time; least {:.2} ×.\n",
        factors.len(),
        factors.iter().copied().fold(f64::INFINITY, f64::min)
    )
}

/// How many times faster ours is: each round is a pair, measured within minutes of each other.
fn factor(result: &Comparison) -> Option<f64> {
    let samples = |name: &str| {
        result
            .rows
            .iter()
            .find(|(contender, _)| contender.name == name)
            .map(|(_, samples)| samples)
    };
    let pairs = samples(LOOP_AT_A_TIME)?.iter().zip(samples(OURS)?);
    Some(median(pairs.map(|(other, ours)| other.wall / ours.wall)))
}

fn each(values: impl Iterator<Item = f64>) -> String {
    values
        .map(|value| format!("{value:.2}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn exits(samples: &[Sample]) -> String {
    let mut codes: Vec<i32> = samples.iter().map(|sample| sample.exit).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
        .iter()
        .map(i32::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::contender::Contender;
    use super::*;

    fn result(loop_wall: [f64; 3], ours: [f64; 3]) -> Comparison {
        let samples = |walls: [f64; 3]| {
            walls
                .map(|wall| Sample {
                    wall,
                    processor: wall * 2.0,
                    exit: 1,
                })
                .to_vec()
        };
        let row = |name: &str, walls| {
            (
                Contender {
                    name: name.to_owned(),
                    script: format!("run {name}"),
                },
                samples(walls),
            )
        };
        Comparison {
            floor: samples([0.5, 0.4, 0.6]),
            rows: vec![row(LOOP_AT_A_TIME, loop_wall), row(OURS, ours)],
            said: "status complete".to_owned(),
        }
    }

    #[test]
    fn the_factor_is_the_median_of_paired_ratios() {
        let text = suite(
            &Suite {
                directory: "x/click".into(),
                python: "p".into(),
                arguments: Vec::new(),
            },
            &Options {
                suites: Vec::new(),
                runs: 20,
                rounds: 3,
                jobs: 2,
                program: None,
                overhead: false,
                python: None,
            },
            &result([20.0, 40.0, 24.0], [10.0, 10.0, 8.0]),
        );
        assert!(text.contains("is 3.00 × as fast"), "{text}");
        assert!(
            text.contains(
                "| floor: 20 test loops / 2 | 5.00, 4.00, 6.00 | 5.00 | 20.00 | 1.00 | 1 |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| breakmycode | 10.00, 10.00, 8.00 | 10.00 | 20.00 | 2.00 | 1 |"),
            "{text}"
        );
        assert!(text.contains("# breakmycode\nrun breakmycode\n"), "{text}");
    }

    #[test]
    fn the_mean_over_suites_is_geometric() {
        let results = [result([20.0; 3], [10.0; 3]), result([80.0; 3], [10.0; 3])];
        assert!(
            summary(&results).contains("2 suites: 4.00 ×"),
            "{}",
            summary(&results)
        );
        assert_eq!(summary(&results[..1]), "");
    }
}
