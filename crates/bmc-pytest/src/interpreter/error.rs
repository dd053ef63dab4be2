//! Why no interpreter can be used: the codes E010 to E015, as facts and as advice. Must not decide anything.

use std::fmt;
use std::path::{Path, PathBuf};

use bmc_types::Advice;

use super::metadata::display;
use super::specifier::Constraint;
use super::{Considered, Fate, Fault, Manager, Unfit, quote};

/// Why a project's interpreter cannot be used. Reads after "cannot …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// E010: no candidate has a usable pytest.
    #[error("run the tests of {}: no interpreter of this project has pytest 7.0 or newer", root.display())]
    NoPytest {
        /// The project.
        root: PathBuf,
        /// What the user asked for, if anything.
        asked: Option<String>,
        /// Everything that was looked at.
        considered: Vec<Considered>,
        /// Environments of tox and nox that would do.
        offered: Vec<PathBuf>,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E011: the interpreter that was asked for, or the first one that exists, does not work.
    #[error("start the interpreter {} ({found_by}): {fault}", executable.display())]
    Broken {
        /// The project.
        root: PathBuf,
        /// The file or folder.
        executable: PathBuf,
        /// How it was found.
        found_by: String,
        /// What is wrong with it.
        fault: Fault,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E011: no interpreter of the version that was asked for.
    #[error("find Python {asked}: neither the project, nor pyenv, nor PATH has one")]
    NoSuchVersion {
        /// The project.
        root: PathBuf,
        /// The version as it was asked for.
        asked: String,
        /// Everything that was looked at.
        considered: Vec<Considered>,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E012: several projects below the path and none at it.
    #[error("choose a project: {} has none itself, but {} below it", path.display(), roots.len())]
    SeveralProjects {
        /// The path that was given.
        path: PathBuf,
        /// The projects, with the number of files that look like tests.
        roots: Vec<(PathBuf, usize)>,
    },
    /// E013: the Python version does not suit the project.
    #[error(
        "use the interpreter {}: it is Python {}, and {requires} is required",
        executable.display(),
        dotted(*version)
    )]
    WrongVersion {
        /// The project.
        root: PathBuf,
        /// The interpreter.
        executable: PathBuf,
        /// How it was found.
        found_by: String,
        /// Its version.
        version: (u32, u32, u32),
        /// What is asked for, and by whom.
        requires: String,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E014: a warning only. The chosen environment is not the active one.
    #[error("use the active environment {} and {} of the project at once", active.display(), chosen.display())]
    DiffersFromActive {
        /// The environment that won.
        chosen: PathBuf,
        /// The active one, which lost.
        active: PathBuf,
    },
    /// E015: the path that was given cannot be read.
    #[error("open {}: {message}", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}

impl EnvironmentError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPytest { .. } => "E010",
            Self::Broken { .. } | Self::NoSuchVersion { .. } => "E011",
            Self::SeveralProjects { .. } => "E012",
            Self::WrongVersion { .. } => "E013",
            Self::DiffersFromActive { .. } => "E014",
            Self::NoSuchPath { .. } => "E015",
        }
    }

    /// Says what happened, where, why, and what to type.
    pub fn advice(&self) -> Advice {
        let (headline, places, why, help) = match self {
            Self::NoPytest {
                root,
                asked,
                considered,
                offered,
                manager,
            } => no_pytest(root, asked.as_deref(), considered, offered, *manager),
            Self::Broken {
                root,
                executable,
                found_by,
                fault,
                manager,
            } => broken(root, executable, found_by, fault, *manager),
            Self::NoSuchVersion {
                root,
                asked,
                considered,
                manager,
            } => {
                let install = match manager {
                    Manager::Uv => format!("uv venv --python {} && uv sync", quote(asked)),
                    _ => format!("pyenv install {}", quote(asked)),
                };
                (
                    format!("there is no Python {asked} with pytest to be found"),
                    listing(considered, root),
                    vec!["looked in the project, pyenv and PATH; an explicit version never falls back to another".to_owned()],
                    vec![install, other_interpreter()],
                )
            }
            Self::SeveralProjects { path, roots } => several(path, roots),
            Self::WrongVersion {
                root,
                executable,
                found_by,
                version,
                requires,
                manager,
            } => {
                let shown = display(executable, root, None);
                let wanted = Constraint::parse(requires.split(" (").next().unwrap_or(requires));
                let suitable = wanted.and_then(|wanted| {
                    (8..=14).rev().find(|minor| {
                        wanted.allows((3, *minor, 99)) || wanted.allows((3, *minor, 0))
                    })
                });
                let mut help = Vec::new();
                if let Some(minor) = suitable {
                    if *manager == Manager::Uv {
                        help.push(format!("uv venv --clear --python 3.{minor} && uv sync"));
                    }
                    help.push(format!("breakmycode . --python 3.{minor}"));
                }
                help.push(other_interpreter());
                (
                    format!(
                        "this project needs Python {requires}, the chosen interpreter is {}",
                        dotted(*version)
                    ),
                    vec![shown],
                    vec![format!("found by {found_by}")],
                    help,
                )
            }
            Self::DiffersFromActive { chosen, active } => (
                format!(
                    "using the project's environment {}, not the active {}",
                    chosen.display(),
                    active.display()
                ),
                Vec::new(),
                vec!["the project's own environment wins over an active one, as in uv".to_owned()],
                vec!["breakmycode . --active".to_owned()],
            ),
            Self::NoSuchPath { path, message } => (
                format!("{} cannot be opened: {message}", path.display()),
                Vec::new(),
                Vec::new(),
                vec!["breakmycode path/to/project".to_owned()],
            ),
        };
        Advice {
            code: self.code().to_owned(),
            headline,
            places,
            why,
            help,
        }
    }
}

type Parts = (String, Vec<String>, Vec<String>, Vec<String>);

fn other_interpreter() -> String {
    "other interpreter: breakmycode . --python path/to/python".to_owned()
}

fn no_pytest(
    root: &Path,
    asked: Option<&str>,
    considered: &[Considered],
    offered: &[PathBuf],
    manager: Manager,
) -> Parts {
    let existing = |c: &&Considered| !matches!(c.fate, Fate::Absent(_) | Fate::Repeated { .. });
    let first = considered
        .iter()
        .filter(existing)
        .find(|c| !matches!(c.fate, Fate::Unfit(Unfit::Ours { .. })));
    let old = first.and_then(|c| match &c.fate {
        Fate::Unfit(Unfit::OldPytest { pytest }) => Some(pytest),
        _ => None,
    });
    let headline = match (first, old, asked) {
        (None, _, _) => "no Python interpreter was found for this project".to_owned(),
        (_, Some(version), _) => {
            format!("pytest {version} is too old: breakmycode needs 7.0 or newer")
        }
        (_, None, Some(asked)) => {
            format!("pytest is not installed for {asked}, which was asked for")
        }
        (_, None, None) => "pytest is not installed for any interpreter of this project".to_owned(),
    };
    let python = first
        .and_then(|c| c.executable.as_deref())
        .map(|file| display(file, root, None));
    let python = python.unwrap_or_else(|| "python3".to_owned());
    let package = if old.is_some() { "pytest>=7" } else { "pytest" };
    // Without an environment of its own, pip would install into the system's Python; make one first.
    let in_project =
        first.is_some_and(|c| c.found_by != "conda base" && !c.found_by.starts_with("PATH"));
    let command = if manager == Manager::Pip && !in_project && asked.is_none() {
        format!(
            "python3 -m venv .venv && .venv/bin/python -m pip install {}",
            quote(package)
        )
    } else {
        manager.add(&[package], &python)
    };
    let mut help = vec![command];
    help.extend(manager.remark(&[package]));
    help.extend(offered.iter().map(|folder| {
        format!(
            "has pytest: breakmycode . --python {}",
            quote(&display(folder, root, None))
        )
    }));
    help.push(other_interpreter());
    let why = match manager {
        Manager::Pip => Vec::new(),
        other => vec![format!("the project looks managed by {}", other.name())],
    };
    (headline, listing(considered, root), why, help)
}

fn broken(
    root: &Path,
    executable: &Path,
    found_by: &str,
    fault: &Fault,
    manager: Manager,
) -> Parts {
    let environment = match executable.parent() {
        Some(bin) if bin.ends_with("bin") || bin.ends_with("Scripts") => {
            bin.parent().unwrap_or(executable)
        }
        _ => executable,
    };
    let is_environment =
        environment.join("pyvenv.cfg").exists() || matches!(fault, Fault::NoConfig);
    let subject = if is_environment {
        environment
    } else {
        executable
    };
    let shown = display(subject, root, None);
    let mut help = Vec::new();
    if environment.starts_with(root) && environment != root {
        help.push(manager.recreate(&display(environment, root, None)));
    }
    help.push(other_interpreter());
    (
        format!("`{shown}` is broken: {fault}"),
        vec![display(executable, root, None)],
        vec![format!("found by {found_by}")],
        help,
    )
}

fn several(path: &Path, roots: &[(PathBuf, usize)]) -> Parts {
    let places = roots.iter().map(|(root, tests)| {
        let unit = if *tests == 1 {
            "test file"
        } else {
            "test files"
        };
        format!("{}  {tests} {unit}", display(root, path, None))
    });
    // The one with the most tests is the best example to show.
    let best = roots
        .iter()
        .max_by_key(|(_, tests)| *tests)
        .map(|(root, _)| root.as_path())
        .unwrap_or(path);
    (
        format!(
            "{} projects here, and the folder itself is none",
            roots.len()
        ),
        places.collect(),
        vec![format!(
            "no pyproject.toml, pytest.ini, tox.ini, setup.cfg or setup.py in {}",
            path.display()
        )],
        vec![format!("breakmycode {}", quote(&display(best, path, None)))],
    )
}

/// Writes one line for each candidate, with what became of it.
fn listing(considered: &[Considered], root: &Path) -> Vec<String> {
    considered
        .iter()
        .map(|candidate| match &candidate.executable {
            Some(file) => format!(
                "{}  {}  {}",
                candidate.found_by,
                display(file, root, None),
                candidate.fate
            ),
            None => format!("{}  {}", candidate.found_by, candidate.fate),
        })
        .collect()
}

/// Writes a version with its dots.
pub(crate) fn dotted(version: (u32, u32, u32)) -> String {
    format!("{}.{}.{}", version.0, version.1, version.2)
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Chosen => f.write_str("chosen"),
            Fate::Outranked => f.write_str("fit, but an earlier one won"),
            Fate::Absent(why) => f.write_str(why),
            Fate::Unfit(unfit) => unfit.fmt(f),
            Fate::NotAsked => f.write_str("not needed"),
            Fate::Repeated { of } => write!(f, "the same as {of}"),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Broken(fault) => fault.fmt(f),
            Unfit::WrongVersion { version, requires } => {
                write!(f, "Python {}, but {requires} is required", dotted(*version))
            }
            Unfit::NoPytest { version } => write!(f, "Python {} without pytest", dotted(*version)),
            Unfit::OldPytest { pytest } => write!(f, "pytest {pytest} is older than 7.0"),
            Unfit::Ours { tool } => write!(
                f,
                "the private environment that {tool} made for breakmycode"
            ),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => f.write_str("no such file"),
            Fault::DanglingLink { target } => {
                write!(
                    f,
                    "it is a link to {}, which no longer exists",
                    target.display()
                )
            }
            Fault::NoInterpreter => f.write_str("there is no interpreter in it"),
            Fault::NoConfig => f.write_str("it has no pyvenv.cfg, so it is not an environment"),
            Fault::NotExecutable => f.write_str("the file may not be executed"),
            Fault::ForeignFormat => f.write_str("it was made for another system or processor"),
            Fault::BaseMoved { home } => {
                write!(
                    f,
                    "its base interpreter in {} no longer exists",
                    home.display()
                )
            }
            Fault::CannotStart(message) => f.write_str(message),
            Fault::Exit {
                code: Some(code),
                message,
            } if message.is_empty() => {
                write!(f, "it ended with exit code {code}")
            }
            Fault::Exit {
                code: Some(code),
                message,
            } => write!(f, "it ended with exit code {code}: {message}"),
            Fault::Exit {
                code: None,
                message,
            } => write!(f, "it was {message}"),
            Fault::Timeout { seconds } => write!(f, "it did not answer within {seconds} s"),
            Fault::Garbage { text } if text.is_empty() => f.write_str("it answered nothing"),
            Fault::Garbage { text } => write!(f, "it does not answer like Python: {text}"),
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
