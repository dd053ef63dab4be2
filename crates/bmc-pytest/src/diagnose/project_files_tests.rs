use super::*;

fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, ProjectFiles) {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let files = ProjectFiles::at(folder.path());
    (folder, files)
}

#[test]
fn a_dependency_is_found_wherever_it_is_declared() {
    let table: &[(&str, &str, &str, Part)] = &[
        (
            "pyproject.toml",
            "[project]\ndependencies = ['HTTPX[http2]>=1']",
            "pyproject.toml, [project] dependencies",
            Part::Main,
        ),
        (
            "pyproject.toml",
            "[project.optional-dependencies]\ntest = ['httpx']",
            "pyproject.toml, [project.optional-dependencies] test",
            Part::Extra("test".to_owned()),
        ),
        (
            "pyproject.toml",
            "[dependency-groups]\ndev = [{include-group='x'}, 'httpx']",
            "pyproject.toml, [dependency-groups] dev",
            Part::Group("dev".to_owned()),
        ),
        (
            "pyproject.toml",
            "[tool.poetry.dependencies]\nhttpx = '^1'",
            "pyproject.toml, [tool.poetry.dependencies]",
            Part::Main,
        ),
        (
            "pyproject.toml",
            "[tool.poetry.group.dev.dependencies]\nhttpx = '^1'",
            "pyproject.toml, [tool.poetry.group.dev.dependencies]",
            Part::Group("dev".to_owned()),
        ),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n  a\n  httpx>1\n",
            "setup.cfg, install_requires",
            Part::Main,
        ),
        (
            "setup.cfg",
            "[options.extras_require]\ntest =\n  a\n  httpx\n[x]\n",
            "setup.cfg, extra `test`",
            Part::Extra("test".to_owned()),
        ),
        (
            "setup.py",
            "setup(install_requires=['a', 'httpx>=1'])",
            "setup.py",
            Part::Main,
        ),
        (
            "Pipfile",
            "[dev-packages]\nhttpx = '*'",
            "Pipfile, [dev-packages]",
            Part::Main,
        ),
        (
            "requirements-dev.txt",
            "# x\nhttpx==1\n",
            "requirements-dev.txt",
            Part::File("requirements-dev.txt".to_owned()),
        ),
        (
            "requirements/test.txt",
            "httpx\n",
            "requirements/test.txt",
            Part::File("requirements/test.txt".to_owned()),
        ),
        (
            "environment.yml",
            "dependencies:\n  - pip:\n    - httpx>=1\n",
            "environment.yml",
            Part::Main,
        ),
    ];
    for (file, text, place, part) in table {
        let (_keep, files) = project(&[(file, text)]);
        let expected = Declared {
            place: (*place).to_owned(),
            part: part.clone(),
        };
        assert_eq!(files.declared("httpx"), Some(expected), "{file}: {text}");
        assert_eq!(files.declared("http"), None, "{file}: {text}");
    }
}

#[test]
fn the_projects_own_modules_are_found_with_their_folder() {
    let (_keep, files) = project(&[
        ("src/shop/__init__.py", ""),
        ("tool.py", ""),
        ("backend/api/app.py", ""),
        (".venv/pyvenv.cfg", ""),
        (".venv/lib/httpx/__init__.py", ""),
    ]);
    assert_eq!(files.own_module("shop.cart").as_deref(), Some("src"));
    assert_eq!(files.own_module("tool").as_deref(), Some(""));
    assert_eq!(files.own_module("api").as_deref(), Some("backend"));
    for module in ["httpx", "..", "", "a b"] {
        assert_eq!(files.own_module(module), None, "{module}");
    }
}

#[test]
fn settings_of_pytest_are_found_as_pytest_finds_them() {
    let (_keep, files) = project(&[
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\ntestpaths = ['a', 'b']",
        ),
        ("setup.cfg", "[tool:pytest]\ntestpaths = c\n"),
    ]);
    assert_eq!(
        files.pytest_setting("testpaths"),
        Some(("a b".to_owned(), "pyproject.toml"))
    );
    let (_keep, files) = project(&[
        ("pytest.ini", "[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = c\n"),
    ]);
    assert_eq!(files.pytest_setting("testpaths"), None);
    let (_keep, files) = project(&[
        ("tox.ini", "[tox]\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = c\n"),
    ]);
    assert_eq!(
        files.pytest_setting("testpaths"),
        Some(("c".to_owned(), "setup.cfg"))
    );
    assert_eq!(
        files.setting_line("pythonpath", "src"),
        "setup.cfg, [tool:pytest]: pythonpath = src"
    );
}

#[test]
fn the_settings_module_is_read_from_manage_py() {
    let text = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n";
    let (_keep, files) = project(&[("backend/manage.py", text)]);
    assert_eq!(
        files.django_project(),
        Some((
            "backend/manage.py".to_owned(),
            Some("shop.settings".to_owned())
        ))
    );
    let (_keep, files) = project(&[("manage.py", "x = 'DJANGO_SETTINGS_MODULE'")]);
    assert_eq!(files.django_project(), Some(("manage.py".to_owned(), None)));
}

#[test]
fn files_with_tests_under_another_name_are_found() {
    let (_keep, files) = project(&[
        ("checks/shop.py", "class X:\n    def test_a(self): pass\n"),
        ("a/b.py", ""),
        ("tests/test_x.py", ""),
    ]);
    assert_eq!(
        files.test_like_files(5),
        (
            vec!["tests/test_x.py".to_owned()],
            vec!["checks/shop.py".to_owned()]
        )
    );
}
