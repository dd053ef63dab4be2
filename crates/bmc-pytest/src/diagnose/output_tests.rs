use proptest::prelude::*;

use super::*;
use crate::diagnose::desk::Desk;

const VERSIONS: [&str; 3] = ["7.0", "8.3", "9.2"];

fn told(desk: &Desk, name: &str) -> Vec<Advice> {
    let (code, output) = desk.captured(name);
    let ending = Ending {
        code: (code >= 0).then_some(code),
        signal: (code < 0).then_some(-code),
        ..Ending::default()
    };
    from_output(&ending, &output, &desk.context)
}

fn headlines(advice: &[Advice]) -> Vec<String> {
    advice
        .iter()
        .map(|advice| format!("{} {}", advice.code, advice.headline))
        .collect()
}

/// What is said about each captured case. The same for every version of pytest unless a version is named.
const SAID: &[(&str, &str)] = &[
    (
        "all_deselected",
        "E028 no tests are left: 1 test collected, all of them deselected",
    ),
    (
        "async_def",
        "E027 an async test needs a plugin that runs it",
    ),
    (
        "attribute_removed",
        "E035 importing failed: AttributeError: module 'asyncio' has no attribute 'absent_coroutine' (1 file)",
    ),
    ("broken_ini", "E020 pytest.ini cannot be read"),
    (
        "broken_toml.7.0",
        "E020 pytest's configuration cannot be read",
    ),
    ("broken_toml", "E020 pyproject.toml cannot be read"),
    ("cannot_import_name", "E035 `shop` has no `Cart` (1 file)"),
    (
        "conftest_import",
        "E021 missing module `absent_module` (1 file)",
    ),
    (
        "conftest_other",
        "E035 importing failed: KeyError: 'BMC_ABSENT_VARIABLE' (1 file)",
    ),
    (
        "conftest_syntax",
        "E025 tests/conftest.py:2 is not valid Python: invalid syntax",
    ),
    (
        "crash_on_import",
        "E029 Python was ended by signal 11 (segmentation fault) before it could run the tests",
    ),
    (
        "django_no_manage",
        "E023 Django does not know its settings: DJANGO_SETTINGS_MODULE is not set",
    ),
    (
        "django_no_settings",
        "E023 Django does not know its settings: DJANGO_SETTINGS_MODULE is not set",
    ),
    (
        "django_wrong_settings",
        "E023 Django does not know its settings: DJANGO_SETTINGS_MODULE is not set",
    ),
    (
        "exit_on_import",
        "E029 importing a test file ends the process: SystemExit: 3 (1 file)",
    ),
    ("first_party_src", "E021 missing module `shop` (1 file)"),
    ("fixture_not_found", "E026 there is no fixture `mocker`"),
    (
        "hook_signature",
        "E036 `conftest.py` does not fit this pytest: its hook pytest_collect_file has unknown arguments",
    ),
    (
        "import_mismatch",
        "E024 b/test_same.py was imported from another place",
    ),
    (
        "indentation_error",
        "E025 test_a.py:3 is not valid Python: unexpected indent",
    ),
    (
        "input_on_import",
        "E029 importing a test file waits for input (1 file)",
    ),
    (
        "internal_error",
        "E036 pytest broke down: RuntimeError: modify went wrong",
    ),
    (
        "minversion.7.0",
        "E020b the project requires pytest 99.1 or newer, installed is 7.0.1",
    ),
    (
        "minversion.8.3",
        "E020b the project requires pytest 99.1 or newer, installed is 8.3.5",
    ),
    (
        "minversion.9.2",
        "E020b the project requires pytest 99.1 or newer, installed is 9.2.0",
    ),
    (
        "module_not_found",
        "E021 missing module `httpx_absent` (2 files)",
    ),
    (
        "no_pytest",
        "E010 pytest is not installed for .venv/bin/python",
    ),
    ("no_such_path", "E028 tests/absent does not exist"),
    (
        "no_such_test",
        "E028 there is no test test_a.py::test_absent",
    ),
    ("no_tests", "E028 pytest found no tests"),
    (
        "old_pytest",
        "E010 this pytest is too old for this Python (1 file)",
    ),
    (
        "os_exit_on_import",
        "E029 Python ended with exit code 7 without a word, before it could run the tests",
    ),
    (
        "plugin_module_absent",
        "E021 the plugin `absent_plugin` cannot be imported: missing module `absent_plugin`",
    ),
    (
        "pytest_exit_on_import",
        "E029 importing a test file ends the process: database is down (1 file)",
    ),
    (
        "pytest_plugins_absent",
        "E021 the plugin `absent_plugin.fixtures` cannot be imported: missing module `absent_plugin`",
    ),
    (
        "required_plugins",
        "E020b required plugins are not installed: pytest-absent>=2, pytest-gone",
    ),
    // Captured with Python 3.8, where the name is still there.
    ("stdlib_name_removed.7.0", "E028 pytest found no tests"),
    (
        "stdlib_name_removed",
        "E013 the code uses `collections.Mapping`, which Python 3.10 removed (1 file)",
    ),
    // Python 3.8 notices the missing bracket two lines later.
    (
        "syntax_error.7.0",
        "E025 test_a.py:4 is not valid Python: invalid syntax",
    ),
    (
        "syntax_error",
        "E025 test_a.py:2 is not valid Python: '(' was never closed",
    ),
    (
        "unknown_marker",
        "E020 the mark `absent` is not registered, and marks are strict here (1 file)",
    ),
    (
        "unknown_option_ini",
        "E020 pytest.ini passes --cov=shop --cov-report=term-missing -n, but pytest-cov and pytest-xdist are not installed",
    ),
    (
        "unknown_option_pyproject",
        "E020 pyproject.toml passes --ds=shop.settings --reruns, but pytest-django and pytest-rerunfailures are not installed",
    ),
];

#[test]
fn every_captured_output_is_named_rightly() {
    let desk = Desk::new(&[]);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut seen = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".txt") else {
            continue;
        };
        let case = name.split('.').next().unwrap();
        let said = SAID
            .iter()
            .find(|(known, _)| *known == name)
            .or_else(|| SAID.iter().find(|(known, _)| *known == case));
        let (known, said) = said.unwrap_or_else(|| panic!("{name} has no line in the table"));
        assert_eq!(headlines(&told(&desk, name)), [*said], "{name}");
        seen.insert(*known);
    }
    let unused: Vec<&str> = SAID
        .iter()
        .map(|(known, _)| *known)
        .filter(|known| !seen.contains(known))
        .collect();
    assert_eq!(unused, [] as [&str; 0]);
}

#[test]
fn a_module_missing_in_two_files_is_said_once_with_both_chains() {
    for version in VERSIONS {
        let desk = Desk::new(&[
            ("uv.lock", ""),
            (
                "pyproject.toml",
                "[project]\ndependencies = ['httpx-absent>=1']\n",
            ),
        ]);
        let expected = Advice {
            code: "E021".to_owned(),
            headline: "missing module `httpx_absent` (2 files)".to_owned(),
            places: vec![
                "tests/test_a.py:1   import httpx_absent".to_owned(),
                "tests/test_b.py:1   from shop.client import Client   →   shop/client.py:2   import httpx_absent".to_owned(),
            ],
            why: vec![
                "not installed for .venv/bin/python (Python 3.12.1, found by project .venv); it IS a declared dependency \
                 (pyproject.toml, [project] dependencies)"
                    .to_owned(),
            ],
            help: vec!["uv sync".to_owned(), "other interpreter: breakmycode . --python path/to/python".to_owned()],
        };
        assert_eq!(
            told(&desk, &format!("module_not_found.{version}")),
            [expected],
            "{version}"
        );
    }
}

#[test]
fn the_projects_own_module_is_told_from_a_missing_package() {
    for version in VERSIONS {
        let desk = Desk::new(&[("src/shop/__init__.py", "")]);
        let advice = told(&desk, &format!("first_party_src.{version}"));
        assert_eq!(
            headlines(&advice),
            ["E022 the project's own module `shop` cannot be imported (1 file)"]
        );
        assert_eq!(
            advice[0].why[0],
            "this project has ./src/shop (src layout, not installed)"
        );
        assert_eq!(
            advice[0].help,
            [
                "uv pip install -e .",
                "or: pyproject.toml, [tool.pytest.ini_options]: pythonpath = [\"src\"]",
                "or once: breakmycode . -- -o pythonpath=src",
            ]
        );
    }
}

#[test]
fn two_files_of_one_name_get_the_command_that_tells_them_apart() {
    for version in VERSIONS {
        let desk = Desk::new(&[
            ("a/test_same.py", ""),
            ("b/test_same.py", ""),
            ("a/__init__.py", ""),
            ("pytest.ini", "[pytest]\n"),
        ]);
        let advice = told(&desk, &format!("import_mismatch.{version}"));
        assert_eq!(
            headlines(&advice),
            ["E024 two test files are called test_same.py"]
        );
        assert_eq!(advice[0].places, ["a/test_same.py", "b/test_same.py"]);
        let help = [
            "touch b/__init__.py",
            "or: pytest.ini, [pytest]: addopts = --import-mode=importlib",
        ];
        assert_eq!(advice[0].help, help);
    }
}

#[test]
fn the_caret_of_a_syntax_error_stands_below_its_source() {
    let desk = Desk::new(&[]);
    let advice = told(&desk, "syntax_error.9.2");
    assert_eq!(
        advice[0].places,
        ["test_a.py:2   assert (1 ==", "                     ^"]
    );
}

#[test]
fn django_settings_are_looked_up_in_manage_py() {
    let manage = "os.environ.setdefault(\"DJANGO_SETTINGS_MODULE\", \"shop.settings\")\n";
    for version in VERSIONS {
        let desk = Desk::new(&[("backend/manage.py", manage)]).with_plugins(&["pytest-django"]);
        let advice = told(&desk, &format!("django_no_settings.{version}"));
        assert_eq!(
            advice[0].help,
            [
                "pyproject.toml, [tool.pytest.ini_options]: DJANGO_SETTINGS_MODULE = \"shop.settings\"",
                "pyproject.toml, [tool.pytest.ini_options]: pythonpath = [\"backend\"]",
            ]
        );
        let files = [
            (
                "pytest.ini",
                "[pytest]\nDJANGO_SETTINGS_MODULE = shop.settings\n",
            ),
            ("src/shop/settings.py", ""),
        ];
        let advice = told(
            &Desk::new(&files).with_plugins(&["pytest-django"]),
            &format!("django_no_manage.{version}"),
        );
        assert_eq!(
            headlines(&advice),
            ["E023 Django's settings module `shop.settings` cannot be imported"]
        );
        assert_eq!(advice[0].help, ["pytest.ini, [pytest]: pythonpath = src"]);
    }
}

#[test]
fn a_declared_plugin_is_synchronised_and_another_is_added() {
    let files = [(
        "pytest.ini",
        "[pytest]\naddopts = --cov=shop --cov-report=term-missing -n 4\n",
    )];
    let advice = told(&Desk::new(&files), "unknown_option_ini.9.2");
    assert_eq!(advice[0].help[0], "uv add --dev pytest-cov pytest-xdist");
    assert_eq!(
        advice[0].places,
        ["pytest.ini   addopts = --cov=shop --cov-report=term-missing -n 4"]
    );
    let declared = [
        files[0],
        (
            "pyproject.toml",
            "[dependency-groups]\ndev = ['pytest-cov']\n",
        ),
    ];
    let advice = told(&Desk::new(&declared), "unknown_option_ini.9.2");
    assert_eq!(
        advice[0].help[0],
        "uv sync   (declared in pyproject.toml, [dependency-groups] dev)"
    );
}

#[test]
fn a_crash_names_the_line_or_the_file_that_was_being_imported() {
    let desk = Desk::new(&[]);
    let advice = told(&desk, "crash_on_import.8.3");
    assert_eq!(advice[0].places, ["test_a.py:2"]);
    assert_eq!(
        advice[0].help,
        [".venv/bin/python -X faulthandler -m pytest test_a.py   shows it without breakmycode"]
    );
    let ending = Ending {
        signal: Some(9),
        last_file: Some("tests/test_b.py".to_owned()),
        ..Ending::default()
    };
    let advice = from_output(
        &ending,
        "==== test session starts ====\nplatform linux\n",
        &desk.context,
    );
    assert_eq!(
        advice[0].headline,
        "Python was ended by signal 9 (kill) before it could run the tests"
    );
    assert_eq!(advice[0].places, ["tests/test_b.py   was being imported"]);
}

#[test]
fn a_collection_that_takes_too_long_names_the_file() {
    let desk = Desk::new(&[]);
    let ending = Ending {
        signal: Some(9),
        timed_out: true,
        last_file: Some("tests/test_b.py".to_owned()),
        ..Ending::default()
    };
    let advice = from_output(&ending, "", &desk.context);
    assert_eq!(
        headlines(&advice),
        ["E029 pytest did not finish collecting in time"]
    );
    assert_eq!(advice[0].places, ["tests/test_b.py   was being imported"]);
    assert_eq!(advice[0].why.len(), 1);
}

#[test]
fn an_end_without_a_summary_is_told_from_a_whole_session() {
    let desk = Desk::new(&[]);
    let begun =
        "======= test session starts =======\nplatform linux -- Python 3.12.1\ncollecting ... ";
    let ending = Ending {
        code: Some(7),
        ..Ending::default()
    };
    assert_eq!(from_output(&ending, begun, &desk.context)[0].code, "E029");
    let whole = format!("{begun}\n========= 1 passed in 0.10s =========\n");
    assert_eq!(from_output(&ending, &whole, &desk.context)[0].code, "E039");
}

#[test]
fn an_unknown_failure_shows_its_last_lines_made_safe() {
    let desk = Desk::new(&[]);
    let text: String = (1..=20)
        .map(|number| format!("\u{1b}[31mline {number}\u{1b}[0m\r\n"))
        .collect();
    let advice = from_output(
        &Ending {
            code: Some(42),
            ..Ending::default()
        },
        &text,
        &desk.context,
    );
    assert_eq!(advice[0].code, "E039");
    assert_eq!(advice[0].why.len(), 15);
    assert_eq!(
        (advice[0].why[0].as_str(), advice[0].why[14].as_str()),
        ("line 6", "line 20")
    );
}

#[test]
fn an_uncaught_exception_at_start_is_named() {
    let desk = Desk::new(&[]);
    let text = "Traceback (most recent call last):\n  File \"/x/y.py\", line 1, in f\n    boom()\nsqlite3.OperationalError: disk is full\n";
    let advice = from_output(
        &Ending {
            code: Some(1),
            ..Ending::default()
        },
        text,
        &desk.context,
    );
    assert_eq!(
        headlines(&advice),
        ["E036 pytest could not start: sqlite3.OperationalError: disk is full"]
    );
}

/// Pieces that the patterns look for, to be put together in every wrong way.
fn shuffled_output() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "ERROR: ",
        "error: unrecognized arguments: ",
        "--cov",
        "-n",
        "inifile: ",
        "Missing required plugins: ",
        "'minversion' requires pytest-",
        ", actual pytest-",
        "Error importing plugin \"",
        "No module named '",
        "'",
        "\"",
        "____ ERROR collecting ",
        " ____",
        "\n",
        "E   ",
        "E     File \"",
        ", line ",
        "2",
        "SyntaxError: ",
        "ImportError while loading conftest '",
        "a/b.py:",
        ": in <module>",
        "INTERNALERROR> ",
        "SystemExit",
        "Traceback (most recent call last):",
        "Fatal Python error: ",
        "  File \"",
        "cannot import name '",
        "' from '",
        " (/x)",
        ")",
        "import file mismatch:",
        "has this __file__ attribute:",
        "fixture '",
        "' not found",
        "available fixtures: ",
        "collected ",
        " deselected",
        "é",
        "^",
        "test session starts ",
        "DJANGO_SETTINGS_MODULE",
        "; '",
        "' is not a package",
        "PluginValidationError: ",
        "Argument(s) ",
        "-",
        ":",
        "\t",
        "(",
    ]);
    prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_was_written_there_is_an_answer_and_it_is_safe(
        text in prop_oneof![any::<String>(), shuffled_output()],
        code in prop::option::of(-2i32..12),
        signal in prop::option::of(1i32..40),
        timed_out in any::<bool>(),
        last_file in prop::option::of(any::<String>()),
    ) {
        let desk = Desk::new(&[]);
        let ending = Ending { code, signal, timed_out, last_file };
        let advice = from_output(&ending, &text, &desk.context);
        prop_assert!(!advice.is_empty());
        for advice in advice {
            prop_assert!(crate::diagnose::explain(&advice.code).is_some(), "{}", advice.code);
            let lines = [vec![advice.headline], advice.places, advice.why, advice.help].concat();
            for line in lines {
                prop_assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
        }
    }
}
