use super::*;
use crate::interpreter::desk::{Desk, FIT, Fake};

fn fates(discovery: &Discovery) -> Vec<String> {
    discovery
        .considered
        .iter()
        .map(|c| format!("{}: {}", c.found_by, c.fate))
        .collect()
}

fn chosen(discovery: &Discovery) -> (&str, &str) {
    let interpreter = discovery
        .chosen
        .as_ref()
        .unwrap_or_else(|| panic!("{discovery:#?}"));
    (&interpreter.found_by, &interpreter.display)
}

#[test]
fn the_projects_environment_wins_over_path_and_nothing_else_is_started() {
    let desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    desk.script("bin/python3", "touch was-started");
    let discovery = desk.discover();
    assert_eq!(chosen(&discovery), ("project .venv", ".venv/bin/python"));
    assert_eq!(
        fates(&discovery),
        [
            "project .venv: chosen",
            "VIRTUAL_ENV: unset",
            "PATH python3: not needed"
        ]
    );
    assert_eq!((discovery.error, discovery.notes), (None, vec![]));
    assert!(!desk.root().join("was-started").exists());
}

#[test]
fn a_survey_asks_everyone() {
    let desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    desk.interpreter(
        "bin/python3",
        &Fake {
            pytest: None,
            version: (3, 11, 7),
            ..FIT
        },
    );
    let surroundings = desk.surroundings();
    let root = desk.root();
    let request = Request {
        path: &root,
        explicit: None,
        prefer_active: false,
        surroundings: &surroundings,
    };
    assert_eq!(
        fates(&survey(&request)),
        [
            "project .venv: chosen",
            "VIRTUAL_ENV: unset",
            "PATH python3: Python 3.11.7 without pytest"
        ]
    );
}

#[test]
fn a_differing_active_environment_loses_with_a_note_and_wins_on_request() {
    let mut desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    desk.environment("active", &FIT);
    desk.set("VIRTUAL_ENV", desk.top.join("active"));
    let discovery = desk.discover();
    assert_eq!(chosen(&discovery).0, "project .venv");
    let note = &discovery.notes[0];
    assert_eq!(
        (note.code.as_deref(), note.help.as_slice()),
        (Some("E014"), &["breakmycode . --active".to_owned()][..])
    );
    let discovery = desk.discover_with(None, true);
    assert_eq!(
        (chosen(&discovery).0, discovery.notes.len()),
        ("VIRTUAL_ENV", 0)
    );
}

#[test]
fn the_active_environment_being_the_projects_own_is_no_news() {
    let mut desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    desk.set("VIRTUAL_ENV", desk.root().join(".venv"));
    let discovery = desk.discover();
    assert_eq!(
        fates(&discovery)[1],
        "VIRTUAL_ENV: the same as project .venv"
    );
    assert_eq!(discovery.notes, []);
}

#[test]
fn an_explicit_interpreter_never_falls_through() {
    let desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    let file = desk.interpreter(
        "bare/bin/python",
        &Fake {
            pytest: None,
            ..FIT
        },
    );
    let discovery = desk.discover_with(file.to_str(), false);
    assert_eq!(discovery.chosen, None);
    let advice = discovery.error.unwrap().advice();
    assert_eq!(advice.code, "E010");
    assert!(
        advice.headline.starts_with("pytest is not installed for "),
        "{advice:?}"
    );
    let discovery = desk.discover_with(Some("/nonexistent/python"), false);
    assert_eq!(
        discovery.error.unwrap().advice().headline,
        "`/nonexistent/python` is broken: no such file"
    );
}

#[test]
fn an_explicit_folder_is_looked_into_and_may_be_relative_to_the_project() {
    let desk = Desk::new(&[]);
    desk.environment("shop/envs/main", &FIT);
    assert_eq!(
        chosen(&desk.discover_with(Some("envs/main"), false)),
        ("--python", "envs/main/bin/python")
    );
    let folder = desk.top.join("installed");
    desk.interpreter("installed/bin/python3", &FIT);
    assert_eq!(
        chosen(&desk.discover_with(folder.to_str(), false)).0,
        "--python"
    );
    desk.interpreter("bin/python3.12-debug", &FIT);
    assert_eq!(
        chosen(&desk.discover_with(Some("python3.12-debug"), false)).0,
        "--python"
    );
}

#[test]
fn an_explicit_version_takes_the_project_then_pyenv_then_path() {
    let desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    assert_eq!(
        chosen(&desk.discover_with(Some("3.12"), false)).0,
        "project .venv"
    );
    desk.interpreter(
        "bin/python3.11",
        &Fake {
            version: (3, 11, 1),
            ..FIT
        },
    );
    assert_eq!(
        chosen(&desk.discover_with(Some("python3.11"), false)).0,
        "PATH python3.11"
    );
    desk.interpreter(
        "home/.pyenv/versions/3.11.9/bin/python",
        &Fake {
            version: (3, 11, 9),
            ..FIT
        },
    );
    assert_eq!(
        chosen(&desk.discover_with(Some("3.11"), false)).0,
        "pyenv 3.11"
    );
    let error = desk.discover_with(Some("3.10"), false).error.unwrap();
    assert_eq!(
        (error.code(), error.advice().headline.as_str()),
        ("E011", "there is no Python 3.10 with pytest to be found")
    );
}

#[test]
fn an_explicit_version_without_pytest_names_that_interpreter() {
    let desk = Desk::new(&[]);
    desk.environment("shop/.venv", &FIT);
    desk.interpreter(
        "bin/python3.11",
        &Fake {
            version: (3, 11, 1),
            pytest: None,
            ..FIT
        },
    );
    let error = desk.discover_with(Some("3.11"), false).error.unwrap();
    assert_eq!(error.code(), "E010");
    assert!(
        error
            .advice()
            .places
            .iter()
            .any(|line| line.contains("bin/python3.11  Python 3.11.1 without pytest"))
    );
}

#[test]
fn an_unfit_project_environment_is_passed_over_with_a_note() {
    let desk = Desk::new(&[("uv.lock", "")]);
    desk.environment(
        "shop/.venv",
        &Fake {
            pytest: None,
            ..FIT
        },
    );
    desk.interpreter("bin/python3", &FIT);
    let discovery = desk.discover();
    assert_eq!(chosen(&discovery).0, "PATH python3");
    let note = &discovery.notes[0];
    assert_eq!(note.code.as_deref(), Some("E010"));
    assert!(
        note.text
            .starts_with("project .venv was passed over (Python 3.12.1 without pytest); using "),
        "{note:?}"
    );
    assert_eq!(note.help[0], "uv add --dev pytest");
}

#[test]
fn the_first_unfit_candidate_is_named_in_the_error() {
    let desk = Desk::new(&[(
        "pyproject.toml",
        "[project]\nname='shop'\nrequires-python='>=3.13'\n",
    )]);
    desk.environment("shop/.venv", &FIT);
    desk.interpreter(
        "bin/python3",
        &Fake {
            pytest: None,
            ..FIT
        },
    );
    let error = desk.discover().error.unwrap();
    assert_eq!(
        error,
        EnvironmentError::WrongVersion {
            root: desk.root(),
            executable: desk.root().join(".venv/bin/python"),
            found_by: "project .venv".to_owned(),
            version: (3, 12, 1),
            requires: ">=3.13 (pyproject.toml)".to_owned(),
            manager: Manager::Pip,
        }
    );
}

#[test]
fn old_pytest_and_old_python_are_unfit() {
    let desk = Desk::new(&[]);
    desk.environment(
        "shop/.venv",
        &Fake {
            pytest: Some("6.2.5"),
            ..FIT
        },
    );
    desk.interpreter(
        "bin/python3",
        &Fake {
            version: (3, 6, 15),
            pytest: Some("7.0.1"),
            ..FIT
        },
    );
    let discovery = desk.discover();
    assert_eq!(
        fates(&discovery),
        [
            "project .venv: pytest 6.2.5 is older than 7.0",
            "VIRTUAL_ENV: unset",
            "PATH python3: Python 3.6.15, but >=3.8 (breakmycode) is required",
        ]
    );
    assert_eq!(
        discovery.error.unwrap().advice().headline,
        "pytest 6.2.5 is too old: breakmycode needs 7.0 or newer"
    );
}

#[test]
fn our_own_environment_on_path_is_stepped_over_without_a_word() {
    let mut desk = Desk::new(&[]);
    desk.environment(
        "own",
        &Fake {
            pytest: None,
            ..FIT
        },
    );
    desk.interpreter("bin/python3", &FIT);
    std::fs::rename(
        desk.top.join("own/bin/python"),
        desk.top.join("own/bin/python3"),
    )
    .unwrap();
    desk.set("PATH", format!("{0}/own/bin:{0}/bin", desk.top.display()));
    let discovery = desk.discover();
    assert_eq!(chosen(&discovery).0, "PATH python3");
    assert!(
        fates(&discovery)[2].contains("private environment"),
        "{:?}",
        fates(&discovery)
    );
    assert_eq!(discovery.notes, []);
}

#[test]
fn environments_of_tox_and_nox_are_offered_but_not_chosen() {
    let desk = Desk::new(&[]);
    desk.environment("shop/.tox/py312", &FIT);
    desk.environment(
        "shop/.nox/lint",
        &Fake {
            pytest: None,
            ..FIT
        },
    );
    let discovery = desk.discover();
    assert_eq!(discovery.chosen, None);
    let advice = discovery.error.unwrap().advice();
    assert_eq!(
        advice.headline,
        "no Python interpreter was found for this project"
    );
    assert!(
        advice
            .help
            .contains(&"has pytest: breakmycode . --python .tox/py312".to_owned()),
        "{advice:?}"
    );
}

#[test]
fn several_projects_are_an_error_and_one_below_is_a_note() {
    let desk = Desk::new(&[]);
    std::fs::remove_file(desk.root().join("pyproject.toml")).unwrap();
    desk.write("shop/a/setup.py", "");
    desk.environment("shop/a/.venv", &FIT);
    let discovery = desk.discover();
    assert_eq!(chosen(&discovery).1, ".venv/bin/python");
    assert_eq!(discovery.notes[0].text, "the project was found in a");
    desk.write("shop/b/setup.py", "");
    desk.write("shop/b/test_b.py", "");
    let advice = desk.discover().error.unwrap().advice();
    assert_eq!(
        (advice.code.as_str(), advice.help[0].as_str()),
        ("E012", "breakmycode b")
    );
    assert_eq!(advice.places, ["a  0 test files", "b  1 test file"]);
}

#[test]
fn versions_are_told_from_paths() {
    for text in ["3", "3.12", "3.12.1", "python3.12"] {
        assert!(asked_version(text).is_some(), "{text}");
    }
    for text in [
        "", ".", "./3.12", "python", "3.12-dev", "3.12.1.4", "12345", "pypy3.10", "..", "3..1",
    ] {
        assert_eq!(asked_version(text), None, "{text}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 64, ..Default::default() })]
    #[test]
    fn no_request_makes_it_panic(explicit in "[-~./a-z0-9 ]{0,12}", marker in "(?s).{0,40}") {
        let desk = Desk::new(&[("pyproject.toml", &marker), (".python-version", &marker), ("environment.yml", &marker), (".venv", &marker)]);
        desk.discover_with(Some(&explicit), false);
        if let Some(error) = desk.discover().error {
            error.advice();
        }
    }
}
