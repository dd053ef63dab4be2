//! Makes foreign text safe to show, and takes names out of it. Must not change what a text says.

/// Longest line that is shown.
const LINE: usize = 240;

/// Takes out escape sequences and every character that could move the cursor or turn the writing direction.
pub(super) fn clean(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' => match characters.next() {
                // `ESC [ … letter`
                Some('[') => {
                    while characters
                        .next()
                        .is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c))
                    {}
                }
                // `ESC ] … BEL` or `ESC ] … ESC \`
                Some(']') => {
                    while let Some(c) = characters.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && characters.next_if_eq(&'\\').is_some())
                        {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\n' => kept.push('\n'),
            '\t' => kept.push_str("    "),
            '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => {}
            c if c.is_control() => {}
            c => kept.push(c),
        }
    }
    kept
}

/// Cleans one line and cuts it to a length that fits a screen or two.
pub(super) fn line(text: &str) -> String {
    let text = clean(text);
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    if first.chars().count() <= LINE {
        return first.to_owned();
    }
    first.chars().take(LINE).chain(['…']).collect()
}

/// Returns the last lines of a text that have anything in them.
pub(super) fn tail(text: &str, count: usize) -> Vec<String> {
    let text = clean(text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|l| l.chars().take(LINE).collect())
        .collect()
}

/// Returns what stands between two marks, the first time the first one appears.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// Returns the rest of the line after a mark.
pub(super) fn rest_of_line<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(mark)?;
    rest.lines().next().map(str::trim)
}

/// Writes a count with its unit.
pub(super) fn count(number: usize, unit: &str) -> String {
    if number == 1 {
        format!("1 {unit}")
    } else {
        format!("{number} {unit}s")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_are_taken_out() {
        let text = "\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\ a\u{202e}b\rc\u{0}d\te";
        assert_eq!(clean(text), "red link abcd    e");
    }

    #[test]
    fn the_tail_skips_empty_lines() {
        assert_eq!(tail("a\n\nb\n   \nc\n", 2), ["b", "c"]);
        assert_eq!(tail("", 2), [] as [&str; 0]);
    }

    proptest! {
        #[test]
        fn nothing_that_moves_the_cursor_is_left(text in any::<String>()) {
            let cleaned = clean(&text);
            prop_assert!(cleaned.chars().all(|c| c == '\n' || !c.is_control()), "{cleaned:?}");
            prop_assert_eq!(clean(&cleaned), cleaned.clone());
            line(&text);
            tail(&text, 15);
        }
    }
}
