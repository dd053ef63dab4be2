//! What is known before the first run: project, Python, pytest, isolation, tests, plan. One label each, printed as the facts arrive.

use bmc_types::report::{EnvironmentFacts, PlanFacts, ProjectFacts};

use super::page::labelled;
use crate::style::Look;
use crate::text::{percent_number, plural, printable, seconds};

/// Plugins that are named; suites with more exist, and then the names are no longer read.
const PLUGINS_NAMED: usize = 8;

/// The first line of a scan.
pub(crate) fn started(version: &str, scan_id: &str, look: &Look) -> String {
    format!(
        "{}  {}",
        look.styles
            .bold
            .style(format!("breakmycode {}", printable(version))),
        printable(scan_id)
    )
}

/// The project and the state of its files.
pub(crate) fn project(facts: &ProjectFacts, look: &Look) -> Vec<String> {
    let ProjectFacts {
        root,
        commit: _,
        branch: _,
        dirty: _,
        tree_digest: _,
    } = facts;
    let mut words = printable(root);
    if let Some(git) = git(facts) {
        words.push_str(&format!("  ({git})"));
    }
    labelled("Project", &words, "", look.styles.bold, look)
}

/// Commit, branch and state in a few words.
pub(crate) fn git(facts: &ProjectFacts) -> Option<String> {
    let commit = facts.commit.as_ref()?;
    let short: String = commit.chars().take(7).collect();
    let mut words = format!("git {}", printable(&short));
    if let Some(branch) = &facts.branch {
        words.push_str(&format!(" on {}", printable(branch)));
    }
    match facts.dirty {
        Some(true) => words.push_str(", with uncommitted changes"),
        Some(false) => words.push_str(", clean"),
        None => {}
    }
    Some(words)
}

/// Interpreter, pytest and isolation.
pub(crate) fn environment(facts: &EnvironmentFacts, look: &Look) -> Vec<String> {
    let EnvironmentFacts {
        python,
        implementation,
        executable,
        found_by,
        pytest,
        plugins,
        switched_off,
        isolation,
        isolation_detail,
        network,
    } = facts;
    let name = if implementation == "cpython" {
        String::new()
    } else {
        format!("{} ", printable(implementation))
    };
    let found = if found_by.is_empty() {
        String::new()
    } else {
        format!("found: {}", printable(found_by))
    };
    let bold = look.styles.bold;
    let mut lines = labelled(
        "Python",
        &format!("{name}{}  {}", printable(python), printable(executable)),
        &found,
        bold,
        look,
    );
    let mut words = printable(pytest);
    if !plugins.is_empty() {
        let named: Vec<String> = plugins
            .iter()
            .take(PLUGINS_NAMED)
            .map(|(name, version)| {
                let name = printable(name);
                format!(
                    "{} {}",
                    name.strip_prefix("pytest-").unwrap_or(&name),
                    printable(version)
                )
            })
            .collect();
        let more = plugins.len().saturating_sub(PLUGINS_NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        words.push_str(&format!("  plugins: {}{more}", named.join(", ")));
    }
    lines.extend(labelled("pytest", &words, "", bold, look));
    lines.extend(self::switched_off(switched_off, look));
    let network = match network.as_str() {
        "loopback" => "network: loopback only".to_owned(),
        "host" => "network: that of this machine".to_owned(),
        other => format!("network: {}", printable(other)),
    };
    let detail = if isolation_detail.is_empty() {
        String::new()
    } else {
        format!(": {}", printable(isolation_detail))
    };
    lines.extend(labelled(
        "Isolation",
        &format!("{}{detail}", printable(isolation)),
        &network,
        bold,
        look,
    ));
    lines
}

/// Plugins and options that are off while scanning.
pub(crate) fn switched_off(list: &[(String, String)], look: &Look) -> Vec<String> {
    if list.is_empty() {
        return Vec::new();
    }
    let words: Vec<String> = list
        .iter()
        .map(|(what, why)| {
            if why.is_empty() {
                printable(what)
            } else {
                format!("{} ({})", printable(what), printable(why))
            }
        })
        .collect();
    labelled(
        "Switched off",
        &format!("while scanning: {}", words.join(", ")),
        "",
        look.styles.bold,
        look,
    )
}

/// What the first process collected.
pub(crate) fn collected(tests: u64, took: f64, look: &Look) -> Vec<String> {
    labelled(
        "Collected",
        &format!("{} in {}", plural(tests, "test", "tests"), seconds(took)),
        "",
        look.styles.bold,
        look,
    )
}

/// What will be done.
pub(crate) fn plan(plan: &PlanFacts, look: &Look) -> Vec<String> {
    let PlanFacts {
        runs,
        fresh_starts,
        engine,
        engine_why: _,
        jobs,
        seed,
        order,
        test_timeout_s,
        pytest_args,
        only,
        from,
    } = plan;
    let mut parts = vec![plural(u64::from(*runs), "run", "runs")];
    if engine == "hybrid" && fresh_starts < runs {
        parts[0].push_str(&format!(
            " from {} of Python",
            plural(u64::from(*fresh_starts), "fresh start", "fresh starts")
        ));
    } else {
        parts[0].push_str(if *runs == 1 {
            " in a fresh process"
        } else {
            ", each in a fresh process"
        });
    }
    parts.push(match order.as_str() {
        "collected" => "order as collected".to_owned(),
        other => format!("order: {}", printable(other)),
    });
    parts.push(if *jobs <= 1 {
        "one at a time".to_owned()
    } else {
        format!("{jobs} at a time")
    });
    if let Some(limit) = test_timeout_s {
        parts.push(format!("at most {} a test", seconds(*limit)));
    }
    if !only.is_empty() {
        let source = from
            .as_ref()
            .map(|scan| format!(" (from {})", printable(scan)))
            .unwrap_or_default();
        parts.push(format!(
            "only {}{source}",
            plural(only.len() as u64, "chosen test", "chosen tests")
        ));
    }
    if !pytest_args.is_empty() {
        parts.push(format!(
            "pytest arguments: {}",
            printable(&pytest_args.join(" "))
        ));
    }
    labelled(
        "Plan",
        &parts.join(", "),
        &format!("seed {}", printable(seed)),
        look.styles.bold,
        look,
    )
}

/// A rate for a sentence: `5 %`, `0.5 %`.
pub(crate) fn rate_words(rate: f64) -> String {
    let number = percent_number(rate);
    format!("{} %", number.strip_suffix(".0").unwrap_or(&number))
}
