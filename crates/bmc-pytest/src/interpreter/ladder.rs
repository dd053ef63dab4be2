//! Walks the places an interpreter may be in, asks each, and takes the first that is fit.
//!
//! What counts as fit: it answers in time, its version suits `requires-python`, it has pytest 7.0 or newer, and it is not our own
//! environment. Every place is kept with what became of it. Must not go past an interpreter that the user asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::metadata::{Metadata, display};
use super::ownership::{canonical, owner, private_tool};
use super::places::{self, Place, Rung, What};
use super::probe::{self, Question};
use super::root::find_root;
use super::specifier::{Constraint, release_numbers};
use super::{
    Considered, Discovery, EnvironmentError, Fate, Fault, Interpreter, Manager, Note, ProbeResult,
    Request, Root, Unfit,
};

/// Oldest pytest whose hooks the plugin uses.
const OLDEST_PYTEST: [u32; 2] = [7, 0];

/// Oldest Python the plugin is written for.
const OLDEST_PYTHON: (u32, u32, u32) = (3, 8, 0);

/// How many environments of tox and nox are asked when nothing else was found: it only serves the error text.
const OFFERS: usize = 4;

/// Finds the interpreter for a project, asking no more candidates than needed.
pub fn discover(request: &Request<'_>) -> Discovery {
    climb(request, false, probe::TIME_LIMIT)
}

/// Does what [`discover`] does, and asks every other candidate too, to show the whole picture.
pub fn survey(request: &Request<'_>) -> Discovery {
    climb(request, true, probe::TIME_LIMIT)
}

fn climb(request: &Request<'_>, ask_all: bool, limit: Duration) -> Discovery {
    let root = match find_root(request.path) {
        Ok(root) => root,
        Err(error) => {
            return Discovery {
                root: Root {
                    path: canonical(request.path),
                    marker: None,
                    git: None,
                },
                manager: Manager::Pip,
                chosen: None,
                considered: Vec::new(),
                notes: Vec::new(),
                error: Some(error),
            };
        }
    };
    let metadata = Metadata::read(&root.path, root.git.as_deref());
    let mut climber = Climber {
        request,
        root: &root,
        metadata: &metadata,
        limit,
        version: None,
        known: BTreeMap::new(),
    };
    let places = climber.places();
    let mut considered = Vec::with_capacity(places.len());
    let mut chosen: Option<(usize, Interpreter)> = None;
    for (at, place) in places.iter().enumerate() {
        let (executable, fate) = climber.look(place, chosen.is_some() && !ask_all);
        let fate = match fate {
            Ok(interpreter) if chosen.is_none() => {
                chosen = Some((at, interpreter));
                Fate::Chosen
            }
            Ok(_) => Fate::Outranked,
            Err(fate) => fate,
        };
        considered.push(Considered {
            found_by: place.found_by.clone(),
            executable,
            fate,
        });
    }
    let notes = climber.notes(&places, &considered, chosen.as_ref());
    let error = chosen.is_none().then(|| climber.error(&considered));
    let chosen = chosen.map(|(_, interpreter)| interpreter);
    Discovery {
        manager: metadata.manager,
        chosen,
        considered,
        notes,
        error,
        root,
    }
}

struct Climber<'a> {
    request: &'a Request<'a>,
    root: &'a Root,
    metadata: &'a Metadata,
    limit: Duration,
    /// The version that was asked for.
    version: Option<Constraint>,
    /// Which place first led to an interpreter.
    known: BTreeMap<PathBuf, String>,
}

impl Climber<'_> {
    fn places(&mut self) -> Vec<Place> {
        let surroundings = self.request.surroundings;
        let ladder = || {
            places::all(
                self.root,
                self.metadata,
                surroundings,
                self.request.prefer_active,
            )
        };
        let Some(asked) = self.request.explicit else {
            return ladder();
        };
        let Some(version) = asked_version(asked) else {
            return vec![self.asked_place(asked)];
        };
        self.version = Constraint::parse(&format!("=={version}.*"));
        let more = |found_by: &str, files: Vec<PathBuf>| {
            let place = |file| Place {
                found_by: format!("{found_by}{version}"),
                rung: Rung::Explicit,
                what: What::Interpreter(file),
            };
            files.into_iter().map(place).collect::<Vec<Place>>()
        };
        let mut all = ladder();
        all.retain(|place| !matches!(place.what, What::Nothing(_)));
        all.extend(more(
            "pyenv ",
            places::pyenv_versions(surroundings, version),
        ));
        let named = places::named_on_path(surroundings, &format!("python{version}"));
        all.extend(more("PATH python", named));
        all
    }

    /// Resolves a file, folder or name that the user asked for.
    fn asked_place(&self, asked: &str) -> Place {
        let path = match (asked.strip_prefix("~/"), &self.request.surroundings.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(asked),
        };
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        let in_root = self.root.path.join(&path);
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let path = if exists(&absolute) || !exists(&in_root) {
            absolute
        } else {
            in_root
        };
        let what = if path.is_dir() {
            match places::look_into(&path) {
                // A whole installation has no pyvenv.cfg either, but its interpreter is its own file.
                What::Broken(_, Fault::NoConfig) if is_installation(&path) => {
                    What::Interpreter(path.join("bin/python3"))
                }
                other => other,
            }
        } else if !exists(&path) && !asked.contains('/') {
            match places::named_on_path(self.request.surroundings, asked)
                .into_iter()
                .next()
            {
                Some(file) => What::Interpreter(file),
                None => What::Broken(PathBuf::from(asked), Fault::Missing),
            }
        } else {
            What::Interpreter(path)
        };
        Place {
            found_by: "--python".to_owned(),
            rung: Rung::Explicit,
            what,
        }
    }

    fn look(
        &mut self,
        place: &Place,
        decided: bool,
    ) -> (Option<PathBuf>, Result<Interpreter, Fate>) {
        let file = match &place.what {
            What::Nothing(why) => return (None, Err(Fate::Absent(why.clone()))),
            What::Broken(path, fault) => {
                return (
                    Some(path.clone()),
                    Err(Fate::Unfit(Unfit::Broken(fault.clone()))),
                );
            }
            What::Interpreter(file) => file,
        };
        let identity = places::identity(file);
        if let Some(of) = self.known.get(&identity) {
            return (Some(file.clone()), Err(Fate::Repeated { of: of.clone() }));
        }
        self.known.insert(identity, place.found_by.clone());
        if decided {
            return (Some(file.clone()), Err(Fate::NotAsked));
        }
        let result = match self.ask(file) {
            Ok(probe) => self.judge(probe, place).map_err(Fate::Unfit),
            Err(fault) => Err(Fate::Unfit(Unfit::Broken(fault))),
        };
        (Some(file.clone()), result)
    }

    fn ask(&self, file: &Path) -> Result<ProbeResult, Fault> {
        let question = Question {
            folder: &self.root.path,
            vars: &self.request.surroundings.vars,
            limit: self.limit,
        };
        probe::ask(file, &question)
    }

    fn judge(&self, probe: ProbeResult, place: &Place) -> Result<Interpreter, Unfit> {
        // The user's word and the project's own folder stand above any guess about whose environment it is.
        if matches!(place.rung, Rung::Active | Rung::Path)
            && let Some(tool) = owner(&probe, self.request.surroundings)
        {
            return Err(Unfit::Ours { tool });
        }
        let version = probe.version;
        let wrong = |requires: String| Err(Unfit::WrongVersion { version, requires });
        if let Some(asked) = &self.version
            && !asked.allows(version)
        {
            return wrong(format!("{} (--python)", asked.text()));
        }
        if let Some(requires) = &self.metadata.requires
            && !requires.allows(version)
        {
            return wrong(format!(
                "{} ({})",
                requires.text(),
                self.metadata.requires_from
            ));
        }
        if version < OLDEST_PYTHON {
            return wrong(format!(
                ">={}.{} (breakmycode)",
                OLDEST_PYTHON.0, OLDEST_PYTHON.1
            ));
        }
        match &probe.pytest {
            None => return Err(Unfit::NoPytest { version }),
            Some(pytest) if is_old(pytest) => {
                return Err(Unfit::OldPytest {
                    pytest: pytest.clone(),
                });
            }
            Some(_) => {}
        }
        let home = self.request.surroundings.home.as_deref();
        Ok(Interpreter {
            executable: probe.executable.clone(),
            found_by: place.found_by.clone(),
            display: display(&probe.executable, &self.root.path, home),
            probe,
        })
    }

    fn notes(
        &self,
        places: &[Place],
        considered: &[Considered],
        chosen: Option<&(usize, Interpreter)>,
    ) -> Vec<Note> {
        let mut notes = Vec::new();
        let note = |text: String| Note {
            code: None,
            text,
            help: Vec::new(),
        };
        let given = canonical(self.request.path);
        if self.root.path != given && self.root.path.starts_with(&given) {
            notes.push(note(format!(
                "the project was found in {}",
                display(&self.root.path, &given, None)
            )));
        }
        if let Some(text) = &self.metadata.unread {
            notes.push(note(format!(
                "the Python version asked for in {} cannot be understood and was left out: {text}",
                self.metadata.requires_from
            )));
        }
        let Some((at, interpreter)) = chosen else {
            return notes;
        };
        if self.request.explicit.is_none() {
            notes.extend(self.passed_over(&places[..*at], &considered[..*at], interpreter));
            if matches!(places[*at].rung, Rung::Project | Rung::Manager) {
                notes.extend(self.differing_active(interpreter));
            }
        }
        notes
    }

    /// Says which environment should have been used and why it was not.
    fn passed_over(
        &self,
        places: &[Place],
        considered: &[Considered],
        chosen: &Interpreter,
    ) -> Option<Note> {
        let mut both = places.iter().zip(considered);
        let (_, first) = both.find(|(place, candidate)| {
            place.rung != Rung::Path
                && matches!(&candidate.fate, Fate::Unfit(unfit) if !matches!(unfit, Unfit::Ours { .. }))
        })?;
        let error = self.error_for(first, considered)?;
        Some(Note {
            code: Some(error.code().to_owned()),
            text: format!(
                "{} was passed over ({}); using {}",
                first.found_by, first.fate, chosen.display
            ),
            help: error.advice().help,
        })
    }

    fn differing_active(&self, chosen: &Interpreter) -> Option<Note> {
        let surroundings = self.request.surroundings;
        let active = ["VIRTUAL_ENV", "CONDA_PREFIX"]
            .iter()
            .find_map(|name| places::var(surroundings, name))?;
        let active = PathBuf::from(active);
        let resolved = canonical(&active);
        let is_environment = matches!(places::look_into(&active), What::Interpreter(_));
        if !is_environment
            || resolved == canonical(&chosen.probe.prefix)
            || private_tool(&resolved, surroundings).is_some()
            || places::conda_base(surroundings).is_some_and(|base| base == active)
        {
            return None;
        }
        let error = EnvironmentError::DiffersFromActive {
            chosen: chosen.probe.prefix.clone(),
            active,
        };
        let advice = error.advice();
        Some(Note {
            code: Some(advice.code),
            text: advice.headline,
            help: advice.help,
        })
    }

    /// Names the first candidate that exists and cannot be used.
    fn error(&self, considered: &[Considered]) -> EnvironmentError {
        if let (Some(asked), Some(version)) = (self.request.explicit, &self.version) {
            // With a version asked for, the others are no candidates at all; only those of that version can be at fault.
            let other_version = |fate: &Fate| match fate {
                Fate::Unfit(
                    Unfit::WrongVersion { version: found, .. } | Unfit::NoPytest { version: found },
                ) => !version.allows(*found),
                _ => true,
            };
            if considered
                .iter()
                .all(|candidate| other_version(&candidate.fate))
            {
                return EnvironmentError::NoSuchVersion {
                    root: self.root.path.clone(),
                    asked: asked.to_owned(),
                    considered: considered.to_vec(),
                    manager: self.metadata.manager,
                };
            }
            let of_version = considered
                .iter()
                .find(|candidate| !other_version(&candidate.fate));
            if let Some(error) =
                of_version.and_then(|candidate| self.error_for(candidate, considered))
            {
                return error;
            }
        }
        considered
            .iter()
            .find_map(|candidate| self.error_for(candidate, considered))
            .unwrap_or_else(|| self.no_pytest(considered))
    }

    fn error_for(
        &self,
        candidate: &Considered,
        considered: &[Considered],
    ) -> Option<EnvironmentError> {
        let Fate::Unfit(unfit) = &candidate.fate else {
            return None;
        };
        let root = self.root.path.clone();
        let executable = candidate.executable.clone().unwrap_or_default();
        let (found_by, manager) = (candidate.found_by.clone(), self.metadata.manager);
        match unfit {
            Unfit::Broken(fault) => Some(EnvironmentError::Broken {
                root,
                executable,
                found_by,
                fault: fault.clone(),
                manager,
            }),
            Unfit::WrongVersion { version, requires } => Some(EnvironmentError::WrongVersion {
                root,
                executable,
                found_by,
                version: *version,
                requires: requires.clone(),
                manager,
            }),
            Unfit::NoPytest { .. } | Unfit::OldPytest { .. } => Some(self.no_pytest(considered)),
            Unfit::Ours { .. } => None,
        }
    }

    fn no_pytest(&self, considered: &[Considered]) -> EnvironmentError {
        EnvironmentError::NoPytest {
            root: self.root.path.clone(),
            asked: self.request.explicit.map(str::to_owned),
            considered: considered.to_vec(),
            offered: self.offers(),
            manager: self.metadata.manager,
        }
    }

    /// Finds environments of tox and nox that would do, newest first. They are only named, never used unasked: which of them is meant is
    /// for the user to say.
    fn offers(&self) -> Vec<PathBuf> {
        let folders = [".tox", ".nox"].map(|name| self.root.path.join(name));
        let mut found: Vec<_> = folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
            .flatten()
            .map(|entry| {
                (
                    entry
                        .metadata()
                        .and_then(|metadata| metadata.modified())
                        .ok(),
                    entry.path(),
                )
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        found
            .into_iter()
            .map(|(_, folder)| folder)
            .filter_map(|folder| match places::look_into(&folder) {
                What::Interpreter(file) => Some((folder, file)),
                What::Broken(..) | What::Nothing(_) => None,
            })
            .take(OFFERS)
            .filter(|(_, file)| {
                let place = Place {
                    found_by: String::new(),
                    rung: Rung::Project,
                    what: What::Interpreter(file.clone()),
                };
                self.ask(file)
                    .is_ok_and(|probe| self.judge(probe, &place).is_ok())
            })
            .map(|(folder, _)| folder)
            .collect()
    }
}

fn is_old(pytest: &str) -> bool {
    let numbers = release_numbers(pytest);
    // A version that cannot be read (a checkout without metadata) is given the benefit of the doubt.
    !numbers.is_empty() && numbers.as_slice() < OLDEST_PYTEST.as_slice()
}

fn is_installation(folder: &Path) -> bool {
    let file = folder.join("bin/python3");
    canonical(&file).starts_with(canonical(folder)) && file.exists()
}

/// Reads `3`, `3.12`, `3.12.1` or `python3.12` as a version; anything else is a path or a name.
fn asked_version(asked: &str) -> Option<&str> {
    let version = asked.strip_prefix("python").unwrap_or(asked);
    let parts: Vec<&str> = version.split('.').collect();
    let numbers = parts
        .iter()
        .all(|part| !part.is_empty() && part.len() < 4 && part.bytes().all(|b| b.is_ascii_digit()));
    (numbers && parts.len() <= 3).then_some(version)
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
