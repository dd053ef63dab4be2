//! Faults around the tests, in four parts: what happened, where, why we think so, what to type.

use std::io::{self, Write};

use bmc_types::{Advice, Problem, Severity};

use super::page;
use crate::style::Look;
use crate::text::{printable, width};

/// Writes each advice as a block of its own.
pub(crate) fn advice(list: &[Advice], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    for (
        i,
        Advice {
            code,
            headline,
            places,
            why,
            help,
        },
    ) in list.iter().enumerate()
    {
        if i > 0 {
            writeln!(out)?;
        }
        let head = format!("error[BMC-{}]: ", printable(code));
        for (n, line) in crate::text::wrap(
            &printable(headline),
            look.columns().saturating_sub(width(&head)).max(20),
        )
        .iter()
        .enumerate()
        {
            let start = if n == 0 {
                look.styles.env.style(&head).to_string()
            } else {
                " ".repeat(width(&head))
            };
            writeln!(out, "{start}{}", look.styles.bold.style(line))?;
        }
        for place in places {
            page::paragraph("   ", &printable(place), look.styles.path, look, out)?;
        }
        part("   why: ", why, look, out)?;
        part("   help: ", help, look, out)?;
    }
    Ok(())
}

/// Writes the entries below each other, the first after its label.
fn part(label: &str, entries: &[String], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let blank = " ".repeat(label.len());
    let mut first = label;
    for entry in entries {
        // An entry may be output of pytest with lines of its own.
        for line in entry.lines() {
            // Spaces in commands are kept: columns of the text, and what is pasted, stay as they are.
            page::paragraph(first, &printable(line), owo_colors::Style::new(), look, out)?;
            first = &blank;
        }
    }
    Ok(())
}

/// Writes the remarks on the scan as a whole, loudest first.
pub(super) fn problems(list: &[Problem], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut sorted: Vec<&Problem> = list.iter().collect();
    sorted.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
    for Problem {
        severity,
        kind: _,
        text,
    } in sorted
    {
        let (word, style) = match severity {
            Severity::Error => ("error", look.styles.fail),
            Severity::Warning => ("warning", look.styles.flaky),
            Severity::Note => ("note", look.styles.dim),
        };
        let lines = crate::text::wrap(&printable(text), look.columns().saturating_sub(11).max(20));
        for (i, line) in lines.iter().enumerate() {
            if i == 0 {
                writeln!(out, "  {}  {line}", style.style(crate::text::pad(word, 7)))?;
            } else {
                writeln!(out, "{}{line}", " ".repeat(11))?;
            }
        }
    }
    Ok(())
}
