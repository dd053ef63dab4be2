use super::*;
use crate::diagnose::desk::Desk;

#[test]
fn a_fixture_of_a_plugin_leads_to_the_plugin() {
    let desk = Desk::new(&[]);
    for version in ["7.0", "8.3", "9.2"] {
        let (_, output) = desk.captured(&format!("fixture_not_found.{version}"));
        let advice = from_test_failure(
            "test_a.py::test_x",
            "fixture 'mocker' not found",
            &output,
            &desk.context,
        )
        .unwrap();
        assert_eq!(
            (advice.code.as_str(), advice.help.as_slice()),
            ("E026", &["uv add --dev pytest-mock".to_owned()][..])
        );
    }
}

#[test]
fn a_misspelt_fixture_leads_to_its_neighbour() {
    let desk = Desk::new(&[]);
    let text = "E       fixture 'tmp_pth' not found\n>       available fixtures: cache, capsys, tmp_path, tmpdir\n";
    let advice = from_test_failure("test_a.py::test_x", "", text, &desk.context).unwrap();
    assert_eq!(advice.help, ["did you mean tmp_path?"]);
}

#[test]
fn an_installed_plugin_is_not_to_be_installed_again() {
    let desk = Desk::new(&[]).with_plugins(&["pytest-mock"]);
    let advice = from_test_failure("t", "fixture 'mocker' not found", "", &desk.context).unwrap();
    assert_eq!(advice.help, [] as [&str; 0]);
    assert!(advice.why[2].contains("is switched off"), "{advice:?}");
}

#[test]
fn async_tests_are_recognised_in_every_version() {
    for version in ["7.0", "8.3", "9.2"] {
        let desk = Desk::new(&[]);
        let (_, output) = desk.captured(&format!("async_def.{version}"));
        let advice = from_test_failure("test_a.py::test_x", "", &output, &desk.context).unwrap();
        assert_eq!(
            (advice.code.as_str(), advice.help.as_slice()),
            ("E027", &["uv add --dev pytest-asyncio".to_owned()][..])
        );
    }
    let desk = Desk::new(&[(
        "pyproject.toml",
        "[dependency-groups]\ndev = ['pytest-asyncio']\n",
    )]);
    let message = "async def function and no async plugin installed (see warnings)";
    assert_eq!(
        from_test_failure("t", message, "", &desk.context)
            .unwrap()
            .help,
        ["uv sync"]
    );
    let desk = desk.with_plugins(&["pytest-asyncio"]);
    let help = from_test_failure("t", message, "", &desk.context)
        .unwrap()
        .help;
    assert_eq!(help[1], "or mark the test: @pytest.mark.asyncio");
}

#[test]
fn an_ordinary_failure_is_left_alone() {
    let desk = Desk::new(&[]);
    for message in [
        "assert 1 == 2",
        "KeyError: 'x'",
        "fixture '' not found",
        "the key 'a b' not found",
    ] {
        assert_eq!(
            from_test_failure("t", message, message, &desk.context),
            None,
            "{message}"
        );
    }
}

#[test]
fn plugins_that_change_repetition_or_order_are_told() {
    let desk = Desk::new(&[]).with_plugins(&[
        "pytest-xdist",
        "pytest-cov",
        "pytest-randomly",
        "flaky",
        "pytest-forked",
    ]);
    let codes: Vec<String> = from_plugins(&desk.context)
        .into_iter()
        .map(|advice| advice.code)
        .collect();
    assert_eq!(codes, ["E030", "E031", "E032", "E033"]);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(message in ".*", longrepr in "(?s)(fixture '|' not found|available fixtures: |async|.)*") {
        let desk = Desk::new(&[]);
        from_test_failure(&message, &message, &longrepr, &desk.context);
    }

    #[test]
    fn nearness_is_the_same_both_ways(a in "[a-c]{3,6}", b in "[a-c]{3,6}") {
        proptest::prop_assert_eq!(near(&a, &b), near(&b, &a));
    }
}
