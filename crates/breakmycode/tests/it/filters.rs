//! Replaces what differs between two runs of the same command by placeholders. The one list of them.

use std::path::Path;

use crate::environments::Environment;

/// Puts `[SCAN]`, `[SEED]`, `[TIME]`, `[LAB]`, `[PYTHON]` and `[VERSION]` in the place of what changes, and each paragraph on one line: how
/// lines are broken and columns are aligned hangs on the length of paths.
pub(crate) fn filtered(text: &str, lab: &Path, environment: &Environment) -> String {
    // Lines first: where they are broken hangs on the paths, and a break may stand inside of what is replaced.
    let paragraphs: Vec<String> = text.split("\n\n").map(one_line).collect();
    let text = paragraphs
        .join("\n")
        .replace(&*environment.python.to_string_lossy(), "[PYTHON]")
        .replace(&*lab.to_string_lossy(), "[LAB]")
        .replace(
            &format!("Python {}", environment.version),
            "Python [VERSION]",
        );
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let at_word = !clean.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        let found = if at_word {
            scan(rest).or_else(|| seed(rest)).or_else(|| time(rest))
        } else {
            None
        };
        match found {
            Some((placeholder, length)) => {
                clean.push_str(placeholder);
                rest = &rest[length..];
            }
            None => {
                clean.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    clean
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hexadecimal(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_hexdigit).count()
}

fn scan(text: &str) -> Option<(&'static str, usize)> {
    let digits = text.strip_prefix("scan_")?;
    (hexadecimal(digits) == 12).then_some(("[SCAN]", "scan_".len() + 12))
}

fn seed(text: &str) -> Option<(&'static str, usize)> {
    let digits = text.strip_prefix("0x")?;
    (hexadecimal(digits) == 16).then_some(("[SEED]", "0x".len() + 16))
}

/// Durations such as `1.2 s`, `350 ms` and `1 min 38 s`.
fn time(text: &str) -> Option<(&'static str, usize)> {
    let mut length = 0;
    for unit in [" min", " s", " ms"] {
        let rest = &text[length..];
        let trimmed = if length > 0 {
            rest.strip_prefix(' ').unwrap_or(rest)
        } else {
            rest
        };
        let number = trimmed
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .count();
        let Some(after) = trimmed[number..].strip_prefix(unit) else {
            continue;
        };
        if number > 0 && !after.starts_with(char::is_alphanumeric) {
            length = text.len() - after.len();
        }
    }
    (length > 0).then_some(("[TIME]", length))
}

#[test]
fn what_changes_is_replaced_and_the_rest_stays() {
    let environment = Environment {
        name: String::new(),
        python: "/e/python".into(),
        version: "3.11.7".to_owned(),
        plugins: Vec::new(),
    };
    let text = "/tmp/x/home/p scan_0123456789ab in 1 min 38 s, 1.2 s and\n  350 ms; 5 starts,\n\n\
                20/20, seed 0x0000000000005eed /e/python Python\n3.11.7";
    let expected = "[LAB]/home/p [SCAN] in [TIME], [TIME] and [TIME]; 5 starts,\n\
                    20/20, seed [SEED] [PYTHON] Python [VERSION]";
    assert_eq!(filtered(text, Path::new("/tmp/x"), &environment), expected);
}
