//! Trouble that looks like a failing test but is the environment's: a missing fixture or async plugin; and plugins that repeat or reorder.
//!
//! Such a failure must not be taken for a fault of the code.

use super::text::{between, line};
use super::{Advice, Context, advice, tables};

/// Recognises E026 and E027 in the failure (or, in older pytest, the skip) of one test.
pub fn from_test_failure(
    nodeid: &str,
    message: &str,
    longrepr: &str,
    context: &Context,
) -> Option<Advice> {
    let says = |text: &str| message.contains(text) || longrepr.contains(text);
    if says("async def functions are not natively supported")
        || says("async def function and no async plugin installed")
    {
        return Some(no_async_plugin(nodeid, context));
    }
    let fixture = [message, longrepr].iter().find_map(|text| {
        let (before, _) = text.split_once("' not found")?;
        before
            .rsplit_once("fixture '")
            .map(|(_, name)| name)
            .filter(|name| super::project_files::is_identifier(name))
    })?;
    let available = [message, longrepr]
        .iter()
        .find_map(|text| between(text, "available fixtures: ", "\n"));
    Some(no_fixture(
        nodeid,
        fixture,
        available.unwrap_or_default(),
        context,
    ))
}

fn no_fixture(nodeid: &str, fixture: &str, available: &str, context: &Context) -> Advice {
    let mut why = vec!["the test was never run: setting it up already failed".to_owned()];
    let mut help = Vec::new();
    match tables::plugin_of_fixture(fixture) {
        Some(plugin) => {
            let package = plugin.split(" (").next().unwrap_or(plugin);
            why.push(format!("a fixture of this name comes with {plugin}"));
            if context.has_plugin(package) {
                why.push(format!(
                    "{package} is installed for {}, so it is switched off somewhere",
                    context.of_interpreter()
                ));
            } else if package != "pytest" {
                help.extend(context.add(&[package]));
            }
        }
        None => {
            let near = available
                .split(", ")
                .map(str::trim)
                .filter(|name| near(name, fixture))
                .take(3)
                .collect::<Vec<&str>>();
            if near.is_empty() {
                help.push(
                    "is the conftest.py that defines it beside or above the test file?".to_owned(),
                );
            } else {
                help.push(format!("did you mean {}?", near.join(" or ")));
            }
        }
    }
    advice(
        "E026",
        format!("there is no fixture `{fixture}`"),
        vec![line(nodeid)],
        why,
        help,
    )
}

/// Whether two names differ in at most two letters: a typing mistake.
fn near(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(64).collect(), b.chars().take(64).collect());
    if a.len().abs_diff(b.len()) > 2 || a.len() < 3 {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()] <= 2
}

fn no_async_plugin(nodeid: &str, context: &Context) -> Advice {
    let declared = [
        "pytest-asyncio",
        "anyio",
        "pytest-trio",
        "pytest-twisted",
        "pytest-tornasync",
    ]
    .into_iter()
    .find_map(|plugin| {
        context
            .files
            .declared(plugin)
            .map(|declared| (plugin, declared))
    });
    let mut why = vec![
        "pytest cannot run coroutines by itself: the test says nothing about the code".to_owned(),
    ];
    let help = match &declared {
        Some((plugin, declared)) if context.has_plugin(plugin) => {
            why.push(format!(
                "{plugin} is installed, but this test is not marked for it ({})",
                declared.place
            ));
            vec![
                context.files.setting_line("asyncio_mode", "auto"),
                "or mark the test: @pytest.mark.asyncio".to_owned(),
            ]
        }
        Some((plugin, declared)) => {
            why.push(format!(
                "{plugin} is declared ({}) but not installed for {}",
                declared.place,
                context.of_interpreter()
            ));
            vec![context.manager.sync(context.python())]
        }
        None if context.has_plugin("pytest-asyncio") => {
            vec![
                context.files.setting_line("asyncio_mode", "auto"),
                "or mark the test: @pytest.mark.asyncio".to_owned(),
            ]
        }
        None => context.add(&["pytest-asyncio"]),
    };
    advice(
        "E027",
        "an async test needs a plugin that runs it".to_owned(),
        vec![line(nodeid)],
        why,
        help,
    )
}

/// Plugins that change how often or in which order tests run: distribution, code, what is done about it while scanning.
const CHANGERS: [(&str, &str, &str); 9] = [
    (
        "pytest-xdist",
        "E030",
        "runs tests in several processes; while scanning, every run has one process",
    ),
    (
        "pytest-rerunfailures",
        "E031",
        "repeats failing tests until they pass, which hides flakiness; switched off while scanning",
    ),
    (
        "flaky",
        "E031",
        "repeats failing tests until they pass, which hides flakiness; switched off while scanning",
    ),
    (
        "pytest-retry",
        "E031",
        "repeats failing tests until they pass, which hides flakiness",
    ),
    (
        "pytest-randomly",
        "E032",
        "shuffles tests and seeds random numbers; while scanning, order and seeds are set by breakmycode",
    ),
    (
        "pytest-random-order",
        "E032",
        "shuffles tests; while scanning, the order is set by breakmycode",
    ),
    (
        "pytest-forked",
        "E033",
        "starts a process for every test; switched off while scanning",
    ),
    (
        "pytest-repeat",
        "E033",
        "repeats tests within a run; switched off while scanning",
    ),
    (
        "pytest-flakefinder",
        "E033",
        "repeats tests within a run; switched off while scanning",
    ),
];

/// Tells which installed plugins change repetition or order (E030 to E033). Information, not an error.
pub fn from_plugins(context: &Context) -> Vec<Advice> {
    CHANGERS
        .iter()
        .filter(|(plugin, _, _)| context.has_plugin(plugin))
        .map(|(plugin, code, what)| {
            advice(
                code,
                format!("{plugin} {what}"),
                Vec::new(),
                Vec::new(),
                Vec::new(),
            )
        })
        .collect()
}

#[cfg(test)]
#[path = "outcomes_tests.rs"]
mod tests;
