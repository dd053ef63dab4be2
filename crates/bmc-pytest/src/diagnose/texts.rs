//! The long texts of `breakmycode help E021`: one Markdown file for each code. Must not depend on a project.

/// Every code with its text.
pub const CODES: &[(&str, &str)] = &[
    ("E010", include_str!("E010.md")),
    ("E011", include_str!("E011.md")),
    ("E012", include_str!("E012.md")),
    ("E013", include_str!("E013.md")),
    ("E014", include_str!("E014.md")),
    ("E015", include_str!("E015.md")),
    ("E020", include_str!("E020.md")),
    ("E020b", include_str!("E020b.md")),
    ("E021", include_str!("E021.md")),
    ("E022", include_str!("E022.md")),
    ("E023", include_str!("E023.md")),
    ("E024", include_str!("E024.md")),
    ("E025", include_str!("E025.md")),
    ("E026", include_str!("E026.md")),
    ("E027", include_str!("E027.md")),
    ("E028", include_str!("E028.md")),
    ("E029", include_str!("E029.md")),
    ("E030", include_str!("E030.md")),
    ("E031", include_str!("E031.md")),
    ("E032", include_str!("E032.md")),
    ("E033", include_str!("E033.md")),
    ("E035", include_str!("E035.md")),
    ("E036", include_str!("E036.md")),
    ("E039", include_str!("E039.md")),
];

/// Returns the long text of a code, written `E021`, `e021` or `BMC-E021`.
pub fn explain(code: &str) -> Option<&'static str> {
    let code = code.trim();
    let prefix = code
        .get(..4)
        .filter(|prefix| prefix.eq_ignore_ascii_case("BMC-"));
    let code = prefix.map_or(code, |prefix| &code[prefix.len()..]);
    CODES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(code))
        .map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_however_it_is_written() {
        let text = explain("E021").unwrap();
        assert!(text.starts_with("# BMC-E021: "));
        assert_eq!(
            [explain("bmc-e021"), explain(" BMC-E021 ")],
            [Some(text), Some(text)]
        );
        assert!(explain("E020b").unwrap().starts_with("# BMC-E020b: "));
        for code in ["", "E02", "E0211", "BMC-", "ééé", "021"] {
            assert_eq!(explain(code), None, "{code}");
        }
    }

    #[test]
    fn every_text_names_its_code_and_says_something() {
        for (code, text) in CODES {
            assert!(text.starts_with(&format!("# BMC-{code}: ")), "{code}");
            assert!(text.len() > 150, "{code}");
        }
    }
}
