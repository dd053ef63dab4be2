use proptest::prelude::*;

use super::*;
use crate::diagnose::desk::Desk;

fn error(kind: &str, message: &str) -> CollectError {
    CollectError {
        nodeid: "tests/test_a.py".to_owned(),
        kind: kind.to_owned(),
        message: message.to_owned(),
        path: Some("tests/test_a.py".to_owned()),
        line: Some(3),
        source: Some("import x".to_owned()),
        ..CollectError::default()
    }
}

fn missing(module: &str) -> CollectError {
    CollectError {
        module: Some(module.to_owned()),
        ..error("module_not_found", &format!("No module named '{module}'"))
    }
}

fn one(desk: &Desk, error: CollectError) -> Advice {
    let mut advice = from_collection(&[error], &desk.context);
    assert_eq!(advice.len(), 1, "{advice:#?}");
    advice.remove(0)
}

#[test]
fn a_frame_of_the_protocol_is_read() {
    let frame = r#"{"t":"collect_error","nodeid":"tests/test_a.py","kind":"module_not_found","message":"No module named 'httpx'","module":"httpx",
     "path":"tests/test_a.py","line":3,"source":"import httpx","longrepr":"…","chain":[["tests/test_a.py",3,"import httpx"]]}"#;
    let error: CollectError = serde_json::from_str(frame).unwrap();
    assert_eq!(
        error.chain,
        [("tests/test_a.py".to_owned(), 3, "import httpx".to_owned())]
    );
    let bare: CollectError =
        serde_json::from_str(r#"{"nodeid":"a","message":null,"line":null}"#).unwrap();
    assert_eq!(
        bare,
        CollectError {
            nodeid: "a".to_owned(),
            ..CollectError::default()
        }
    );
}

#[test]
fn errors_are_grouped_by_cause_and_the_widest_comes_first() {
    let desk = Desk::new(&[]);
    let errors = [
        missing("yaml"),
        missing("httpx._client"),
        error("exit", "SystemExit: 1"),
        missing("httpx"),
    ];
    let advice = from_collection(&errors, &desk.context);
    let headlines: Vec<&str> = advice
        .iter()
        .map(|advice| advice.headline.as_str())
        .collect();
    assert_eq!(
        headlines,
        [
            "missing module `httpx` (2 files)",
            "missing module `yaml` (1 file)",
            "importing a test file ends the process: SystemExit: 1 (1 file)",
        ]
    );
}

#[test]
fn a_package_of_another_name_is_named() {
    let desk = Desk::new(&[]);
    let advice = one(&desk, missing("cv2"));
    assert_eq!(advice.help[0], "uv add --dev opencv-python");
    assert_eq!(
        advice.why[1],
        "the package that holds `cv2` is called opencv-python"
    );
    assert_eq!(
        one(&desk, missing("google.protobuf")).help[0],
        "uv add --dev protobuf"
    );
}

#[test]
fn a_guessed_package_name_is_said_to_be_a_guess() {
    let help = one(&Desk::new(&[]), missing("shopkit")).help;
    assert_eq!(
        help[0],
        "look up which package holds `shopkit`; if it has the same name: uv add --dev shopkit"
    );
}

#[test]
fn an_extra_is_installed_by_its_name() {
    let mut desk = Desk::new(&[(
        "pyproject.toml",
        "[project.optional-dependencies]\ntest = ['httpx']\n",
    )]);
    assert_eq!(one(&desk, missing("httpx")).help[0], "uv sync --extra test");
    desk.context.manager = crate::interpreter::Manager::Pip;
    assert_eq!(
        one(&desk, missing("httpx")).help[0],
        ".venv/bin/python -m pip install -e '.[test]'"
    );
}

#[test]
fn what_the_standard_library_lost_is_a_matter_of_the_version() {
    let desk = Desk::new(&[]);
    let advice = one(&desk, missing("distutils.core"));
    assert_eq!(
        (advice.code.as_str(), advice.help[0].as_str()),
        ("E013", "breakmycode . --python 3.11")
    );
    assert_eq!(advice.help[1], "or bring it back: uv add --dev setuptools");
    // In Python 3.12 `cgi` is still there, so its absence has another reason.
    assert_eq!(one(&desk, missing("cgi")).code, "E021");
    let advice = one(
        &desk,
        error(
            "other",
            "AttributeError: module 'asyncio' has no attribute 'coroutine'",
        ),
    );
    assert_eq!(
        advice.headline,
        "the code uses `asyncio.coroutine`, which Python 3.11 removed (1 file)"
    );
}

#[test]
fn a_module_imported_from_elsewhere_is_told_from_one_without_the_name() {
    let desk = Desk::new(&[("src/shop/__init__.py", "")]);
    let elsewhere =
        "cannot import name 'Cart' from 'shop' (/usr/lib/python3/dist-packages/shop/__init__.py)";
    let advice = one(&desk, error("import_error", elsewhere));
    assert_eq!(
        advice.headline,
        "module `shop` comes from somewhere else (1 file)"
    );
    assert_eq!(
        advice.why,
        [
            "imported /usr/lib/python3/dist-packages/shop/__init__.py, but this project has ./src/shop"
        ]
    );
    let here = format!(
        "cannot import name 'Cart' from 'shop' ({}/src/shop/__init__.py)",
        desk.root().display()
    );
    let advice = one(&desk, error("import_error", &here));
    assert_eq!(
        (advice.code.as_str(), advice.why[0].as_str()),
        ("E035", "src/shop/__init__.py has no `Cart`")
    );
    let installed = "cannot import name 'Client' from 'httpx' (/venv/lib/python3.12/site-packages/httpx/__init__.py)";
    let advice = one(&desk, error("import_error", installed));
    assert!(
        advice.why[0].ends_with("is installed in a version without `Client`"),
        "{advice:?}"
    );
}

#[test]
fn a_missing_file_of_the_project_and_a_hidden_package_are_told_apart() {
    let desk = Desk::new(&[("shop/__init__.py", ""), ("yaml.py", "")]);
    assert_eq!(
        one(&desk, missing("shop.cart")).headline,
        "the project has no module `shop.cart` (1 file)"
    );
    let hidden = CollectError {
        module: Some("yaml.nodes".to_owned()),
        ..error(
            "module_not_found",
            "No module named 'yaml.nodes'; 'yaml' is not a package",
        )
    };
    let advice = one(&desk, hidden);
    assert_eq!(
        (advice.code.as_str(), advice.why[0].as_str()),
        (
            "E022",
            "yaml.py hides an installed package of the same name"
        )
    );
}

#[test]
fn grammar_of_a_newer_python_is_a_matter_of_the_version() {
    let broken = |source: &str| CollectError {
        source: Some(source.to_owned()),
        ..error("syntax_error", "invalid syntax")
    };
    let table = [
        (
            "match command:",
            10,
            "E013",
            "tests/test_a.py is written for Python 3.10 or newer",
        ),
        (
            "type Pair = tuple[int, int]",
            12,
            "E013",
            "tests/test_a.py is written for Python 3.12 or newer",
        ),
        (
            "def first[T](items: list[T]) -> T:",
            12,
            "E013",
            "tests/test_a.py is written for Python 3.12 or newer",
        ),
        (
            "def first(items: list[int] -> int:",
            0,
            "E025",
            "tests/test_a.py:3 is not valid Python: invalid syntax",
        ),
        (
            "match(",
            0,
            "E025",
            "tests/test_a.py:3 is not valid Python: invalid syntax",
        ),
    ];
    let old = Desk::new(&[]).with_python((3, 9, 1));
    for (source, minor, code, headline) in table {
        let advice = one(&old, broken(source));
        assert_eq!(
            (advice.code.as_str(), advice.headline.as_str()),
            (code, headline),
            "{source}"
        );
        // A Python that knows the grammar has another reason to complain.
        let new = Desk::new(&[]).with_python((3, minor.max(9), 0));
        assert_eq!(one(&new, broken(source)).code, "E025", "{source}");
    }
    assert_eq!(
        one(&old, broken("print 'hello'")).why,
        ["this is Python 2, which pytest 7 and newer cannot run"]
    );
}

#[test]
fn many_files_and_long_chains_are_shortened() {
    let desk = Desk::new(&[]);
    let mut errors: Vec<CollectError> = (0..9).map(|_| missing("httpx")).collect();
    errors[0].chain = (1..=7)
        .map(|number| {
            (
                format!("m{number}.py"),
                number,
                format!("import m{}", number + 1),
            )
        })
        .collect();
    let advice = from_collection(&errors, &desk.context).remove(0);
    assert_eq!(advice.places.len(), 7);
    assert_eq!(advice.places[6], "and 3 more files");
    let expected =
        "m1.py:1   import m2   →   … 4 more …   →   m6.py:6   import m7   →   m7.py:7   import m8";
    assert_eq!(advice.places[0], expected);
}

#[test]
fn circular_imports_and_unset_variables_are_named() {
    let desk = Desk::new(&[]);
    let circular = "cannot import name 'a' from partially initialized module 'shop' (most likely due to a circular import) (/x/shop.py)";
    let advice = one(&desk, error("import_error", circular));
    assert_eq!(
        advice.why,
        ["two modules import each other; the second one sees the first half-finished"]
    );
    let unset = CollectError {
        source: Some("URL = os.environ['SHOP_URL']".to_owned()),
        ..error("other", "KeyError: 'SHOP_URL'")
    };
    assert_eq!(
        one(&desk, unset).why,
        ["the environment variable SHOP_URL is not set"]
    );
}

#[test]
fn nothing_broken_is_nothing_to_say() {
    assert_eq!(from_collection(&[], &Desk::new(&[]).context), []);
}

proptest! {
    #[test]
    fn no_error_makes_it_panic(
        kind in prop::sample::select(vec!["module_not_found", "import_error", "syntax_error", "import_mismatch", "fixture", "exit", "other", ""]),
        message in prop_oneof![any::<String>(), "(No module named '|cannot import name '|' from '|'|; '|' is not a package|[a-z./]|[()^é]){0,12}"],
        module in prop::option::of("(?s).{0,12}"),
        path in prop::option::of(any::<String>()),
        line in prop::option::of(any::<u32>()),
        source in prop::option::of("(match |type | = |def |\\[|:|[a-zé^ ]){0,8}"),
        longrepr in "(?s)(E|\\^|\n|import file mismatch:|has this __file__ attribute:|the test file we want to collect:|[a-zé /]){0,20}",
        chain in prop::collection::vec((any::<String>(), any::<u32>(), any::<String>()), 0..8),
    ) {
        let desk = Desk::new(&[("a/__init__.py", "")]);
        let error = CollectError { nodeid: message.clone(), kind: kind.to_owned(), message, module, path, line, source, longrepr, chain };
        for advice in from_collection(&[error.clone(), error], &desk.context) {
            prop_assert!(crate::diagnose::explain(&advice.code).is_some());
            let lines = [vec![advice.headline], advice.places, advice.why, advice.help].concat();
            for line in lines {
                prop_assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
        }
    }
}
