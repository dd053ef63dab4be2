//! Reads `requires-python` and answers whether a Python version satisfies it. Must not fail: what cannot be read is `None`.
//!
//! The subset of PEP 440 that such constraints use (`>=`, `>`, `<=`, `<`, `==`, `!=`, `~=`, `===`, wildcards, comma lists), plus
//! Poetry's carets, tildes and `||`. Suffixes of pre-releases are cut off: `>=3.13.0rc1` counts as `>=3.13.0`.

/// A constraint on the Python version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// As the project wrote it.
    text: String,
    /// One of these must hold; each holds if all of its clauses do.
    alternatives: Vec<Vec<Clause>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Clause {
    operator: Operator,
    release: Vec<u32>,
    wildcard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    AtLeast,
    Above,
    AtMost,
    Below,
    Equal,
    Unequal,
    Compatible,
    Caret,
    Tilde,
}

/// Longest first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Operator); 11] = [
    ("===", Operator::Equal),
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("~=", Operator::Compatible),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("^", Operator::Caret),
    ("~", Operator::Tilde),
    ("=", Operator::Equal),
];

impl Constraint {
    /// Reads a constraint. `None` if any part of it is not understood: better no constraint than a wrong one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let alternatives = text
            .split("||")
            .map(parse_alternative)
            .collect::<Option<Vec<Vec<Clause>>>>()?;
        Some(Self {
            text: text.trim().to_owned(),
            alternatives,
        })
    }

    /// Returns the constraint as the project wrote it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the version satisfies it.
    pub(crate) fn allows(&self, version: (u32, u32, u32)) -> bool {
        let version = [version.0, version.1, version.2];
        self.alternatives
            .iter()
            .any(|clauses| clauses.iter().all(|clause| clause.allows(&version)))
    }
}

fn parse_alternative(text: &str) -> Option<Vec<Clause>> {
    let mut clauses = Vec::new();
    // Poetry also accepts a space for a comma, and both accept a space after the operator.
    for part in text.split(',') {
        let mut pending = String::new();
        for word in part.split_whitespace() {
            pending.push_str(word);
            if word.ends_with(['<', '>', '=', '~', '^', '!']) {
                continue;
            }
            clauses.extend(parse_clause(&pending)?);
            pending.clear();
        }
        if !pending.is_empty() {
            return None;
        }
    }
    Some(clauses)
}

/// Reads one clause; `*` alone is no clause at all.
fn parse_clause(text: &str) -> Option<Option<Clause>> {
    if text == "*" {
        return Some(None);
    }
    let (operator, rest) = OPERATORS
        .iter()
        .find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (*operator, rest)))
        .unwrap_or((Operator::Equal, text));
    let bare = rest.len() == text.len();
    let (release, wildcard) = parse_release(rest)?;
    if wildcard && !matches!(operator, Operator::Equal | Operator::Unequal) {
        // `>=3.8.*` is not allowed by PEP 440, but old setup.py files have it and pip reads it as `>=3.8`.
        return Some(Some(Clause {
            operator,
            release,
            wildcard: false,
        }));
    }
    if operator == Operator::Compatible && release.len() < 2 {
        return None;
    }
    // A bare `3.12` (Pipfile, `python = "3.12"`) means the whole series.
    let wildcard = wildcard || (bare && release.len() < 3);
    Some(Some(Clause {
        operator,
        release,
        wildcard,
    }))
}

/// Reads `3.12.1`, `3.12.*` or `v3.12.0rc1` into its numbers and whether it ends in a wildcard.
fn parse_release(text: &str) -> Option<(Vec<u32>, bool)> {
    let text = text.trim().trim_start_matches('v');
    let mut release = Vec::new();
    for part in text.split('.') {
        if part == "*" && !release.is_empty() {
            return Some((release, true));
        }
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        if digits.is_empty() {
            // `3.12.dev0`: the numbers before it count.
            let suffix = ["dev", "post", "alpha", "beta", "a", "b", "rc"];
            let known = suffix.iter().any(|name| {
                part.strip_prefix(name).is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '+')
                })
            });
            return (known && !release.is_empty()).then_some((release, false));
        }
        release.push(digits.parse().ok()?);
        if digits.len() < part.len() {
            let suffix = &part[digits.len()..];
            return suffix
                .starts_with(|c: char| c.is_ascii_alphabetic() || c == '+' || c == '-')
                .then_some((release, false));
        }
    }
    Some((release, false))
}

impl Clause {
    fn allows(&self, version: &[u32; 3]) -> bool {
        let order = compare(version, &self.release);
        match self.operator {
            Operator::AtLeast => order.is_ge(),
            Operator::Above => order.is_gt(),
            Operator::AtMost => order.is_le(),
            Operator::Below => order.is_lt(),
            Operator::Equal => self.equals(version),
            Operator::Unequal => !self.equals(version),
            Operator::Compatible => {
                order.is_ge() && has_prefix(version, &self.release[..self.release.len() - 1])
            }
            Operator::Caret => order.is_ge() && has_prefix(version, &self.release[..1]),
            Operator::Tilde => {
                order.is_ge() && has_prefix(version, &self.release[..self.release.len().min(2)])
            }
        }
    }

    fn equals(&self, version: &[u32; 3]) -> bool {
        if self.wildcard {
            has_prefix(version, &self.release)
        } else {
            compare(version, &self.release).is_eq()
        }
    }
}

/// Compares as PEP 440 does: the shorter one is filled with zeros.
fn compare(version: &[u32; 3], release: &[u32]) -> std::cmp::Ordering {
    let length = release.len().max(version.len());
    let number = |part: &[u32], at: usize| part.get(at).copied().unwrap_or(0);
    (0..length)
        .map(|at| number(version, at).cmp(&number(release, at)))
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}

fn has_prefix(version: &[u32; 3], prefix: &[u32]) -> bool {
    prefix
        .iter()
        .enumerate()
        .all(|(at, number)| version.get(at).copied().unwrap_or(0) == *number)
}

/// Reads the leading numbers of any version, such as a distribution's: `8.0.0rc1` gives `[8, 0, 0]`.
pub(crate) fn release_numbers(version: &str) -> Vec<u32> {
    parse_release(version)
        .map(|(release, _)| release)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allows(constraint: &str, version: (u32, u32, u32)) -> bool {
        Constraint::parse(constraint)
            .expect(constraint)
            .allows(version)
    }

    #[test]
    fn each_operator_means_what_pep_440_says() {
        let table = [
            (">=3.8", (3, 8, 0), true),
            (">=3.8", (3, 7, 17), false),
            (">3.8", (3, 8, 0), false),
            (">3.8", (3, 8, 1), true),
            ("<=3.11", (3, 11, 0), true),
            ("<=3.11", (3, 11, 4), false),
            ("<4", (3, 14, 0), true),
            ("<3.12", (3, 12, 0), false),
            ("==3.11.*", (3, 11, 9), true),
            ("==3.11.*", (3, 12, 0), false),
            ("==3.11", (3, 11, 4), false),
            ("===3.11.4", (3, 11, 4), true),
            ("!=3.9.*", (3, 9, 1), false),
            ("!=3.9.7", (3, 9, 8), true),
            ("~=3.8", (3, 13, 0), true),
            ("~=3.8", (4, 0, 0), false),
            ("~=3.8.2", (3, 8, 1), false),
            ("~=3.8.2", (3, 9, 0), false),
            (">=3.13.0rc1", (3, 13, 0), true),
            (">= 3.8, != 3.9.*, < 4", (3, 10, 0), true),
            (">=3.8,!=3.9.*,<4,", (3, 9, 5), false),
            (">=3.6.*", (3, 6, 0), true),
        ];
        for (constraint, version, expected) in table {
            assert_eq!(
                allows(constraint, version),
                expected,
                "{constraint} and {version:?}"
            );
        }
    }

    #[test]
    fn poetry_and_pipenv_spellings_are_understood() {
        let table = [
            ("^3.8", (3, 13, 0), true),
            ("^3.8", (4, 0, 0), false),
            ("^3.8.1", (3, 8, 0), false),
            ("~3.8", (3, 8, 9), true),
            ("~3.8", (3, 9, 0), false),
            ("*", (3, 1, 0), true),
            ("3.12", (3, 12, 4), true),
            ("3.12", (3, 11, 4), false),
            (">=3.8 <3.12", (3, 12, 0), false),
            ("~2.7 || ^3.6", (3, 9, 0), true),
            ("~2.7 || ^3.6", (2, 6, 0), false),
        ];
        for (constraint, version, expected) in table {
            assert_eq!(
                allows(constraint, version),
                expected,
                "{constraint} and {version:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_constraint() {
        for text in ["three", ">=", "~=3", ">=3.8,,<x", ">=3.8 <", "==3.x"] {
            assert_eq!(Constraint::parse(text), None, "{text}");
        }
        assert_eq!(
            Constraint::parse("").map(|c| c.allows((2, 7, 0))),
            Some(true)
        );
    }

    #[test]
    fn numbers_of_a_distribution_version_are_read_leniently() {
        assert_eq!(release_numbers("8.0.0rc1"), [8, 0, 0]);
        assert_eq!(release_numbers("7.1.0.dev12+g1234"), [7, 1, 0]);
        assert_eq!(release_numbers("unknown"), [] as [u32; 0]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-<>=!~^*., 0-9a-z|v+]{0,24}|.{0,24}", minor in 0u32..20) {
            if let Some(constraint) = Constraint::parse(&text) {
                constraint.allows((3, minor, 0));
            }
            release_numbers(&text);
        }

        #[test]
        fn at_least_and_below_are_opposites(major in 2u32..5, minor in 0u32..20, micro in 0u32..20) {
            let version = (3, 10, 4);
            let bound = format!("{major}.{minor}.{micro}");
            prop_assert_ne!(allows(&format!(">={bound}"), version), allows(&format!("<{bound}"), version));
        }
    }
}
