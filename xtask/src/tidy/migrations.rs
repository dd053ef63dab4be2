//! Migrations of the database are numbered from 0001 without gaps, each once. Does not read what they do.

use super::Finding;
use crate::repository::TextFile;

const FOLDER: &str = "crates/bmc-engine/migrations/";

/// Finds gaps, doubles and names without a number.
pub(super) fn numbered(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".sql"))
    {
        let name = &file.path[FOLDER.len()..];
        // The whole schema, for reading, may lie beside the steps to it.
        if name == "schema.sql" {
            continue;
        }
        match name
            .split_once('_')
            .filter(|(digits, _)| digits.len() == 4)
            .and_then(|(digits, _)| digits.parse::<u32>().ok())
        {
            Some(number) => numbers.push((number, &file.path)),
            None => findings.push(Finding::new(&file.path, "is not named like 0001_what.sql")),
        }
    }
    numbers.sort();
    for (expected, (number, path)) in (1..).zip(&numbers) {
        if *number != expected {
            findings.push(Finding::new(
                *path,
                format!("has number {number:04}, expected {expected:04}"),
            ));
            break;
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::{file, places};
    use super::*;

    fn found(names: &[&str]) -> Vec<Finding> {
        let files: Vec<TextFile> = names
            .iter()
            .map(|name| file(&format!("{FOLDER}{name}"), ""))
            .collect();
        numbered(&files)
    }

    #[test]
    fn gaps_doubles_and_other_names_are_found() {
        assert_eq!(
            found(&["0001_a.sql", "0002_b.sql", "schema.sql", "README.md"]),
            []
        );
        assert_eq!(
            places(&found(&["0001_a.sql", "0003_b.sql"])),
            ["crates/bmc-engine/migrations/0003_b.sql"]
        );
        assert_eq!(
            places(&found(&["0001_a.sql", "0001_b.sql"])),
            ["crates/bmc-engine/migrations/0001_b.sql"]
        );
        assert_eq!(
            places(&found(&["0000_a.sql"])),
            ["crates/bmc-engine/migrations/0000_a.sql"]
        );
        assert_eq!(places(&found(&["1_a.sql", "first.sql"])).len(), 2);
    }
}
