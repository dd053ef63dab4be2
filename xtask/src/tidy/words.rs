//! Finds words that belong to one machine: paths of a checkout or of a user, and names of package registries.

use super::Finding;
use super::rust_code::is_word;
use crate::repository::TextFile;

// Each is put together here, so that this file does not contain what it looks for.
const PATHS: &[&str] = &[
    concat!("/wor", "k/main"),
    concat!("/wor", "k/shared"),
    concat!("/wor", "k/scratch"),
    concat!("/roo", "t/."),
    concat!("/roo", "t/target"),
    concat!("/tmp/", "target-"),
    concat!("/tmp/", "brief"),
    concat!("/tmp/", "bash_jobs"),
    concat!("/opt/", "wheels"),
];
const HOSTS: &[&str] = &[
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("proxy.", "golang.org"),
];
/// cargo writes where each crate came from.
const EXEMPT: &[&str] = &["Cargo.lock"];

/// Finds machine paths and registry hosts in every text file.
pub(super) fn machine_words(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files
        .iter()
        .filter(|file| !EXEMPT.contains(&file.path.as_str()))
    {
        for (index, line) in file.text.lines().enumerate() {
            let place = || format!("{}:{}", file.path, index + 1);
            for path in PATHS.iter().filter(|path| begins_in(line, path)) {
                findings.push(Finding::new(
                    place(),
                    format!("`{path}` is a path of one machine"),
                ));
            }
            for host in HOSTS.iter().filter(|host| line.contains(**host)) {
                findings.push(Finding::new(
                    place(),
                    format!("`{host}` is a registry; say \"PyPI\" or \"the registry\" instead"),
                ));
            }
        }
    }
    findings
}

/// Says whether the path begins somewhere in the line, and is not the end of a longer one.
fn begins_in(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at]
            .chars()
            .next_back()
            .is_some_and(|c| is_word(c) || "./-".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{file, places};
    use super::*;

    #[test]
    fn every_path_and_host_is_found_and_longer_paths_are_not() {
        for path in PATHS {
            assert_eq!(
                places(&machine_words(&[file(
                    "a.md",
                    &format!("one\nsee `{path}x`\n")
                )])),
                ["a.md:2"],
                "{path}"
            );
            assert_eq!(
                places(&machine_words(&[file("a.md", &format!("/srv{path}"))])),
                [""; 0],
                "{path}"
            );
        }
        for host in HOSTS {
            assert_eq!(
                places(&machine_words(&[file(
                    "a.md",
                    &format!("https://{host}/x")
                )])),
                ["a.md:1"],
                "{host}"
            );
            assert_eq!(
                places(&machine_words(&[file("Cargo.lock", host)])),
                [""; 0],
                "{host}"
            );
        }
    }
}
