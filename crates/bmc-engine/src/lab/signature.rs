//! Telling whether two failures are the same one: a digest over what stays when addresses, numbers and paths are taken out.

use bmc_types::{Failure, Outcome};
use sha2::{Digest, Sha256};

/// 16 hexadecimal digits that equal failures share.
pub fn digest(outcome: Outcome, failure: &Failure) -> String {
    let mut hasher = Sha256::new();
    let place = failure.path.as_deref().unwrap_or("");
    for part in [
        outcome.as_str(),
        &failure.kind,
        place,
        &normalise(&failure.message),
    ] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The first line of a message without what differs from run to run: addresses, numbers, identifiers, temporary folders.
///
/// Only the first line counts: pytest appends explanations whose length depends on the values compared.
pub fn normalise(message: &str) -> String {
    let line = message
        .lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("")
        .trim();
    let mut out = String::with_capacity(line.len());
    let mut word = String::new();
    for c in line.chars().take(2000).chain([' ']) {
        if c.is_alphanumeric() || c == '_' || c == '-' || c == '.' || c == '/' {
            word.push(c);
            continue;
        }
        push_word(&mut out, &word);
        word.clear();
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out
}

fn push_word(out: &mut String, word: &str) {
    if word.is_empty() {
        return;
    }
    let temporary = ["/tmp/", "/var/tmp/", "/private/var/folders/"]
        .iter()
        .any(|t| word.starts_with(t));
    if temporary {
        out.push_str("<tmp>");
    } else if is_identifier_like(word) {
        out.push_str("<id>");
    } else {
        let mut digits = false;
        for c in word.chars() {
            if c.is_ascii_digit() {
                if !digits {
                    out.push('#');
                }
                digits = true;
            } else if !(digits && c == '.') {
                digits = false;
                out.push(c);
            }
        }
    }
}

/// An address, a hash or a UUID: long, hexadecimal, with a digit.
fn is_identifier_like(word: &str) -> bool {
    if word.starts_with("0x") {
        return true;
    }
    let hex = word.chars().filter(|c| c.is_ascii_hexdigit()).count();
    let other = word
        .chars()
        .filter(|c| !c.is_ascii_hexdigit() && *c != '-')
        .count();
    other == 0
        && hex >= 8
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str) -> Failure {
        Failure {
            phase: None,
            kind: "AssertionError".into(),
            message: message.into(),
            path: Some("tests/test_a.py".into()),
            line: Some(3),
            longrepr: String::new(),
            rerun: false,
            extra: Vec::new(),
        }
    }

    #[test]
    fn values_do_not_split_a_signature() {
        for (a, b) in [
            ("assert 0.123 < 0.05", "assert 0.9 < 0.05"),
            (
                "<Foo object at 0x7f12ab34cd56> is None",
                "<Foo object at 0x55aa00112233> is None",
            ),
            (
                "no file /tmp/pytest-of-me/pytest-1/x0/a.txt",
                "no file /tmp/pytest-of-you/pytest-22/x0/a.txt",
            ),
            (
                "id 6f1c9f36-8a3e-4f66-9d20-0a8b5a0f2b11 twice",
                "id 0b8d2c55-1f4e-4c02-8f0e-9b7a1c2d3e4f twice",
            ),
            ("timeout after 1.5 s\nextra 1", "timeout after 22 s\nother"),
        ] {
            assert_eq!(normalise(a), normalise(b));
            assert_eq!(
                digest(Outcome::Failed, &failure(a)),
                digest(Outcome::Failed, &failure(b))
            );
        }
    }

    #[test]
    fn different_messages_types_and_outcomes_do() {
        let a = failure("assert left == right");
        let mut b = a.clone();
        b.kind = "ValueError".into();
        assert_ne!(
            digest(Outcome::Failed, &a),
            digest(Outcome::Failed, &failure("assert left in right"))
        );
        assert_ne!(digest(Outcome::Failed, &a), digest(Outcome::Failed, &b));
        assert_ne!(digest(Outcome::Failed, &a), digest(Outcome::Error, &a));
    }

    #[test]
    fn words_that_look_like_hex_stay() {
        assert_eq!(
            normalise("deadbeef facade decade"),
            "deadbeef facade decade"
        );
    }
}
