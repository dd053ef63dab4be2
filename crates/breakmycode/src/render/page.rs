//! The few shapes that all text output is made of: labelled lines, paragraphs, aligned tables.

use std::io::{self, Write};

use owo_colors::Style;

use crate::style::Look;
use crate::text;

/// Columns of the labels on the left (`    Finished`), and of the gap after them.
const LABEL: usize = 12;
const GAP: usize = 2;

/// Where text after a label begins.
pub(super) const BODY: usize = LABEL + GAP;

/// Lines with a label: the words wrapped, then an aside in dim, on the same line if it fits.
pub(super) fn labelled(
    label: &str,
    words: &str,
    aside: &str,
    style: Style,
    look: &Look,
) -> Vec<String> {
    let room = look.columns().saturating_sub(BODY);
    let mut lines: Vec<String> = text::wrap(words, room);
    if !aside.is_empty() {
        let last = lines.last().map_or(0, |line| text::width(line));
        if last + 3 + text::width(aside) <= room {
            if let Some(line) = lines.last_mut() {
                line.push_str(&format!("   {}", look.styles.dim.style(aside)));
            }
        } else {
            lines.extend(
                text::wrap(aside, room)
                    .into_iter()
                    .map(|line| look.styles.dim.style(line).to_string()),
            );
        }
    }
    let label = text::pad_left(label, LABEL);
    lines
        .into_iter()
        .enumerate()
        .map(|(i, line)| {
            if i == 0 {
                format!("{}  {line}", style.style(&label))
            } else {
                format!("{}{line}", " ".repeat(BODY))
            }
        })
        .collect()
}

/// Writes lines.
pub(super) fn lines(lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Writes a paragraph: wrapped, the first line after `first`, the others below its text.
pub(super) fn paragraph(
    first: &str,
    words: &str,
    style: Style,
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let indent = text::width(first);
    for (i, line) in text::wrap(words, look.columns().saturating_sub(indent).max(20))
        .into_iter()
        .enumerate()
    {
        let start = if i == 0 {
            first.to_owned()
        } else {
            " ".repeat(indent)
        };
        writeln!(out, "{start}{}", style.style(line))?;
    }
    Ok(())
}

/// Side on which a column is flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    Left,
    Right,
}

/// Writes a table with a head. The last column is as long as it is; nothing is shortened, so that it can be searched and pasted.
pub(super) fn table<const N: usize>(
    columns: [(&str, Flush); N],
    rows: &[[String; N]],
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let widths: [usize; N] = std::array::from_fn(|i| {
        let widest = rows
            .iter()
            .map(|row| text::width(&row[i]))
            .max()
            .unwrap_or(0);
        widest.max(text::width(columns[i].0))
    });
    let line = |cells: [&str; N]| {
        let cells: Vec<String> = cells
            .into_iter()
            .enumerate()
            .map(|(i, cell)| match columns[i].1 {
                Flush::Left => text::pad(cell, widths[i]),
                Flush::Right => text::pad_left(cell, widths[i]),
            })
            .collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned()
    };
    writeln!(
        out,
        "{}",
        look.styles.dim.style(line(columns.map(|(name, _)| name)))
    )?;
    for row in rows {
        writeln!(out, "{}", line(std::array::from_fn(|i| row[i].as_str())))?;
    }
    Ok(())
}
