//! Words and numbers as they are printed: text from the project made harmless, counts, durations and shares.
//!
//! Pure functions. Nothing here knows reports or terminals.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Marks stacked on one character. Real scripts use up to three; more is a way to paint over other lines.
const MARKS_IN_A_ROW: u32 = 4;

/// Escapes everything that a terminal would obey or a reader could not see: control characters, escape sequences, line separators,
/// direction overrides and invisible characters. What is left can be printed as it is. Doing it twice changes nothing more.
pub(crate) fn printable(text: &str) -> String {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        let bare = c.width() == Some(0) && !c.is_ascii();
        marks = if bare { marks + 1 } else { 0 };
        match c {
            '\n' => clean.push_str("\\n"),
            '\r' => clean.push_str("\\r"),
            '\t' => clean.push_str("\\t"),
            c if c.is_control() => push_hex(&mut clean, c),
            c if is_unseen(c) || marks > MARKS_IN_A_ROW => {
                marks = 0;
                push_code(&mut clean, c);
            }
            c => clean.push(c),
        }
    }
    clean
}

fn push_hex(text: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\\x{:02x}", u32::from(c));
}

fn push_code(text: &mut String, c: char) {
    let _ = write!(text, "\\u{{{:x}}}", u32::from(c));
}

/// Characters without a shape of their own: fillers, joiners, selectors, direction marks, separators, tags, noncharacters.
fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164
        | 0xfdd0..=0xfdef | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Shortens a node id to a width, in the middle of its path and never at the test's name or parameters.
/// Where even that is too long, the result is wider than asked for.
pub(crate) fn shorten_node_id(id: &str, width: usize) -> String {
    shorten_with(id, width, "…")
}

/// Shortens a node id as [`shorten_node_id`] does, with a mark of the caller's for what was left out.
pub(crate) fn shorten_with(id: &str, width: usize, mark: &str) -> String {
    let id = printable(id);
    if id.width() <= width {
        return id;
    }
    let (path, rest) = match id.find("::") {
        Some(at) => id.split_at(at),
        // A node without a test in it: its file name is what counts.
        None => match id.rfind('/') {
            Some(at) => id.split_at(at),
            None => return id,
        },
    };
    if let Some(room) = width.checked_sub(rest.width())
        && room >= mark.width()
    {
        return format!("{}{rest}", shorten_path(path, room, mark));
    }
    // Classes go before the name does.
    let name = rest
        .find('[')
        .map_or(rest, |at| &rest[..at])
        .rfind("::")
        .map_or(rest, |at| &rest[at..]);
    format!("{mark}{name}")
}

/// Shortens a path to a width that has room for the mark: whole folders from the middle first, then characters.
fn shorten_path(path: &str, width: usize, mark: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let file = parts.last().copied().unwrap_or_default();
    for kept in (0..parts.len().saturating_sub(1)).rev() {
        let head = &parts[..kept];
        let short = if head.is_empty() {
            format!("{mark}/{file}")
        } else {
            format!("{}/{mark}/{file}", head.join("/"))
        };
        if short.width() <= width {
            return short;
        }
    }
    format!("{mark}{}", end_of(path, width - mark.width()))
}

/// As much of the end of a text as fits.
fn end_of(text: &str, width: usize) -> &str {
    let mut used = 0;
    let mut from = text.len();
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        from = at;
    }
    &text[from..]
}

/// As much of the beginning of a text as fits, with a mark if something was left out.
pub(crate) fn cut(text: &str, width: usize, mark: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(mark.width());
    let mut used = 0;
    let mut kept = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(c);
    }
    kept.push_str(mark);
    kept
}

/// Breaks a text into lines of at most that width, at spaces but not within a quantity. What cannot be broken has a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    // An indentation belongs to the first word.
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut pieces: Vec<String> = Vec::new();
    for word in text[indent..].split(' ') {
        match pieces.last_mut() {
            Some(last) if belongs_to(word, last) => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) => pieces.push(word.to_owned()),
            None => pieces.push(format!("{}{word}", " ".repeat(indent))),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + piece.width() <= width => {
                line.push(' ');
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines
}

/// Whether a word is the unit of the number before it, or the rest of that number.
fn belongs_to(word: &str, before: &str) -> bool {
    let bare = word.trim_end_matches(['.', ',', ';', ':', ')', '(']);
    let unit = matches!(bare, "%" | "s" | "min" | "h" | "d");
    let digits = bare.len() == 3 && bare.bytes().all(|b| b.is_ascii_digit());
    before.ends_with(|c: char| c.is_ascii_digit()) && (unit || digits)
}

/// Fills a text with spaces to a width.
pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Fills a text with spaces in front to a width.
pub(crate) fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

/// The first line that says something, made printable.
pub(crate) fn first_line(text: &str) -> String {
    printable(
        text.lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or(""),
    )
}

/// A duration: `0.4 s`, `1 min 38 s`, `3 h 10 min`, `2 d 4 h`.
pub(crate) fn seconds(seconds: f64) -> String {
    // NaN and negative numbers become 0; the cap keeps the arithmetic exact and is 300 years.
    let s = if seconds > 0.0 {
        seconds.min(1e10)
    } else {
        0.0
    };
    if (s * 10.0).round() < 600.0 {
        return format!("{s:.1} s");
    }
    let whole = s.round() as u64;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86_400);
    if hours == 0 {
        format!("{minutes} min {} s", whole % 60)
    } else if days == 0 {
        format!("{hours} h {} min", minutes % 60)
    } else {
        format!("{days} d {} h", hours % 24)
    }
}

/// A duration that is often far below a second: `8 ms`, `1.4 s`.
pub(crate) fn brief_seconds(s: f64) -> String {
    match s {
        _ if s > 0.0 && s < 0.0005 => "<1 ms".to_owned(),
        _ if s > 0.0 && s < 0.9995 => format!("{:.0} ms", s * 1000.0),
        _ => seconds(s),
    }
}

/// Time on a clock: `00:01:02`, hours as many as there are.
pub(crate) fn clock(seconds: f64) -> String {
    let s = if seconds > 0.0 {
        seconds.min(1e10) as u64
    } else {
        0
    };
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// A share between 0 and 1 as a number of percent without the sign. Only a true 0 or 1 is written as `0` or `100`.
pub(crate) fn percent_number(share: f64) -> String {
    let x = share * 100.0;
    if x.is_nan() || x <= 0.0 {
        return "0".to_owned();
    }
    if x >= 100.0 {
        return "100".to_owned();
    }
    if x < 0.001 {
        return "<0.001".to_owned();
    }
    if x > 99.999 {
        return ">99.999".to_owned();
    }
    // Near both ends one digit would round to the end itself.
    let distance = x.min(100.0 - x);
    let digits = if distance >= 0.95 {
        1
    } else if distance >= 0.095 {
        2
    } else {
        3
    };
    format!("{x:.digits$}")
}

/// A share between 0 and 1 as percent. For a share of runs, print the counts and a bound with it.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

/// A probability between 0 and 1 in whole percent, never rounded up to certainty or down to impossibility.
pub(crate) fn chance(share: f64) -> String {
    let x = share * 100.0;
    if x > 99.0 && x < 100.0 {
        return "over 99 %".to_owned();
    }
    if x > 0.0 && x < 1.0 {
        return "under 1 %".to_owned();
    }
    format!(
        "{:.0} %",
        if x.is_nan() { 0.0 } else { x.clamp(0.0, 100.0) }
    )
}

/// A count with groups of three digits: `8 240`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(c);
    }
    text
}

/// A count with the right form of its noun.
pub(crate) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// A word for a shell, quoted where that is needed. `None` if it holds what cannot be printed and would be something else when pasted.
pub(crate) fn shell_word(word: &str) -> Option<String> {
    if printable(word) != word {
        return None;
    }
    let safe = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '/' | '.' | '_' | '-' | ':' | '=' | ',' | '+' | '@' | '%')
    };
    if !word.is_empty() && word.chars().all(safe) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests;
