//! Which crate may depend on which. A new edge is a decision, made in these tables. Knows names only, no code.

use super::Finding;
use crate::repository::{Metadata, Package};

/// Allowed edges inside the workspace. The floors are drawn in ARCHITECTURE.md; an edge only points down.
const INSIDE: &[(&str, &[&str])] = &[
    ("bmc-types", &[]),
    ("bmc-guard", &["bmc-types"]),
    ("bmc-sandbox", &[]),
    ("bmc-pytest", &["bmc-types"]),
    ("bmc-engine", &["bmc-types", "bmc-pytest", "bmc-sandbox"]),
    (
        "breakmycode",
        &["bmc-types", "bmc-engine", "bmc-pytest", "bmc-sandbox"],
    ),
    ("xtask", &[]),
];

/// Outside crates that the lowest floors may use, besides those of their tests.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("bmc-types", &["schemars", "serde", "serde_json"]),
    ("bmc-guard", &[]),
];

/// Compares the edges between crates of the workspace with the table.
pub(super) fn inside(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let Some((_, allowed)) = INSIDE.iter().find(|(name, _)| *name == package.name) else {
            findings.push(Finding::new(
                manifest(package),
                "is a crate that the table in xtask/src/tidy/edges.rs does not know",
            ));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
            if !allowed.contains(&dependency.name.as_str()) {
                findings.push(Finding::new(
                    manifest(package),
                    format!(
                        "{} must not depend on {}; the table is in xtask/src/tidy/edges.rs",
                        package.name, dependency.name
                    ),
                ));
            }
        }
    }
    findings
}

/// Compares the outside crates of the lowest two floors with the table.
pub(super) fn outside(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, allowed) in OUTSIDE {
        for package in metadata
            .packages
            .iter()
            .filter(|package| package.name == *name)
        {
            let real = package
                .dependencies
                .iter()
                .filter(|d| d.path.is_none() && d.kind.as_deref() != Some("dev"));
            for dependency in real.filter(|d| !allowed.contains(&d.name.as_str())) {
                findings.push(Finding::new(
                    manifest(package),
                    format!(
                        "{name} must not use the outside crate {}; the table is in xtask/src/tidy/edges.rs",
                        dependency.name
                    ),
                ));
            }
        }
    }
    findings
}

fn manifest(package: &Package) -> String {
    if package.name == "xtask" {
        "xtask/Cargo.toml".to_owned()
    } else {
        format!("crates/{}/Cargo.toml", package.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    fn metadata(packages: &str) -> Metadata {
        serde_json::from_str(&format!(
            r#"{{"target_directory": "target", "packages": {packages}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn an_edge_that_points_up_or_sideways_is_found_even_when_only_tests_use_it() {
        let found = inside(&metadata(
            r#"[{"name": "bmc-types", "dependencies": [{"name": "bmc-engine", "kind": null, "path": "crates/bmc-engine"}]},
                {"name": "bmc-pytest", "dependencies": [{"name": "bmc-types", "kind": null, "path": "crates/bmc-types"},
                                                        {"name": "bmc-sandbox", "kind": "dev", "path": "crates/bmc-sandbox"}]}]"#,
        ));
        assert_eq!(
            places(&found),
            [
                "crates/bmc-types/Cargo.toml",
                "crates/bmc-pytest/Cargo.toml"
            ]
        );
        assert!(
            found[1]
                .message
                .starts_with("bmc-pytest must not depend on bmc-sandbox")
        );
    }

    #[test]
    fn a_crate_that_nobody_decided_on_is_found() {
        assert_eq!(
            places(&inside(&metadata(
                r#"[{"name": "bmc-utils", "dependencies": []}]"#
            ))),
            ["crates/bmc-utils/Cargo.toml"]
        );
    }

    #[test]
    fn an_outside_crate_of_the_lowest_floors_is_found_unless_tests_use_it() {
        let found = outside(&metadata(
            r#"[{"name": "bmc-types", "dependencies": [{"name": "serde", "kind": null, "path": null}, {"name": "regex", "kind": null, "path": null}]},
                {"name": "bmc-guard", "dependencies": [{"name": "proptest", "kind": "dev", "path": null}, {"name": "libc", "kind": "build", "path": null}]},
                {"name": "bmc-engine", "dependencies": [{"name": "regex", "kind": null, "path": null}]}]"#,
        ));
        assert_eq!(
            places(&found),
            ["crates/bmc-types/Cargo.toml", "crates/bmc-guard/Cargo.toml"]
        );
    }
}
