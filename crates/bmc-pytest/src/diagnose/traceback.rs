//! Reads pytest's text about a file that could not be collected into the same shape the plugin sends.
//!
//! Only for text from before the plugin was loaded. Written against the output of pytest 7.0, 8.3 and 9.2 (see `tests/data`).

use super::CollectError;
use super::text::between;

/// Finds every `ERROR collecting …` section, and the one about a conftest.py.
pub(super) fn sections(text: &str, root: &str) -> Vec<CollectError> {
    let mut found = Vec::new();
    let mut current: Option<(String, Vec<&str>)> = None;
    for line in text.lines() {
        let header = line
            .trim_matches(['_', ' '])
            .strip_prefix("ERROR collecting ")
            .filter(|_| line.starts_with('_'));
        let conftest = line
            .strip_prefix("ImportError while loading conftest '")
            .map(|rest| rest.trim_end_matches('.').trim_end_matches('\''));
        let ends = line.starts_with("=====") || line.starts_with("!!!!!");
        if header.is_some() || conftest.is_some() || ends {
            found.extend(
                current
                    .take()
                    .map(|(nodeid, lines)| section(&nodeid, &lines, root)),
            );
        }
        if let Some(nodeid) = header.or(conftest) {
            current = Some((relative(nodeid, root), Vec::new()));
        } else if let Some((_, lines)) = &mut current {
            lines.push(line);
        }
    }
    found.extend(current.map(|(nodeid, lines)| section(&nodeid, &lines, root)));
    found
}

fn section(nodeid: &str, lines: &[&str], root: &str) -> CollectError {
    let chain = frames(lines, root);
    let (name, message) = exception(lines);
    let text = lines.join("\n");
    let mut error = CollectError {
        nodeid: nodeid.to_owned(),
        kind: kind(name.as_deref(), &text).to_owned(),
        module: between(&message, "No module named '", "'").map(str::to_owned),
        message: match name.as_deref() {
            // The message of these says it all; of any other the name belongs to it.
            Some(
                "ModuleNotFoundError"
                | "ImportError"
                | "SyntaxError"
                | "IndentationError"
                | "TabError",
            ) => message,
            Some("Exit" | "_pytest.outcomes.Exit" | "Failed") => message,
            Some(name) if message.is_empty() => name.to_owned(),
            Some(name) => format!("{name}: {message}"),
            None => lines
                .iter()
                .find(|line| !line.trim().is_empty())
                .map_or_else(String::new, |line| (*line).to_owned()),
        },
        longrepr: text,
        ..CollectError::default()
    };
    if let Some((path, line, source)) = chain.last() {
        (error.path, error.line, error.source) =
            (Some(path.clone()), Some(*line), Some(source.clone()));
    }
    error.chain = chain;
    if error.kind == "syntax_error"
        && let Some((path, line, source)) = syntax_place(lines, root)
    {
        (error.path, error.line, error.source) = (Some(path), Some(line), Some(source));
    }
    error
}

fn kind(exception: Option<&str>, text: &str) -> &'static str {
    match exception {
        Some("ModuleNotFoundError") => "module_not_found",
        Some("ImportError") => "import_error",
        Some("SyntaxError" | "IndentationError" | "TabError") => "syntax_error",
        Some("SystemExit" | "KeyboardInterrupt" | "Exit" | "_pytest.outcomes.Exit") => "exit",
        _ if text.contains("import file mismatch") => "import_mismatch",
        _ => "other",
    }
}

/// Reads lines such as `tests/test_a.py:3: in <module>` with the source below, keeping those of the project.
fn frames(lines: &[&str], root: &str) -> Vec<(String, u32, String)> {
    let mut frames = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((place, _)) = line.split_once(": in ") else {
            continue;
        };
        let Some((path, number)) = place.rsplit_once(':') else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        let path = relative(path, root);
        if is_own(&path) {
            let source = lines
                .get(at + 1)
                .filter(|line| line.starts_with("    "))
                .map_or("", |line| line.trim());
            frames.push((path, number, source.to_owned()));
        }
    }
    frames
}

/// Whether a path in a message is one of the project's files.
pub(super) fn is_own(path: &str) -> bool {
    !path.starts_with(['/', '<'])
        && !path.starts_with("../")
        && !path
            .split('/')
            .any(|part| matches!(part, "site-packages" | "dist-packages"))
}

/// Returns name and message of the last exception in lines that start with `E`.
fn exception(lines: &[&str]) -> (Option<String>, String) {
    let marked = lines.iter().filter_map(|line| line.strip_prefix("E   "));
    let mut last = (None, String::new());
    for line in marked {
        let (name, message) = line
            .split_once(": ")
            .unwrap_or((line.trim_end_matches(':'), ""));
        let is_name = name.split('.').all(super::project_files::is_identifier);
        if is_name
            && name
                .rsplit('.')
                .next()
                .is_some_and(|last| last.starts_with(|c: char| c.is_uppercase()))
        {
            last = (Some(name.to_owned()), message.trim().to_owned());
        }
    }
    last
}

/// Reads `E     File "/…/test_a.py", line 2` and the source line after it.
fn syntax_place(lines: &[&str], root: &str) -> Option<(String, u32, String)> {
    let at = lines
        .iter()
        .position(|line| line.starts_with("E     File \""))?;
    let path = between(lines[at], "File \"", "\"")?;
    let number = lines[at].rsplit_once("line ")?.1.trim().parse().ok()?;
    let source = lines
        .get(at + 1)
        .and_then(|line| line.strip_prefix('E'))
        .map_or("", str::trim);
    Some((relative(path, root), number, source.to_owned()))
}

/// Writes a path relative to the root if it lies below it.
pub(super) fn relative(path: &str, root: &str) -> String {
    path.strip_prefix(root)
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or(path)
        .to_owned()
}
