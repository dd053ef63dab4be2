//! Takes comments and literals out of Rust source, so that a word in a text is not mistaken for code. Does not parse.

/// Gives the text with comments and the inside of string and character literals as spaces; lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match skip(&chars, at) {
            Some(end) => end.min(chars.len()),
            None => {
                code.push(chars[at]);
                at += 1;
                continue;
            }
        };
        code.extend(
            chars[at..end]
                .iter()
                .map(|c| if *c == '\n' { '\n' } else { ' ' }),
        );
        at = end;
    }
    code
}

/// Says where the comment or literal that begins here ends, or that none begins here.
fn skip(chars: &[char], at: usize) -> Option<usize> {
    let next = |ahead: usize| chars.get(at + ahead).copied();
    match chars[at] {
        '/' if next(1) == Some('/') => Some(find(chars, at, '\n')),
        '/' if next(1) == Some('*') => Some(block_comment(chars, at)),
        '"' => Some(string(chars, at + 1)),
        '\'' if next(1) == Some('\\') => Some(find(chars, at + 3, '\'') + 1),
        // A lifetime has no closing quote two characters on.
        '\'' if next(2) == Some('\'') => Some(at + 3),
        'r' | 'b' | 'c' if at == 0 || !is_word(chars[at - 1]) => raw_string(chars, at),
        _ => None,
    }
}

fn raw_string(chars: &[char], start: usize) -> Option<usize> {
    let mut at = start + usize::from(chars[start] != 'r');
    if chars.get(at) != Some(&'r') {
        return None;
    }
    at += 1;
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    at += hashes;
    if chars.get(at) != Some(&'"') {
        return None;
    }
    at += 1;
    while at < chars.len() {
        if chars[at] == '"'
            && chars[at + 1..]
                .iter()
                .take(hashes)
                .filter(|c| **c == '#')
                .count()
                == hashes
        {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(at)
}

fn string(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

fn block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn find(chars: &[char], from: usize, wanted: char) -> usize {
    (from..chars.len())
        .find(|at| chars[*at] == wanted)
        .unwrap_or(chars.len())
}

/// Says whether a character can be part of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_go_and_code_and_lines_stay() {
        let source = "let a = \"x // \\\" y\"; // word\n/* word /* word */\nword */ let c = 'w'; let d = '\\''; fn f<'a>() {}\n\
                      let r = r#\"word \" word\"#; let b = br\"word\\\"; let e = b\"word\"; radius\n";
        let code = code_only(source);
        assert!(!code.contains("word") && !code.contains("'w'"), "{code}");
        for kept in [
            "let a =",
            "let c =",
            "let d =",
            "fn f<'a>() {}",
            "let r =",
            "let b =",
            "let e = b",
            "radius",
        ] {
            assert!(code.contains(kept), "{kept} in {code}");
        }
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn a_literal_without_an_end_is_no_panic() {
        for source in [
            "\"abc",
            "\"abc\\",
            "r#\"abc\"",
            "/* abc",
            "'\\",
            "'",
            "b",
            "r#",
            "'\\'",
        ] {
            let _ = code_only(source);
        }
    }
}
