//! Every error code that the crates mention has a help text and a line in docs/errors.md, and neither knows others.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::rust_code::is_word;
use crate::repository::TextFile;

/// Where a code's help text may lie, as `CODE.md`.
const HELP: &[&str] = &[
    "crates/bmc-pytest/src/diagnose/",
    "crates/breakmycode/src/help/",
];
const LIST: &str = "docs/errors.md";

/// Finds codes without help, codes that the list lacks, and help or list entries for codes that nothing mentions.
pub(super) fn explained(files: &[TextFile]) -> Vec<Finding> {
    let mut used: BTreeMap<String, String> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs"))
    {
        for (code, line) in codes(&file.text) {
            used.entry(code)
                .or_insert_with(|| format!("{}:{line}", file.path));
        }
    }
    let helped: BTreeMap<&str, &str> = files
        .iter()
        .filter_map(|file| {
            let name = HELP
                .iter()
                .find_map(|folder| file.path.strip_prefix(folder))?
                .strip_suffix(".md")?;
            Some((name, file.path.as_str()))
        })
        .collect();
    let listed: BTreeSet<String> = files
        .iter()
        .filter(|file| file.path == LIST)
        .flat_map(|file| codes(&file.text))
        .map(|(code, _)| code)
        .collect();

    let mut findings = Vec::new();
    for (code, place) in &used {
        if !helped.contains_key(code.as_str()) {
            findings.push(Finding::new(
                place,
                format!("{code} has no help text {code}.md in {}", HELP.join(" or ")),
            ));
        }
        if !listed.contains(code) {
            findings.push(Finding::new(place, format!("{code} is not in {LIST}")));
        }
    }
    for (code, path) in helped.iter().filter(|(code, _)| !used.contains_key(**code)) {
        findings.push(Finding::new(*path, format!("nothing mentions {code}")));
    }
    for code in listed.iter().filter(|code| !used.contains_key(*code)) {
        findings.push(Finding::new(LIST, format!("nothing mentions {code}")));
    }
    findings
}

/// Codes of the form E0 and two digits, perhaps with a letter after them, and the line of each.
fn codes(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices("E0") {
            let code: String = line[at..].chars().take_while(|c| is_word(*c)).collect();
            let digits = code[1..].chars().take_while(char::is_ascii_digit).count();
            let letters = &code[1 + digits..];
            let begins = !line[..at].chars().next_back().is_some_and(is_word);
            if begins
                && digits == 3
                && (letters.is_empty()
                    || letters.len() == 1 && letters.chars().all(|c| c.is_ascii_lowercase()))
            {
                found.push((code, index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{file, places};
    use super::*;

    #[test]
    fn codes_are_told_from_other_words() {
        let found = codes("E021 and BMC-E020b,\n\"E0277\" E02 E0AB CODE021 1E021 E021x2 `E061`");
        assert_eq!(
            found,
            [
                ("E021".to_owned(), 1),
                ("E020b".to_owned(), 1),
                ("E061".to_owned(), 2)
            ]
        );
    }

    #[test]
    fn codes_without_help_or_without_a_place_in_the_list_are_found_and_the_reverse() {
        let files = [
            file("crates/a/src/lib.rs", "\"E010\"\n\"E011\" \"E012\"\n"),
            file("crates/bmc-pytest/src/diagnose/E010.md", "# E010\n"),
            file("crates/breakmycode/src/help/E011.md", "# E011\n"),
            file("crates/breakmycode/src/help/E099.md", "# E099\n"),
            file("docs/errors.md", "E010 E012 E098\n"),
        ];
        assert_eq!(
            places(&explained(&files)),
            [
                "crates/a/src/lib.rs:2",
                "crates/a/src/lib.rs:2",
                "crates/breakmycode/src/help/E099.md",
                "docs/errors.md"
            ]
        );
    }
}
