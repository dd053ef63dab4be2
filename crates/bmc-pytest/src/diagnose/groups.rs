//! The kinds of trouble a file can be in, and what to say about each. One kind is said once, however many files it hits.

use super::text::{between, count, line};
use super::{Advice, CollectError, Context, advice, imports, tables};
use crate::interpreter::quote;

/// How many files are listed for one cause.
const PLACES: usize = 6;

/// What is wrong with a file. Equal values are one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Group {
    /// A module is missing, by its dotted name as far as it matters.
    Module(String),
    /// A module lacks a name: module, name, file it was imported from.
    Name(String, String, Option<String>),
    /// The standard library no longer has it: what, and the minor version that removed it.
    Removed(String, u32),
    /// Django is not set up.
    Django,
    /// Two test files share a name.
    Mismatch(String),
    /// A file is not valid Python: path, line.
    Syntax(String, u32),
    /// A module ended the process.
    Exit(String),
    /// A module read from standard input.
    Input,
    /// pytest cannot read any file: it is too old for this Python.
    OldPytest,
    /// A mark is not registered.
    Mark(String),
    /// Another exception, by its message.
    Other(String),
}

/// Tells what is wrong with a file.
pub(super) fn group_of(error: &CollectError, context: &Context) -> Group {
    let message = error.message.as_str();
    let all = [message, error.longrepr.as_str()];
    let says = |text: &str| all.iter().any(|part| part.contains(text));
    if says("DJANGO_SETTINGS_MODULE")
        || says("AppRegistryNotReady")
        || says("settings are not configured")
    {
        return Group::Django;
    }
    if says("required field \"lineno\" missing from alias") {
        return Group::OldPytest;
    }
    if says("reading from stdin while output is captured")
        || says("reading from stdin is not allowed")
    {
        return Group::Input;
    }
    if message.contains("not found in `markers` configuration option") {
        return Group::Mark(between(message, "'", "'").unwrap_or(message).to_owned());
    }
    match error.kind.as_str() {
        "module_not_found" => {
            let module = error
                .module
                .as_deref()
                .or_else(|| between(message, "No module named '", "'"));
            let Some(module) = module.filter(|module| !module.is_empty()) else {
                return Group::Other(line(message));
            };
            let removed = tables::module_gone_in(module)
                .filter(|gone| context.minor().is_none_or(|minor| minor >= *gone));
            match removed {
                Some(minor) if context.files.own_module(module).is_none() => {
                    Group::Removed(module.split('.').next().unwrap_or(module).to_owned(), minor)
                }
                _ => Group::Module(imports::subject(module, context)),
            }
        }
        "import_error" => match imports::missing_name(message) {
            Some((module, name, file)) => match tables::name_gone_in(&module, &name) {
                Some(minor) => Group::Removed(format!("{module}.{name}"), minor),
                None => Group::Name(module, name, file),
            },
            None => Group::Other(line(message)),
        },
        "syntax_error" => Group::Syntax(
            error.path.clone().unwrap_or_else(|| error.nodeid.clone()),
            error.line.unwrap_or(0),
        ),
        "import_mismatch" => Group::Mismatch(error.nodeid.clone()),
        "exit" => Group::Exit(line(message)),
        _ => match removed_attribute(message) {
            Some((what, minor)) => Group::Removed(what, minor),
            None => Group::Other(line(message)),
        },
    }
}

/// Reads `AttributeError: module 'asyncio' has no attribute 'coroutine'`.
fn removed_attribute(message: &str) -> Option<(String, u32)> {
    let module = between(message, "module '", "' has no attribute")?;
    let name = between(message, "has no attribute '", "'")?;
    Some((
        format!("{module}.{name}"),
        tables::name_gone_in(module, name)?,
    ))
}

/// Says what happened, where, why, and what to type.
pub(super) fn advise(group: &Group, errors: &[&CollectError], context: &Context) -> Advice {
    let places = places(errors);
    let files = count(errors.len(), "file");
    match group {
        Group::Module(module) => imports::missing_module(module, errors, places, context),
        Group::Name(module, name, file) => imports::wrong_name(module, name, file.as_deref(), errors, places, context),
        Group::Removed(what, minor) => removed(what, *minor, &files, places, context),
        Group::Django => super::start::django(&errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>().join("\n"), places, context),
        Group::Mismatch(nodeid) => mismatch(nodeid, errors, places, context),
        Group::Syntax(path, number) => syntax(path, *number, errors, context),
        Group::Exit(message) => advice(
            "E029",
            format!("importing a test file ends the process: {message} ({files})"),
            places,
            vec!["a module must not end the interpreter when it is imported; pytest imports every test file before it runs any".to_owned()],
            vec!["move the call into a function, or below: if __name__ == \"__main__\":".to_owned()],
        ),
        Group::Input => advice(
            "E029",
            format!("importing a test file waits for input ({files})"),
            places,
            vec!["it reads from standard input, which is closed while tests run".to_owned()],
            vec!["move the call into a function, or below: if __name__ == \"__main__\":".to_owned()],
        ),
        Group::OldPytest => advice(
            "E010",
            format!("this pytest is too old for this Python ({files})"),
            places,
            vec![format!("it cannot rewrite assertions for {}; every file fails in the same way", context.of_interpreter())],
            context.add(&["pytest>=7"]),
        ),
        Group::Mark(mark) => {
            let registered = context.files.setting_line("markers", &format!("{mark}: what it means"));
            advice(
                "E020",
                format!("the mark `{mark}` is not registered, and marks are strict here ({files})"),
                places,
                vec!["either the name is misspelt, or the plugin that registers it is not installed".to_owned()],
                vec![registered],
            )
        }
        Group::Other(message) => other(message, errors, places),
    }
}

fn removed(what: &str, minor: u32, files: &str, places: Vec<String>, context: &Context) -> Advice {
    let mut help = vec![format!(
        "breakmycode . --python 3.{}",
        minor.saturating_sub(1)
    )];
    match what {
        "distutils" => help.push(format!(
            "or bring it back: {}",
            context.manager.add(&["setuptools"], context.python())
        )),
        "collections.Mapping"
        | "collections.Iterable"
        | "collections.Callable"
        | "collections.Sequence" => {
            help.push(format!(
                "or in the code: from collections.abc import {}",
                &what["collections.".len()..]
            ));
        }
        _ => {}
    }
    advice(
        "E013",
        format!("the code uses `{what}`, which Python 3.{minor} removed ({files})"),
        places,
        vec![format!("run with {}", context.of_interpreter())],
        help,
    )
}

fn mismatch(
    nodeid: &str,
    errors: &[&CollectError],
    places: Vec<String>,
    context: &Context,
) -> Advice {
    let text = errors
        .first()
        .map(|error| error.longrepr.as_str())
        .unwrap_or_default();
    let root = context.files.root().to_string_lossy();
    let mut lines = text.lines().map(str::trim);
    let mut after = |mark: &str| {
        lines
            .find(|line| line.ends_with(mark))
            .and_then(|_| lines.next())
            .map(|path| super::traceback::relative(path, &root))
    };
    let first = after("has this __file__ attribute:");
    let second = after("the test file we want to collect:").unwrap_or_else(|| nodeid.to_owned());
    let name = second.rsplit('/').next().unwrap_or(&second).to_owned();
    let Some(first) = first else {
        return advice(
            "E024",
            format!("two test files are called {name}"),
            places,
            vec![line(text)],
            same_name_help(context, &[&second]),
        );
    };
    if first.starts_with('/') || !context.files.exists(&first) {
        return advice(
            "E024",
            format!("{second} was imported from another place"),
            vec![second.clone(), format!("imported from {first}")],
            vec!["the project was moved or copied with its compiled files, or an installed copy of the tests is on the path".to_owned()],
            vec!["find . -name __pycache__ -type d -exec rm -r {} +".to_owned()],
        );
    }
    let help = same_name_help(context, &[&first, &second]);
    advice(
        "E024",
        format!("two test files are called {name}"),
        vec![first, second],
        vec![
            "without __init__.py beside them, pytest imports both under the same module name"
                .to_owned(),
        ],
        help,
    )
}

fn same_name_help(context: &Context, files: &[&str]) -> Vec<String> {
    let inits: Vec<String> = files
        .iter()
        .filter_map(|file| file.rsplit_once('/'))
        .map(|(folder, _)| format!("{folder}/__init__.py"))
        .filter(|init| !context.files.exists(init))
        .map(|init| quote(&init))
        .collect();
    let mut help = Vec::new();
    if !inits.is_empty() {
        help.push(format!("touch {}", inits.join(" ")));
    }
    help.push(format!(
        "or: {}",
        context
            .files
            .setting_line("addopts", "--import-mode=importlib")
    ));
    help
}

/// Marks of newer grammar in a line of source, and the minor version of Python 3 that brought it.
const NEWER: [(&str, &str, u32); 5] = [
    ("match ", ":", 10),
    ("except*", ":", 11),
    ("type ", " = ", 12),
    ("def ", "[", 12),
    ("class ", "[", 12),
];

fn syntax(path: &str, number: u32, errors: &[&CollectError], context: &Context) -> Advice {
    let message = errors
        .first()
        .map(|error| line(&error.message))
        .unwrap_or_default();
    let source = errors
        .first()
        .and_then(|error| error.source.as_deref())
        .map(line)
        .unwrap_or_default();
    let mut places = vec![format!("{path}:{number}   {source}")];
    places.extend(caret(
        &errors
            .first()
            .map(|error| error.longrepr.clone())
            .unwrap_or_default(),
        &source,
        path,
        number,
    ));
    if errors.len() > 1 {
        places.push(format!(
            "imported by {}",
            errors
                .iter()
                .map(|error| line(&error.nodeid))
                .take(PLACES)
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    let newer = NEWER.iter().find(|(start, then, minor)| {
        let rest = source.strip_prefix(start);
        rest.is_some_and(|rest| {
            rest.split(['(', '"', '\''])
                .next()
                .is_some_and(|head| head.contains(then))
                || (*then == ":" && source.ends_with(':'))
        }) && context.minor().is_some_and(|ours| ours < *minor)
    });
    if let Some((_, _, minor)) = newer {
        return advice(
            "E013",
            format!("{path} is written for Python 3.{minor} or newer"),
            places,
            vec![format!(
                "run with {}, which does not know this grammar: {message}",
                context.of_interpreter()
            )],
            vec![format!("breakmycode . --python 3.{minor}")],
        );
    }
    let old = source
        .strip_prefix("print ")
        .is_some_and(|rest| !rest.starts_with('='))
        || (source.starts_with("except ") && source.contains(", ") && !source.contains('('))
        || source.starts_with("exec ");
    let (why, help) = if old {
        (
            "this is Python 2, which pytest 7 and newer cannot run",
            "python -m lib2to3 or the tool `2to3` translates it",
        )
    } else {
        (
            "the file cannot be compiled, so none of its tests exist",
            "python -m py_compile shows it without pytest",
        )
    };
    let help = match help.split_once(" shows") {
        Some((command, rest)) => format!(
            "{} {} shows{rest}",
            command.replacen("python", &quote(context.python()), 1),
            quote(path)
        ),
        None => help.to_owned(),
    };
    advice(
        "E025",
        format!("{path}:{number} is not valid Python: {message}"),
        places,
        vec![why.to_owned()],
        vec![help],
    )
}

/// Draws the caret of a syntax error below the source line, as Python did.
fn caret(longrepr: &str, source: &str, path: &str, number: u32) -> Option<String> {
    let mut lines = longrepr.lines();
    let code =
        lines.find(|line| !source.is_empty() && line.trim_start_matches('E').trim() == source)?;
    let under = lines.next()?;
    let start = code.find(source)?;
    let column = under.find('^').filter(|column| *column >= start)?;
    let marks: String = under[column..].chars().take_while(|c| *c == '^').collect();
    let indent = path.chars().count()
        + number.to_string().len()
        + 4
        + code.get(start..column)?.chars().count();
    Some(format!("{}{marks}", " ".repeat(indent)))
}

fn other(message: &str, errors: &[&CollectError], places: Vec<String>) -> Advice {
    let files = count(errors.len(), "file");
    let circular = message.contains("partially initialized module");
    let environment = message.starts_with("KeyError")
        && errors
            .iter()
            .any(|e| e.source.as_deref().is_some_and(|s| s.contains("environ")));
    let mut why = Vec::new();
    let mut help = Vec::new();
    if circular {
        why.push(
            "two modules import each other; the second one sees the first half-finished".to_owned(),
        );
    } else if environment {
        let name = between(message, "'", "'").unwrap_or("the variable");
        why.push(format!("the environment variable {name} is not set"));
        help.push(format!("{name}=… breakmycode ."));
    } else {
        why.push(
            "the exception was raised while the file was being imported, before any test ran"
                .to_owned(),
        );
    }
    // Without its conftest.py no other file can be collected either.
    if !errors
        .iter()
        .any(|error| error.nodeid.ends_with("conftest.py"))
    {
        help.push("the other files: breakmycode . --continue-on-collection-errors".to_owned());
    }
    advice(
        "E035",
        format!("importing failed: {message} ({files})"),
        places,
        why,
        help,
    )
}

/// Writes where each file stumbled, from the test file inwards.
fn places(errors: &[&CollectError]) -> Vec<String> {
    let mut places: Vec<String> = errors
        .iter()
        .take(PLACES)
        .map(|error| place(error))
        .collect();
    if errors.len() > PLACES {
        places.push(format!("and {}", count(errors.len() - PLACES, "more file")));
    }
    places
}

fn place(error: &CollectError) -> String {
    let step = |path: &str, number: u32, source: &str| {
        format!("{}:{number}   {}", line(path), line(source))
            .trim_end()
            .to_owned()
    };
    let mut steps: Vec<String> = error
        .chain
        .iter()
        .map(|(path, number, source)| step(path, *number, source))
        .collect();
    if steps.is_empty() {
        steps.extend(error.path.as_deref().map(|path| {
            step(
                path,
                error.line.unwrap_or(0),
                error.source.as_deref().unwrap_or_default(),
            )
        }));
    }
    // A long chain is shown by its ends: where it starts is the test, where it ends is the cause.
    if steps.len() > 4 {
        let hidden = steps.len() - 3;
        steps.splice(1..steps.len() - 2, [format!("… {hidden} more …")]);
    }
    if steps.is_empty() {
        line(&error.nodeid)
    } else {
        steps.join("   →   ")
    }
}
