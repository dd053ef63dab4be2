//! The last resort: what pytest wrote, when our plugin never spoke. Always has an answer.
//!
//! The patterns are those of pytest 7.0, 8.3 and 9.2 as captured in `tests/data`. Must not be used where the plugin sent anything.

use super::text::{between, clean, line, rest_of_line, tail};
use super::{
    Advice, CollectError, Context, Ending, advice, collection, outcomes, start, traceback, zero,
};
use crate::interpreter::quote;

/// How many lines of an unknown failure are shown.
const LINES: usize = 15;

/// Names what went wrong from how the process ended and what it wrote (standard output and error, in any order). Never empty.
pub fn from_output(ending: &Ending, output: &str, context: &Context) -> Vec<Advice> {
    let output = clean(output);
    let text = output.as_str();
    let one = |found: Option<Advice>| found.map(|advice| vec![advice]);
    if ending.timed_out {
        return vec![too_slow(ending, text, context)];
    }
    one(no_pytest(text, context))
        .or_else(|| one(start::unknown_options(text, context)))
        .or_else(|| one(start::requirements(text, context)))
        .or_else(|| one(start::plugin_module(text, context)))
        .or_else(|| one(django_at_start(text, context)))
        .or_else(|| sections(text, context))
        .or_else(|| one(refused_hook(text, context)))
        .or_else(|| one(crash(ending, text, context)))
        .or_else(|| one(internal_error(text, context)))
        .or_else(|| one(start::nothing_there(text, context)))
        .or_else(|| {
            one(start::unreadable_settings(text, context).filter(|_| ending.code == Some(4)))
        })
        .or_else(|| {
            one(outcomes::from_test_failure(
                &first_failed(text),
                "",
                text,
                context,
            ))
        })
        .or_else(|| {
            one((ending.code == Some(5) || text.contains("no tests ran in"))
                .then(|| zero::zero_tests(context, deselected(text))))
        })
        .or_else(|| one(uncaught(text)))
        .unwrap_or_else(|| vec![unknown(ending, text, context)])
}

fn no_pytest(text: &str, context: &Context) -> Option<Advice> {
    // `/venv/bin/python: No module named pytest`, without quotes: the interpreter says it, not an import in some file.
    let said = text
        .lines()
        .find(|line| line.ends_with(": No module named pytest"))?;
    Some(advice(
        "E010",
        format!("pytest is not installed for {}", context.python()),
        Vec::new(),
        vec![line(&said.replace(
            &format!("{}/", context.files.root().to_string_lossy()),
            "",
        ))],
        context.add(&["pytest"]),
    ))
}

fn django_at_start(text: &str, context: &Context) -> Option<Advice> {
    let found = text.contains("pytest-django could not find a Django project")
        || text.contains("pytest-django found a Django project")
        || (text.contains("ImproperlyConfigured") && !text.contains("ERROR collecting"));
    found.then(|| {
        // The reason stands in the last exception of the traceback.
        let reason = text.rfind("ImportError: ").map_or(text, |at| &text[at..]);
        start::django(reason, Vec::new(), context)
    })
}

fn sections(text: &str, context: &Context) -> Option<Vec<Advice>> {
    let root = context.files.root().to_string_lossy();
    let errors = traceback::sections(text, &root);
    (!errors.is_empty()).then(|| collection::from_collection(&errors, context))
}

/// A hook with arguments that this pytest does not have: a plugin or conftest.py written for another version.
fn refused_hook(text: &str, context: &Context) -> Option<Advice> {
    let said = rest_of_line(text, "PluginValidationError: ")?;
    let plugin = between(said, "Plugin '", "'").unwrap_or("a plugin");
    let plugin = traceback::relative(plugin, &context.files.root().to_string_lossy());
    let hook = between(said, "for hook '", "'").unwrap_or("a hook");
    let arguments = rest_of_line(text, "Argument(s) ").map(line);
    Some(advice(
        "E036",
        format!(
            "`{}` does not fit this pytest: its hook {} has unknown arguments",
            line(&plugin),
            line(hook)
        ),
        Vec::new(),
        arguments.into_iter().collect(),
        vec![
            "install the version of pytest that the plugin was written for, or a newer plugin"
                .to_owned(),
        ],
    ))
}

/// A signal, or an end without a word.
fn crash(ending: &Ending, text: &str, context: &Context) -> Option<Advice> {
    let fatal = rest_of_line(text, "Fatal Python error: ");
    // pytest ends with 0 or 5 by itself; but 0 while a file was being imported is an `os._exit(0)` in that file.
    let by_itself = match ending.code {
        Some(5) => true,
        Some(0) => ending.last_file.is_none(),
        _ => false,
    };
    let silent = !has_ended(text) && !by_itself;
    if ending.signal.is_none() && fatal.is_none() && !silent {
        return None;
    }
    let root = context.files.root().to_string_lossy();
    let frame = faulting_frame(text, &root);
    let headline = match (ending.signal, fatal, ending.code) {
        (Some(signal), _, _) => format!(
            "Python was ended by signal {signal} ({}) before it could run the tests",
            signal_name(signal)
        ),
        (None, Some(fatal), _) => format!(
            "Python crashed before it could run the tests: {}",
            line(fatal)
        ),
        (None, None, Some(code)) => format!(
            "Python ended with exit code {code} without a word, before it could run the tests"
        ),
        (None, None, None) => {
            "Python ended without a word, before it could run the tests".to_owned()
        }
    };
    let importing = ending.last_file.as_deref();
    let places = match &frame {
        Some((path, number)) => Some(format!("{path}:{number}")),
        None => importing.map(|file| format!("{}   was being imported", line(file))),
    };
    let why = match (ending.signal, fatal) {
        (Some(9), _) => "signal 9 mostly comes from the system when memory runs out",
        (Some(4 | 6 | 7 | 8 | 11), _) | (None, Some(_)) => {
            "a crash comes from compiled code: an extension module, or the interpreter itself"
        }
        (Some(_), _) => "the signal was sent by another process, or a limit was reached",
        (None, None) => "a module that calls os._exit when it is imported does that",
    };
    let file = importing
        .or(frame.as_ref().map(|(path, _)| path.as_str()))
        .unwrap_or(".");
    let help = format!(
        "{} -X faulthandler -m pytest {}   shows it without breakmycode",
        quote(context.python()),
        quote(&line(file))
    );
    Some(advice(
        "E029",
        headline,
        places.into_iter().collect(),
        vec![why.to_owned()],
        vec![help],
    ))
}

/// Finds the innermost frame of the project in what faulthandler wrote.
fn faulting_frame(text: &str, root: &str) -> Option<(String, String)> {
    text.lines()
        .filter(|line| line.trim_start().starts_with("File \""))
        .find_map(|line| {
            let path = traceback::relative(between(line, "File \"", "\"")?, root);
            let number = between(line, ", line ", " in ")?;
            traceback::is_own(&path).then(|| (path, number.to_owned()))
        })
}

/// Whether pytest wrote its last line, such as `===== 1 error in 0.10s =====`, or anything else than the first lines of a session.
fn has_ended(text: &str) -> bool {
    let Some((before, session)) = text.split_once(" test session starts ") else {
        return !text.trim().is_empty();
    };
    let summary = |line: &str| line.starts_with("===") && line.contains(" in ");
    before.lines().count() > 1 || session.lines().any(summary) || session.contains("INTERNALERROR>")
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => "illegal instruction",
        6 => "abort",
        7 => "bus error",
        8 => "arithmetic error",
        9 => "kill",
        11 => "segmentation fault",
        15 => "termination",
        24 => "CPU time limit",
        25 => "file size limit",
        31 => "forbidden system call",
        _ => "see kill -l",
    }
}

fn too_slow(ending: &Ending, text: &str, context: &Context) -> Advice {
    let root = context.files.root().to_string_lossy();
    let place = ending
        .last_file
        .as_deref()
        .map(|file| format!("{}   was being imported", line(file)));
    let frame = faulting_frame(text, &root);
    let mut why = vec![
        "something waits for ever while a file is being imported: a network, a lock, or input"
            .to_owned(),
    ];
    if ending.last_file.is_none() && frame.is_none() {
        why.push(
            "no test file had been reached yet, so it is in a plugin or a conftest.py".to_owned(),
        );
    }
    let file = ending.last_file.as_deref().unwrap_or(".");
    advice(
        "E029",
        "pytest did not finish collecting in time".to_owned(),
        place
            .into_iter()
            .chain(frame.map(|(path, number)| format!("{path}:{number}")))
            .collect(),
        why,
        vec![format!(
            "{} -m pytest --collect-only {}   shows it without breakmycode",
            quote(context.python()),
            quote(&line(file))
        )],
    )
}

fn internal_error(text: &str, context: &Context) -> Option<Advice> {
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("INTERNALERROR> "))
        .collect();
    let last = lines
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty() && !line.starts_with(' '))?;
    let root = context.files.root().to_string_lossy();
    let mut frames = Vec::new();
    for (at, text) in lines.iter().enumerate() {
        let place = between(text, "File \"", "\"").zip(between(text, ", line ", ","));
        if let Some((path, number)) =
            place.map(|(path, number)| (traceback::relative(path, &root), number))
            && traceback::is_own(&path)
            && let Ok(number) = number.parse()
        {
            frames.push((
                path,
                number,
                lines
                    .get(at + 1)
                    .map_or("", |source| source.trim())
                    .to_owned(),
            ));
        }
    }
    if let Some(exit) = last.strip_prefix("SystemExit") {
        // In pytest 8 and newer, a module that exits takes the session down with it.
        let error = CollectError {
            nodeid: frames
                .first()
                .map_or_else(String::new, |(path, _, _)| path.clone()),
            kind: "exit".to_owned(),
            message: format!("SystemExit{exit}"),
            chain: frames,
            ..CollectError::default()
        };
        return collection::from_collection(&[error], context)
            .into_iter()
            .next();
    }
    let places = frames
        .last()
        .map(|(path, number, source)| format!("{path}:{number}   {}", line(source)));
    let why = if places.is_some() {
        "a hook in the project's own code raised it"
    } else {
        "a plugin, or pytest itself, raised it"
    };
    Some(advice(
        "E036",
        format!("pytest broke down: {}", line(last)),
        places.into_iter().collect(),
        vec![why.to_owned()],
        vec![format!(
            "{} -m pytest --collect-only   shows the whole traceback",
            quote(context.python())
        )],
    ))
}

/// An exception at start-up that nobody caught.
fn uncaught(text: &str) -> Option<Advice> {
    let (_, trace) = text.rsplit_once("Traceback (most recent call last):")?;
    let said = trace.lines().find(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.is_empty()
            && name.split('.').all(super::project_files::is_identifier)
            && name.contains(|c: char| c.is_ascii_uppercase())
    })?;
    Some(advice(
        "E036",
        format!("pytest could not start: {}", line(said)),
        Vec::new(),
        tail(trace, 6),
        vec!["python -m pytest --trace-config   shows which plugins are loaded".to_owned()],
    ))
}

fn first_failed(text: &str) -> String {
    let mark = |line: &str| {
        ["FAILED ", "ERROR "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark).map(str::to_owned))
    };
    let summary = text
        .lines()
        .filter_map(mark)
        .find(|rest| rest.contains("::"));
    // Skipped tests are only named in the summary of warnings, alone on a line.
    let alone = || {
        let found = text
            .lines()
            .find(|line| line.contains("::") && !line.contains(' '));
        found.map(str::to_owned)
    };
    let rest = summary.or_else(alone).unwrap_or_default();
    rest.split(" - ").next().unwrap_or_default().to_owned()
}

fn deselected(text: &str) -> u64 {
    // `collected 1 item / 1 deselected`
    let counted = text
        .lines()
        .find(|line| line.starts_with("collected "))
        .and_then(|line| {
            let (before, _) = line.split_once(" deselected")?;
            before.rsplit(' ').next()?.parse().ok()
        });
    counted.unwrap_or(0)
}

fn unknown(ending: &Ending, text: &str, context: &Context) -> Advice {
    let headline = match ending.code {
        Some(code) => format!(
            "pytest ended with exit code {code}, and nothing it wrote is known to breakmycode"
        ),
        None => "pytest ended, and nothing it wrote is known to breakmycode".to_owned(),
    };
    let mut why = tail(text, LINES);
    if why.is_empty() {
        why.push("it wrote nothing at all".to_owned());
    }
    let help = format!(
        "{} -m pytest --collect-only   shows it without breakmycode",
        quote(context.python())
    );
    advice("E039", headline, Vec::new(), why, vec![help])
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
