//! Every fixture project says what it is for: to people in README.md, to the checker in truth.toml. Does not run them.

use std::collections::BTreeSet;

use super::Finding;
use crate::repository::TextFile;

const FOLDER: &str = "fixtures/projects/";

/// Finds projects without a README.md, or whose truth.toml does not say `what`.
pub(super) fn described(files: &[TextFile]) -> Vec<Finding> {
    let projects: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix(FOLDER)?.split_once('/'))
        .map(|(project, _)| project)
        .collect();
    let mut findings = Vec::new();
    for project in projects {
        let text = |name: &str| {
            files
                .iter()
                .find(|file| file.path == format!("{FOLDER}{project}/{name}"))
                .map(|file| file.text.as_str())
        };
        let mut say = |name: &str, message: String| {
            findings.push(Finding::new(format!("{FOLDER}{project}/{name}"), message))
        };
        if text("README.md").is_none_or(|text| text.trim().is_empty()) {
            say(
                "README.md",
                "is missing or empty; it says what the project is for".to_owned(),
            );
        }
        match text("truth.toml").map(toml::from_str::<toml::Table>) {
            None => say("truth.toml", "is missing".to_owned()),
            Some(Err(error)) => say("truth.toml", format!("is not TOML: {}", error.message())),
            Some(Ok(table)) => {
                let what = table
                    .get("what")
                    .and_then(toml::Value::as_str)
                    .unwrap_or("");
                if what.trim().is_empty() {
                    say("truth.toml", "has no `what`".to_owned());
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::{file, places};
    use super::*;

    #[test]
    fn a_project_that_does_not_say_what_it_is_for_is_found() {
        let files = [
            file("fixtures/projects/good/README.md", "# good\n"),
            file("fixtures/projects/good/truth.toml", "what = 'good'\n"),
            file("fixtures/projects/bare/test_a.py", ""),
            file("fixtures/projects/broken/README.md", "# broken\n"),
            file("fixtures/projects/broken/truth.toml", "what =\n"),
            file("fixtures/projects/mute/README.md", "\n"),
            file("fixtures/projects/mute/truth.toml", "what = ''\n"),
        ];
        assert_eq!(
            places(&described(&files)),
            [
                "fixtures/projects/bare/README.md",
                "fixtures/projects/bare/truth.toml",
                "fixtures/projects/broken/truth.toml",
                "fixtures/projects/mute/README.md",
                "fixtures/projects/mute/truth.toml",
            ]
        );
    }
}
