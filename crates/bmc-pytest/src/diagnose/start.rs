//! Advice for a pytest that did not even start: unknown options, missing plugins, settings that cannot be read, Django.

use super::text::{between, line, rest_of_line};
use super::{Advice, Context, advice, tables};
use crate::interpreter::quote;

/// E020: options that nobody knows. `text` is what pytest wrote.
pub(super) fn unknown_options(text: &str, context: &Context) -> Option<Advice> {
    let options = rest_of_line(text, "error: unrecognized arguments: ")?;
    let file = rest_of_line(text, "inifile: ").filter(|file| *file != "None");
    let root = context.files.root().to_string_lossy();
    let file = file.map(|file| super::traceback::relative(file, &root));
    let mut plugins: Vec<&str> = Vec::new();
    let mut unknown: Vec<String> = Vec::new();
    for option in options
        .split_whitespace()
        .filter(|word| word.starts_with('-'))
    {
        match tables::plugin_of_option(option) {
            Some(plugin) if plugins.contains(&plugin) => {}
            Some(plugin) => plugins.push(plugin),
            None => unknown.push(line(option)),
        }
    }
    let passed = file
        .clone()
        .unwrap_or_else(|| "the command line".to_owned());
    let headline = match (plugins.as_slice(), unknown.as_slice()) {
        ([], _) => format!("pytest does not know {}", line(options)),
        ([plugin], []) => format!(
            "{passed} passes {}, but {plugin} is not installed",
            line(options)
        ),
        (several, _) => format!(
            "{passed} passes {}, but {} are not installed",
            line(options),
            several.join(" and ")
        ),
    };
    let addopts = context.files.pytest_setting("addopts");
    let places = match &addopts {
        Some((value, file)) => vec![format!(
            "{file}   addopts = {}",
            line(&value.replace('\n', " "))
        )],
        None => file.into_iter().collect(),
    };
    let mut why = vec![format!("run with {}", context.of_interpreter())];
    if !unknown.is_empty() {
        why.push(format!("no plugin is known to own {}; a conftest.py that defines it must lie beside the configuration", unknown.join(", ")));
    }
    let mut help = Vec::new();
    if !plugins.is_empty() {
        let declared = plugins
            .iter()
            .find_map(|plugin| context.files.declared(plugin));
        help.push(match declared {
            Some(declared) => format!(
                "{}   (declared in {})",
                context.manager.sync(context.python()),
                declared.place
            ),
            None => context.manager.add(&plugins, context.python()),
        });
    }
    help.push("or for once without them: breakmycode . -- -o addopts=".to_owned());
    Some(advice("E020", headline, places, why, help))
}

/// E020b: `required_plugins` and `minversion`.
pub(super) fn requirements(text: &str, context: &Context) -> Option<Advice> {
    if let Some(list) = rest_of_line(text, "Missing required plugins: ") {
        let plugins: Vec<&str> = list
            .split(", ")
            .map(str::trim)
            .filter(|plugin| !plugin.is_empty())
            .collect();
        let place = context
            .files
            .pytest_setting("required_plugins")
            .map(|(value, file)| format!("{file}   required_plugins = {}", line(&value)));
        return Some(advice(
            "E020b",
            format!("required plugins are not installed: {}", line(list)),
            place.into_iter().collect(),
            vec![format!("run with {}", context.of_interpreter())],
            context.add(&plugins),
        ));
    }
    let wanted = between(text, "'minversion' requires pytest-", ",")?;
    let actual =
        rest_of_line(text, ", actual pytest-").map(|version| version.trim_end_matches('\''));
    let place = context
        .files
        .pytest_setting("minversion")
        .map(|(value, file)| format!("{file}   minversion = {}", line(&value)));
    Some(advice(
        "E020b",
        format!(
            "the project requires pytest {} or newer, installed is {}",
            line(wanted),
            actual.map_or_else(|| "an older one".to_owned(), line)
        ),
        place.into_iter().collect(),
        vec![format!("run with {}", context.of_interpreter())],
        context.add(&[&format!("pytest>={}", line(wanted))]),
    ))
}

/// E021: a plugin that is named in `-p`, `PYTEST_PLUGINS` or `pytest_plugins` cannot be imported.
pub(super) fn plugin_module(text: &str, context: &Context) -> Option<Advice> {
    let plugin = line(between(text, "Error importing plugin \"", "\"")?);
    let after = text
        .split_once("Error importing plugin \"")
        .map(|(_, after)| after)
        .unwrap_or_default();
    let module = between(after, "No module named '", "'").map(line);
    let headline = match &module {
        Some(module) => {
            format!("the plugin `{plugin}` cannot be imported: missing module `{module}`")
        }
        None => format!("the plugin `{plugin}` cannot be imported"),
    };
    let mut why = vec![
        "it is named by -p in addopts, by PYTEST_PLUGINS, or by pytest_plugins in a conftest.py"
            .to_owned(),
    ];
    let module = module.unwrap_or_else(|| plugin.clone());
    let help = match context.files.own_module(&module) {
        Some(folder) => {
            let folder = if folder.is_empty() {
                ".".to_owned()
            } else {
                folder
            };
            why.push(format!("`{module}` is the project's own, in ./{folder}"));
            vec![
                format!("breakmycode . -- -o pythonpath={}", quote(&folder)),
                format!("or: {}", context.files.setting_line("pythonpath", &folder)),
            ]
        }
        None => super::imports::add_package(&module, context),
    };
    Some(advice("E021", headline, Vec::new(), why, help))
}

/// E023: Django without its settings. `text` is any message about it.
pub(super) fn django(text: &str, places: Vec<String>, context: &Context) -> Advice {
    let configured = context.files.pytest_setting("DJANGO_SETTINGS_MODULE");
    let project = context.files.django_project();
    let mut why = Vec::new();
    let mut help = Vec::new();
    let headline = match &configured {
        Some((value, file)) => {
            why.push(format!("{file} names {}", line(value)));
            format!(
                "Django's settings module `{}` cannot be imported",
                line(value)
            )
        }
        None => "Django does not know its settings: DJANGO_SETTINGS_MODULE is not set".to_owned(),
    };
    if let Some(module) = between(text, "No module named '", "'") {
        why.push(format!(
            "there is no module `{}` on the import path",
            line(module)
        ));
    }
    match &project {
        Some((file, settings)) => {
            let said = settings
                .as_ref()
                .map_or_else(String::new, |settings| format!(" and names {settings}"));
            why.push(format!("{file} exists{said}"));
            if let Some(settings) = settings
                .as_ref()
                .filter(|settings| configured.as_ref().map(|(value, _)| value) != Some(settings))
            {
                help.push(
                    context
                        .files
                        .setting_line("DJANGO_SETTINGS_MODULE", settings),
                );
            }
            if let Some((folder, _)) = file.rsplit_once('/') {
                help.push(context.files.setting_line("pythonpath", folder));
            }
        }
        None => why.push("no manage.py was found".to_owned()),
    }
    if project.is_none()
        && let Some((value, _)) = &configured
        && let Some(folder) = context
            .files
            .own_module(value)
            .filter(|folder| !folder.is_empty())
    {
        why.push(format!("`{}` lies in ./{folder}", line(value)));
        help.push(context.files.setting_line("pythonpath", &folder));
    }
    if context.interpreter.is_some() && !context.has_plugin("pytest-django") {
        why.push("pytest-django, which reads that setting, is not installed".to_owned());
        help.extend(context.add(&["pytest-django"]));
    }
    if help.is_empty() {
        help.push(
            context
                .files
                .setting_line("DJANGO_SETTINGS_MODULE", "your_project.settings"),
        );
    }
    advice("E023", headline, places, why, help)
}

/// E020: the configuration cannot be read. pytest writes one line beginning with `ERROR: ` and exits with 4.
pub(super) fn unreadable_settings(text: &str, context: &Context) -> Option<Advice> {
    let said = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("ERROR: "))?;
    let root = context.files.root().to_string_lossy();
    let said = said.replace(&format!("{root}/"), "");
    let syntax = [
        "unexpected",
        "at line",
        "no section header",
        "duplicate",
        "Expected",
        "Invalid",
        "not valid",
    ];
    if !syntax.iter().any(|word| said.contains(word)) {
        return None;
    }
    let file = said
        .split(':')
        .next()
        .filter(|file| file.ends_with(".ini") || file.ends_with(".toml") || file.ends_with(".cfg"));
    let headline = match file {
        Some(file) => format!("{file} cannot be read"),
        None => "pytest's configuration cannot be read".to_owned(),
    };
    Some(advice(
        "E020",
        headline,
        Vec::new(),
        vec![line(&said)],
        vec!["correct the file; python -m pytest --version then starts again".to_owned()],
    ))
}

/// E028: a path or test that does not exist.
pub(super) fn nothing_there(text: &str, context: &Context) -> Option<Advice> {
    let root = context.files.root().to_string_lossy();
    let shown = |path: &str| line(&super::traceback::relative(path, &root));
    if let Some(path) = rest_of_line(text, "ERROR: file or directory not found: ") {
        let configured = context
            .files
            .pytest_setting("testpaths")
            .filter(|(value, _)| value.split_whitespace().any(|part| part == path));
        let why = configured.map(|(_, file)| format!("{file} names it in testpaths"));
        return Some(advice(
            "E028",
            format!("{} does not exist", shown(path)),
            Vec::new(),
            why.into_iter().collect(),
            vec!["paths are relative to the project's folder".to_owned()],
        ));
    }
    let test = rest_of_line(text, "ERROR: not found: ")?;
    Some(advice(
        "E028",
        format!("there is no test {}", shown(test)),
        Vec::new(),
        Vec::new(),
        vec![format!(
            "{} -m pytest --collect-only -q   lists the tests there are",
            quote(context.python())
        )],
    ))
}
