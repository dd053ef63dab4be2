use super::*;

fn candidate(found_by: &str, file: &str, fate: Fate) -> Considered {
    Considered {
        found_by: found_by.to_owned(),
        executable: Some(file.into()),
        fate,
    }
}

#[test]
fn missing_pytest_lists_who_was_asked_and_the_managers_command() {
    let error = EnvironmentError::NoPytest {
        root: "/home/dev/shop".into(),
        asked: None,
        considered: vec![
            candidate(
                "project .venv",
                "/home/dev/shop/.venv/bin/python",
                Fate::Unfit(Unfit::NoPytest {
                    version: (3, 12, 1),
                }),
            ),
            Considered {
                found_by: "VIRTUAL_ENV".to_owned(),
                executable: None,
                fate: Fate::Absent("unset".to_owned()),
            },
        ],
        offered: vec!["/home/dev/shop/.tox/py312".into()],
        manager: Manager::Poetry,
    };
    assert_eq!(
        error.advice(),
        Advice {
            code: "E010".to_owned(),
            headline: "pytest is not installed for any interpreter of this project".to_owned(),
            places: vec![
                "project .venv  .venv/bin/python  Python 3.12.1 without pytest".to_owned(),
                "VIRTUAL_ENV  unset".to_owned(),
            ],
            why: vec!["the project looks managed by poetry".to_owned()],
            help: vec![
                "poetry add -G dev pytest".to_owned(),
                "has pytest: breakmycode . --python .tox/py312".to_owned(),
                "other interpreter: breakmycode . --python path/to/python".to_owned(),
            ],
        }
    );
}

#[test]
fn pip_is_not_sent_into_the_systems_python() {
    let help = |found_by: &str| {
        EnvironmentError::NoPytest {
            root: "/home/dev/shop".into(),
            asked: None,
            considered: vec![candidate(
                found_by,
                "/usr/bin/python3",
                Fate::Unfit(Unfit::NoPytest {
                    version: (3, 12, 1),
                }),
            )],
            offered: vec![],
            manager: Manager::Pip,
        }
        .advice()
        .help
        .remove(0)
    };
    assert_eq!(
        help("PATH python3"),
        "python3 -m venv .venv && .venv/bin/python -m pip install pytest"
    );
    assert_eq!(
        help("VIRTUAL_ENV"),
        "/usr/bin/python3 -m pip install pytest"
    );
}

#[test]
fn a_broken_environment_is_named_by_its_folder_with_the_way_to_renew_it() {
    let folder = tempfile::tempdir().unwrap();
    let environment = folder.path().join(".venv");
    std::fs::create_dir_all(&environment).unwrap();
    std::fs::write(environment.join("pyvenv.cfg"), "").unwrap();
    let error = EnvironmentError::Broken {
        root: folder.path().to_owned(),
        executable: environment.join("bin/python"),
        found_by: "project .venv".to_owned(),
        fault: Fault::BaseMoved {
            home: "/opt/python3.9/bin".into(),
        },
        manager: Manager::Uv,
    };
    let advice = error.advice();
    assert_eq!(
        advice.headline,
        "`.venv` is broken: its base interpreter in /opt/python3.9/bin no longer exists"
    );
    assert_eq!(advice.help[0], "uv venv --clear && uv sync");
}

#[test]
fn a_wrong_version_suggests_one_that_suits() {
    let error = EnvironmentError::WrongVersion {
        root: "/home/dev/shop".into(),
        executable: "/usr/bin/python3".into(),
        found_by: "PATH python3".to_owned(),
        version: (3, 10, 4),
        requires: ">=3.11,<3.13 (pyproject.toml)".to_owned(),
        manager: Manager::Pip,
    };
    let advice = error.advice();
    assert_eq!(
        advice.headline,
        "this project needs Python >=3.11,<3.13 (pyproject.toml), the chosen interpreter is 3.10.4"
    );
    assert_eq!(advice.help[0], "breakmycode . --python 3.12");
}

#[test]
fn every_error_reads_after_cannot() {
    let errors = [
        EnvironmentError::NoPytest {
            root: "/shop".into(),
            asked: None,
            considered: vec![],
            offered: vec![],
            manager: Manager::Uv,
        },
        EnvironmentError::SeveralProjects {
            path: "/shop".into(),
            roots: vec![("/shop/a".into(), 1), ("/shop/b".into(), 0)],
        },
        EnvironmentError::DiffersFromActive {
            chosen: "/shop/.venv".into(),
            active: "/envs/a".into(),
        },
    ];
    let texts: Vec<String> = errors
        .iter()
        .map(|error| format!("cannot {error}"))
        .collect();
    assert_eq!(
        texts,
        [
            "cannot run the tests of /shop: no interpreter of this project has pytest 7.0 or newer",
            "cannot choose a project: /shop has none itself, but 2 below it",
            "cannot use the active environment /envs/a and /shop/.venv of the project at once",
        ]
    );
}
