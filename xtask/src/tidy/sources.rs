//! Rules for source files of either language: docs, `unsafe`, left-over macros, length. Looks at text only.

use super::Finding;
use super::rust_code::{code_only, is_word};
use crate::repository::TextFile;

/// The only crate that may contain `unsafe`.
const UNSAFE_CRATE: &str = "crates/bmc-sandbox/";
/// The Python package that is loaded into other people's sessions.
const PLUGIN: &str = "crates/bmc-pytest/python/breakmycode_plugin/";
/// Code that says "not finished" or "not run".
const LEFT_OVER: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore"];
/// Longer files get a notice. A judgement: at 500 lines a seam is looked for, and a regular table may pass that.
const LONG: usize = 900;

/// Finds Rust modules without `//!` docs and modules of the plugin without a docstring.
pub(super) fn module_docs(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let first = |comment: &str| {
            file.text
                .lines()
                .map(str::trim)
                .find(|l| !l.is_empty() && !(l.starts_with(comment)))
                .unwrap_or("")
        };
        if is_module(&file.path) && !file.text.trim_start().starts_with("//!") {
            findings.push(Finding::new(
                &file.path,
                "the module does not open with `//!`: what it is for, and what it must not do",
            ));
        }
        if file.path.starts_with(PLUGIN)
            && file.path.ends_with(".py")
            && !first("#").trim_start_matches('r').starts_with("\"\"\"")
        {
            findings.push(Finding::new(
                &file.path,
                "the module does not open with a docstring",
            ));
        }
    }
    findings
}

/// Says whether a path is a module with a purpose of its own. A file of unit tests says what it holds in the names of its tests.
fn is_module(path: &str) -> bool {
    if path.ends_with("/tests.rs") || path.ends_with("_tests.rs") {
        return false;
    }
    let below = path
        .strip_prefix("crates/")
        .and_then(|rest| rest.split_once('/'))
        .map(|(_, rest)| rest);
    path.ends_with(".rs")
        && below
            .or_else(|| path.strip_prefix("xtask/"))
            .is_some_and(|rest| rest.starts_with("src/"))
}

/// Finds `unsafe` outside the one crate that may have it.
pub(super) fn unsafe_code(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !file.path.starts_with(UNSAFE_CRATE))
    {
        for line in lines_with_word(&code_only(&file.text), "unsafe") {
            findings.push(Finding::new(
                format!("{}:{line}", file.path),
                "`unsafe` belongs into bmc-sandbox only",
            ));
        }
    }
    findings
}

/// Finds macros of unfinished code and tests that are never run.
pub(super) fn left_over(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let code = code_only(&file.text);
        for word in LEFT_OVER {
            for line in lines_with_word(&code, word) {
                findings.push(Finding::new(
                    format!("{}:{line}", file.path),
                    format!("`{word}` must not stay"),
                ));
            }
        }
    }
    findings
}

/// Notices files that probably do two things.
pub(super) fn long_files(files: &[TextFile]) -> Vec<Finding> {
    let sources = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") || file.path.ends_with(".py"));
    sources
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LONG)
        .map(|(file, lines)| {
            Finding::notice(&file.path, format!("has {lines} lines; look for a seam"))
        })
        .collect()
}

/// Numbers of the lines on which the word stands by itself.
fn lines_with_word(code: &str, word: &str) -> Vec<usize> {
    let alone = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            !(before.is_some_and(is_word) || after.is_some_and(is_word) && word.ends_with(is_word))
        })
    };
    code.lines()
        .enumerate()
        .filter(|(_, line)| alone(line))
        .map(|(index, _)| index + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{file, places};
    use super::*;

    #[test]
    fn a_module_without_docs_is_found_in_both_languages() {
        let files = [
            file("crates/a/src/good.rs", "//! Good.\n"),
            file("crates/a/src/deep/bad.rs", "use std::fs;\n"),
            file("crates/a/tests/it/free.rs", "use std::fs;\n"),
            file("crates/a/src/deep/tests.rs", "use super::*;\n"),
            file("crates/a/src/deep/bad_tests.rs", "use super::*;\n"),
            file("xtask/src/bad.rs", "// A comment is not enough.\n"),
            file(
                "crates/bmc-pytest/python/breakmycode_plugin/good.py",
                "# note\n\n\"\"\"Good.\"\"\"\n",
            ),
            file(
                "crates/bmc-pytest/python/breakmycode_plugin/bad.py",
                "import os\n",
            ),
            file("crates/bmc-pytest/python/breakmycode_plugin/empty.py", ""),
            file("crates/bmc-pytest/python/tests/free.py", "import os\n"),
        ];
        assert_eq!(
            places(&module_docs(&files)),
            [
                "crates/a/src/deep/bad.rs",
                "xtask/src/bad.rs",
                "crates/bmc-pytest/python/breakmycode_plugin/bad.py",
                "crates/bmc-pytest/python/breakmycode_plugin/empty.py",
            ]
        );
    }

    #[test]
    fn unsafe_code_is_found_outside_its_crate_and_words_are_not() {
        let files = [
            file(
                "crates/a/src/lib.rs",
                "// unsafe\nlet unsafe_code = \"unsafe\";\nlet x = unsafe { y() };\n",
            ),
            file("crates/bmc-sandbox/src/sys.rs", "unsafe { y() }\n"),
        ];
        assert_eq!(places(&unsafe_code(&files)), ["crates/a/src/lib.rs:3"]);
    }

    #[test]
    fn left_over_macros_and_ignored_tests_are_found() {
        let text = "todo!();\nmy_todo!();\n// dbg!(x)\nlet a = dbg!(x);\nunimplemented!(\"{}\", x)\n#[ignore = \"slow\"]\n#[ignore]\n\"todo!()\"\n";
        let found = left_over(&[file("xtask/src/a.rs", text)]);
        assert_eq!(
            places(&found),
            [
                "xtask/src/a.rs:1",
                "xtask/src/a.rs:5",
                "xtask/src/a.rs:4",
                "xtask/src/a.rs:6",
                "xtask/src/a.rs:7"
            ]
        );
    }

    #[test]
    fn a_long_file_is_noticed_and_does_not_fail() {
        let long = "\n".repeat(LONG + 1);
        let found = long_files(&[
            file("crates/a/src/lib.rs", &long),
            file("b.py", &"\n".repeat(LONG)),
            file("Cargo.lock", &long),
        ]);
        assert_eq!(places(&found), ["crates/a/src/lib.rs"]);
        assert!(found[0].notice);
    }
}
