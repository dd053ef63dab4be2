//! E021 and E022: a module is missing, or another one was found in its place. The most common trouble, so the most exact words.

use super::project_files::{Declared, Part};
use super::text::{between, count, line};
use super::{Advice, CollectError, Context, advice, tables};
use crate::interpreter::{Manager, quote};

/// Returns the part of a dotted module name that decides what to do: the project's own modules by their full name, others by package.
pub(super) fn subject(module: &str, context: &Context) -> String {
    let module = line(module);
    let top = module.split('.').next().unwrap_or_default();
    if context.files.own_module(top).is_some() {
        return module;
    }
    // `google.protobuf` and `google.auth` are two packages; `httpx._client` is one with `httpx`.
    match tables::package_of(&module) {
        Some(_) if tables::package_of(top).is_none() => {
            module.split('.').take(3).collect::<Vec<&str>>().join(".")
        }
        _ => top.to_owned(),
    }
}

/// Reads `cannot import name 'Cart' from 'shop' (/…/shop.py)` into module, name and file.
pub(super) fn missing_name(message: &str) -> Option<(String, String, Option<String>)> {
    let name = between(message, "cannot import name '", "'")?;
    if message.contains("partially initialized module") {
        return None;
    }
    let module = between(message, "' from '", "'")?;
    let file = message
        .trim_end()
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
        .map(|(_, file)| file);
    Some((
        module.to_owned(),
        name.to_owned(),
        file.filter(|file| file.starts_with('/')).map(str::to_owned),
    ))
}

/// Advice for a module that is not there.
pub(super) fn missing_module(
    module: &str,
    errors: &[&CollectError],
    places: Vec<String>,
    context: &Context,
) -> Advice {
    let headline = format!(
        "missing module `{module}` ({})",
        count(errors.len(), "file")
    );
    if let Some(shadow) = errors
        .iter()
        .find_map(|error| between(&error.message, "; '", "' is not a package"))
    {
        return shadowed(module, shadow, errors, places, context);
    }
    if let Some(folder) = context.files.own_module(module) {
        return own_module(module, &folder, errors, places, context);
    }
    let package = tables::package_of(module);
    let declared = context.files.declared(package.unwrap_or(module));
    let mut why = vec![match &declared {
        Some(declared) => format!(
            "not installed for {}; it IS a declared dependency ({})",
            context.of_interpreter(),
            declared.place
        ),
        None => format!(
            "not installed for {}, and not declared in any file of the project",
            context.of_interpreter()
        ),
    }];
    if let Some(package) = package.filter(|package| !package.eq_ignore_ascii_case(module)) {
        why.push(format!(
            "the package that holds `{module}` is called {package}"
        ));
    }
    let mut help = match &declared {
        Some(declared) => install_declared(declared, context),
        None => add_package(module, context),
    };
    help.push("other interpreter: breakmycode . --python path/to/python".to_owned());
    advice("E021", headline, places, why, help)
}

/// Returns the commands that add the package of a module. A name that is only guessed is said to be a guess: a package of a stranger may
/// be waiting under it.
pub(super) fn add_package(module: &str, context: &Context) -> Vec<String> {
    match tables::package_of(module) {
        Some(package) => context.add(&[package]),
        None => {
            let top = module.split('.').next().unwrap_or(module);
            let command = context.manager.add(&[top], context.python());
            vec![format!(
                "look up which package holds `{module}`; if it has the same name: {command}"
            )]
        }
    }
}

fn install_declared(declared: &Declared, context: &Context) -> Vec<String> {
    let python = quote(context.python());
    let manager = context.manager;
    let command = match (&declared.part, manager) {
        (Part::Main, _) => manager.sync(context.python()),
        (Part::Extra(extra), Manager::Uv) => format!("uv sync --extra {}", quote(extra)),
        (Part::Group(group), Manager::Uv) => format!("uv sync --group {}", quote(group)),
        (Part::Extra(extra), Manager::Poetry) => {
            format!("poetry install --extras {}", quote(extra))
        }
        (Part::Group(group), Manager::Poetry) => format!("poetry install --with {}", quote(group)),
        (Part::Extra(group) | Part::Group(group), Manager::Pdm) => {
            format!("pdm install -G {}", quote(group))
        }
        (
            Part::Extra(extra),
            Manager::Pip | Manager::Conda | Manager::Hatch | Manager::Pipenv | Manager::Pixi,
        ) => {
            format!("{python} -m pip install -e '.[{extra}]'")
        }
        (
            Part::Group(group),
            Manager::Pip | Manager::Conda | Manager::Hatch | Manager::Pipenv | Manager::Pixi,
        ) => {
            format!("{python} -m pip install --group {}", quote(group))
        }
        (Part::File(file), Manager::Uv) => format!("uv pip install -r {}", quote(file)),
        (Part::File(file), _) => format!("{python} -m pip install -r {}", quote(file)),
    };
    vec![command]
}

/// A module of the project itself that cannot be found, or only half of it.
fn own_module(
    module: &str,
    folder: &str,
    errors: &[&CollectError],
    places: Vec<String>,
    context: &Context,
) -> Advice {
    let top = module.split('.').next().unwrap_or(module);
    let shown = if folder.is_empty() {
        format!("./{top}")
    } else {
        format!("./{folder}/{top}")
    };
    let files = count(errors.len(), "file");
    let whole = errors
        .iter()
        .any(|error| error.module.as_deref().is_none_or(|named| named == top));
    if !whole && !context.files.has_module(folder, module) {
        return advice(
            "E022",
            format!("the project has no module `{module}` ({files})"),
            places,
            vec![format!(
                "{shown} exists, but there is no {} in it",
                module.replace('.', "/")
            )],
            vec![
                "was it moved, renamed, or is it a generated file that has not been made yet?"
                    .to_owned(),
            ],
        );
    }
    let layout = match folder {
        "src" => "src layout, not installed".to_owned(),
        "" => "its folder is not on the import path".to_owned(),
        folder => format!("in the folder {folder}, which is not on the import path"),
    };
    let path = if folder.is_empty() { "." } else { folder };
    advice(
        "E022",
        format!("the project's own module `{module}` cannot be imported ({files})"),
        places,
        vec![
            format!("this project has {shown} ({layout})"),
            format!("run with {}", context.of_interpreter()),
        ],
        vec![
            context.manager.install_project(context.python()),
            format!("or: {}", context.files.setting_line("pythonpath", path)),
            format!("or once: breakmycode . -- -o pythonpath={}", quote(path)),
        ],
    )
}

/// A module was found, but it is not the one that was meant: the name is missing from it.
pub(super) fn wrong_name(
    module: &str,
    name: &str,
    file: Option<&str>,
    errors: &[&CollectError],
    places: Vec<String>,
    context: &Context,
) -> Advice {
    let (module, name) = (line(module), line(name));
    let files = count(errors.len(), "file");
    let root = context.files.root().to_string_lossy();
    let relative = file.map(|file| super::traceback::relative(file, &root));
    let own = context.files.own_module(&module);
    let inside = relative.as_deref().is_some_and(super::traceback::is_own);
    match (relative, own) {
        (Some(file), Some(folder)) if !inside => {
            let shown = if folder.is_empty() {
                ".".to_owned()
            } else {
                format!("./{folder}")
            };
            let top = module.split('.').next().unwrap_or(&module);
            advice(
                "E022",
                format!("module `{module}` comes from somewhere else ({files})"),
                places,
                vec![format!(
                    "imported {}, but this project has {shown}/{top}",
                    line(&file)
                )],
                vec![
                    context.manager.install_project(context.python()),
                    format!(
                        "or once: breakmycode . -- -o pythonpath={}",
                        quote(if folder.is_empty() { "." } else { &folder })
                    ),
                ],
            )
        }
        (file, own) => {
            let place = file.map_or_else(|| module.clone(), |file| line(&file));
            let (why, help) = if own.is_some() || inside {
                (
                    format!("{place} has no `{name}`"),
                    "was it renamed or moved? the test may be older than the code".to_owned(),
                )
            } else {
                let package = tables::package_of(&module)
                    .unwrap_or_else(|| module.split('.').next().unwrap_or(&module))
                    .to_owned();
                (
                    format!("{place} is installed in a version without `{name}`"),
                    match context.files.declared(&package) {
                        Some(declared) => format!(
                            "{}   (declared in {})",
                            context.manager.sync(context.python()),
                            declared.place
                        ),
                        None => format!(
                            "install the version of {package} that the project was written for"
                        ),
                    },
                )
            };
            advice(
                "E035",
                format!("`{module}` has no `{name}` ({files})"),
                places,
                vec![why],
                vec![help],
            )
        }
    }
}

/// A file of the project hides an installed package of the same name.
fn shadowed(
    module: &str,
    shadow: &str,
    errors: &[&CollectError],
    places: Vec<String>,
    context: &Context,
) -> Advice {
    let shadow = line(shadow);
    let file = context.files.own_module(&shadow).map(|folder| {
        if folder.is_empty() {
            format!("{shadow}.py")
        } else {
            format!("{folder}/{shadow}.py")
        }
    });
    let file = file.unwrap_or_else(|| format!("{shadow}.py"));
    advice(
        "E022",
        format!(
            "`{shadow}` is a single file where a package is needed for `{module}` ({})",
            count(errors.len(), "file")
        ),
        places,
        vec![format!(
            "{file} hides an installed package of the same name"
        )],
        vec![format!("git mv {} another name", quote(&file))],
    )
}
