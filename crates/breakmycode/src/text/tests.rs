use proptest::prelude::*;

use super::*;

/// Characters that a terminal obeys or that change how others are read.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Any text, and often one with the characters that matter here.
fn hostile() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "\u{1b}[31m",
        "\n",
        "\r",
        "\t",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{9b}2J",
        "\u{202e}",
        "\u{2066}",
        "\u{200d}",
        "\u{feff}",
        "\u{e0041}",
        "::",
        "[",
        "]",
        "/",
        "'",
        "🐍",
        "e\u{301}",
        "\u{301}",
        "…",
        "test_a",
        "tests/",
        ".py",
        "ー",
        "\u{fffe}",
        "\\x1b",
        "$(id)",
    ]);
    let piece = prop_oneof![
        special.prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        "[ -~]{0,8}"
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A node id with a path, perhaps a class, a name and perhaps parameters; the last two as one.
fn node_id() -> impl Strategy<Value = (String, String)> {
    (
        "[a-z]{1,12}(/[a-z_é]{1,12}){0,6}\\.py",
        "(::Test[A-Z][a-z]{0,20}){0,2}",
        "::test_[a-zß]{0,20}",
        "(\\[[ -~]{0,20}\\])?",
    )
        .prop_map(|(path, class, name, parameters)| {
            (
                format!("{path}{class}{name}{parameters}"),
                format!("{name}{parameters}"),
            )
        })
}

proptest! {
    #[test]
    fn printable_text_holds_nothing_that_a_terminal_obeys(text in hostile()) {
        let clean = printable(&text);
        prop_assert!(!clean.chars().any(is_harmful), "{clean:?}");
    }

    #[test]
    fn printable_twice_is_printable_once(text in hostile()) {
        let once = printable(&text);
        prop_assert_eq!(printable(&once), once);
    }

    #[test]
    fn printable_leaves_plain_ascii_alone(text in "[ -~]*") {
        prop_assert_eq!(printable(&text), text);
    }

    #[test]
    fn a_shortened_id_fits_where_its_name_does_and_keeps_name_and_parameters((id, name) in node_id(), columns in 0usize..120) {
        let short = shorten_node_id(&id, columns);
        prop_assert!(short.ends_with(&name), "{short}");
        prop_assert!(width(&short) <= columns.max(width(&name) + 1), "{short}");
        if width(&id) <= columns {
            prop_assert_eq!(short, id);
        }
    }

    #[test]
    fn shortening_survives_any_text(text in hostile(), columns in 0usize..60) {
        let short = shorten_node_id(&text, columns);
        prop_assert!(!short.chars().any(is_harmful), "{short:?}");
        prop_assert!(width(&short) <= width(&printable(&text)).max(columns) + 1);
    }

    #[test]
    fn a_cut_text_fits(text in hostile(), columns in 1usize..60) {
        let text = printable(&text);
        let short = cut(&text, columns, "…");
        prop_assert!(width(&short) <= columns, "{short:?}");
        if width(&text) <= columns {
            prop_assert_eq!(short, text);
        }
    }

    #[test]
    fn wrapping_loses_nothing_and_only_single_words_are_too_wide(text in hostile(), columns in 1usize..60) {
        let text = printable(text.trim_start_matches(' ')).replace(|c: char| c.is_ascii_digit(), "x");
        let lines = wrap(&text, columns);
        prop_assert_eq!(lines.join(" ").replace(' ', ""), text.replace(' ', ""));
        for line in lines {
            prop_assert!(width(&line) <= columns || !line.trim().contains(' '), "{line:?}");
        }
    }

    #[test]
    fn only_a_true_zero_or_one_is_written_as_such(share in 0.0f64..=1.0) {
        let number = percent_number(share);
        prop_assert_eq!(number.parse::<f64>() == Ok(0.0), share == 0.0, "{}", number);
        prop_assert_eq!(number.parse::<f64>() == Ok(100.0), share == 1.0, "{}", number);
        prop_assert!(!(chance(share) == "100 %" && share < 1.0 || chance(share) == "0 %" && share > 0.0));
    }

    #[test]
    fn any_number_is_a_duration(number in any::<f64>()) {
        prop_assert!(seconds(number).len() < 24 && clock(number).len() < 24);
    }

    #[test]
    fn thousands_only_adds_spaces(n in any::<u64>()) {
        let text = thousands(n);
        prop_assert_eq!(text.replace(' ', ""), n.to_string());
        prop_assert!(text.split(' ').skip(1).all(|group| group.len() == 3));
    }
}

#[test]
fn escapes_are_spelled_as_python_and_rust_readers_know_them() {
    assert_eq!(
        printable("a\u{1b}[2Jb\nc\t\r\0\u{9b}"),
        r"a\x1b[2Jb\nc\t\r\x00\x9b"
    );
    assert_eq!(
        printable("x\u{202e}y\u{200b}\u{feff}"),
        r"x\u{202e}y\u{200b}\u{feff}"
    );
    assert_eq!(
        printable("Grüße 日本語 🐍 e\u{301}"),
        "Grüße 日本語 🐍 e\u{301}"
    );
}

#[test]
fn stacked_marks_are_escaped_from_the_fifth_on() {
    let stacked = format!("a{}", "\u{301}".repeat(6));
    assert_eq!(
        printable(&stacked),
        "a\u{301}\u{301}\u{301}\u{301}\\u{301}\u{301}"
    );
}

#[test]
fn ids_are_shortened_in_the_middle_of_the_path() {
    let id = "tests/integration/payments/providers/test_checkout.py::TestCard::test_pay[visa-3]";
    assert_eq!(width(id), 81);
    assert_eq!(shorten_node_id(id, 81), id);
    assert_eq!(
        shorten_node_id(id, 75),
        "tests/integration/payments/…/test_checkout.py::TestCard::test_pay[visa-3]"
    );
    assert_eq!(
        shorten_node_id(id, 60),
        "tests/…/test_checkout.py::TestCard::test_pay[visa-3]"
    );
    assert_eq!(
        shorten_node_id(id, 46),
        "…/test_checkout.py::TestCard::test_pay[visa-3]"
    );
    assert_eq!(
        shorten_node_id(id, 40),
        "…checkout.py::TestCard::test_pay[visa-3]"
    );
    assert_eq!(shorten_node_id(id, 20), "…::test_pay[visa-3]");
    assert_eq!(shorten_node_id(id, 5), "…::test_pay[visa-3]");
}

#[test]
fn parameters_may_look_like_paths_and_separators() {
    let id = "tests/some/folder/test_a.py::test_url[http://x::y/z]";
    assert_eq!(shorten_node_id(id, 30), "…a.py::test_url[http://x::y/z]");
    assert_eq!(shorten_node_id(id, 20), "…::test_url[http://x::y/z]");
}

#[test]
fn durations_read_as_spoken() {
    let spoken = [
        (0.0, "0.0 s"),
        (0.44, "0.4 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (98.2, "1 min 38 s"),
        (3599.9, "1 h 0 min"),
        (11_422.0, "3 h 10 min"),
        (187_200.0, "2 d 4 h"),
        (-1.0, "0.0 s"),
        (f64::NAN, "0.0 s"),
    ];
    for (number, words) in spoken {
        assert_eq!(seconds(number), words);
    }
    assert_eq!(brief_seconds(0.0004), "<1 ms");
    assert_eq!(
        (
            brief_seconds(0.05),
            brief_seconds(0.9999),
            brief_seconds(f64::NAN)
        ),
        ("50 ms".into(), "1.0 s".into(), "0.0 s".into())
    );
    assert_eq!(
        (clock(62.9), clock(400_000.0)),
        ("00:01:02".to_owned(), "111:06:40".to_owned())
    );
}

#[test]
fn shares_keep_what_matters() {
    let written = [
        (0.145, "14.5"),
        (1.0, "100"),
        (0.0, "0"),
        (0.0002, "0.020"),
        (0.9998, "99.980"),
        (0.0055, "0.55"),
        (1e-9, "<0.001"),
    ];
    for (share, words) in written {
        assert_eq!(percent_number(share), words);
    }
    assert_eq!(percent_number(1.0 - 1e-9), ">99.999");
    assert_eq!(
        (percent(0.3), chance(0.878), chance(0.999), chance(0.004)),
        (
            "30.0 %".into(),
            "88 %".into(),
            "over 99 %".into(),
            "under 1 %".into()
        )
    );
}

#[test]
fn lines_break_at_spaces_but_not_within_a_quantity() {
    assert_eq!(
        wrap("seen with 88 % (5 %: 64 %) of 8 240 in 1 min 38 s", 12),
        [
            "seen with",
            "88 % (5 %:",
            "64 %) of",
            "8 240 in",
            "1 min 38 s"
        ]
    );
    assert_eq!(
        wrap("    indented words   and a wordthatistoolong", 14),
        ["    indented", "words   and a", "wordthatistoolong"]
    );
    assert_eq!(wrap("", 10), [""]);
}

#[test]
fn shell_words_are_quoted_or_refused() {
    assert_eq!(
        shell_word("tests/test_a.py::test_b").as_deref(),
        Some("tests/test_a.py::test_b")
    );
    assert_eq!(
        shell_word("t.py::t[a b's]").as_deref(),
        Some(r"'t.py::t[a b'\''s]'")
    );
    assert_eq!(shell_word("").as_deref(), Some("''"));
    assert_eq!(shell_word("a\nb"), None);
    assert_eq!(shell_word("a\u{202e}b"), None);
}
