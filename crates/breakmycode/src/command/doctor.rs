//! `breakmycode doctor`: which interpreter and isolation would be used, every candidate, and why it lost.

use bmc_engine::workflow;
use bmc_sandbox::Isolation;

use super::{Surface, answer};
use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::render;
use crate::settings;
use crate::text::printable;

/// Looks and says. Exit code 0 if a scan could start, else 3.
pub(crate) fn doctor(args: &DoctorArgs, surface: &Surface) -> Result<u8, Failure> {
    let setting = settings::setting(&surface.global, surface.interrupt.clone())?;
    let request = settings::plain_request(&args.path, args.python.clone(), args.active)?;
    let found = workflow::doctor(&request, &setting);
    let look = surface.stdout_look();
    let styles = &look.styles;
    let (yes, no) = if look.ascii {
        ("ok", "x")
    } else {
        ("✓", "✗")
    };
    let (good, bad) = (
        styles.ok.style(yes).to_string(),
        styles.fail.style(no).to_string(),
    );
    answer(|out| {
        let marker = found
            .discovery
            .root
            .marker
            .as_deref()
            .unwrap_or("no pyproject.toml or pytest.ini");
        writeln!(
            out,
            "{:>12}  {}   {marker}",
            "Project",
            printable(&found.discovery.root.path.display().to_string())
        )?;
        match &found.discovery.chosen {
            Some(python) => {
                let (a, b, c) = python.probe.version;
                writeln!(
                    out,
                    "{:>12}  {good} {a}.{b}.{c}  {}   found by {}",
                    "Python",
                    printable(&python.display),
                    printable(&python.found_by)
                )?;
                let version = python.probe.pytest.as_deref().unwrap_or("unknown");
                let plugins: Vec<String> = python
                    .probe
                    .plugins
                    .iter()
                    .map(|p| format!("{} {}", p.distribution, p.version))
                    .collect();
                let plugins = if plugins.is_empty() {
                    "no plugins".to_owned()
                } else {
                    plugins.join(", ")
                };
                writeln!(
                    out,
                    "{:>12}  {good} {}   {}",
                    "pytest",
                    printable(version),
                    printable(&plugins)
                )?;
            }
            None => writeln!(
                out,
                "{:>12}  {bad} no interpreter that can run these tests",
                "Python"
            )?,
        }
        for candidate in &found.discovery.considered {
            let name = candidate
                .executable
                .as_ref()
                .map(|p| format!("  {}", p.display()))
                .unwrap_or_default();
            writeln!(
                out,
                "{:>12}  - {}{}: {}",
                "",
                printable(&candidate.found_by),
                printable(&name),
                printable(&candidate.fate.to_string())
            )?;
        }
        for note in &found.discovery.notes {
            writeln!(out, "{:>12}  {}", "note", printable(&note.text))?;
            for line in &note.help {
                writeln!(out, "{:>12}    {}", "", printable(line))?;
            }
        }
        let git = match (&found.git.commit, found.git.dirty) {
            (None, _) => "no repository".to_owned(),
            (Some(commit), dirty) => {
                let state = match dirty {
                    Some(true) => "changed files",
                    Some(false) => "clean",
                    None => "state unknown",
                };
                let branch = found
                    .git
                    .branch
                    .as_deref()
                    .map_or_else(|| "no branch".to_owned(), |b| format!("branch {b}"));
                format!("{state}, {branch}, {}", &commit[..commit.len().min(7)])
            }
        };
        writeln!(out, "{:>12}  {}", "git", printable(&git))?;
        let level = found.probe.level;
        let mark = if level == Isolation::Full {
            &good
        } else {
            &bad
        };
        writeln!(out, "{:>12}  {mark} {level}", "Isolation")?;
        for step in &found.probe.steps {
            let mark = if step.ok { &good } else { &bad };
            let detail = if step.detail.is_empty() {
                String::new()
            } else {
                format!(": {}", step.detail)
            };
            writeln!(
                out,
                "{:>12}  {mark} {}{}",
                "",
                printable(&step.name),
                printable(&detail)
            )?;
        }
        if !found.withheld.is_empty() {
            writeln!(
                out,
                "{:>12}  not passed to tests: {}   (--pass-env NAME passes one)",
                "Variables",
                printable(&found.withheld.join(", "))
            )?;
        }
        for path in found.unreadable.iter().take(5) {
            writeln!(
                out,
                "{:>12}  cannot be read: {}",
                "note",
                printable(&path.display().to_string())
            )?;
        }
        writeln!(
            out,
            "{:>12}  {}",
            "Trace",
            printable(&setting.directories.database.display().to_string())
        )?;
        writeln!(
            out,
            "{:>12}  {}",
            "Cache",
            printable(&setting.directories.cache.display().to_string())
        )?;
        if let Some(error) = &found.discovery.error {
            writeln!(out)?;
            render::terminal::advice(&[error.advice()], &look, out)?;
        }
        Ok(())
    })?;
    Ok(if found.discovery.chosen.is_some() {
        0
    } else {
        3
    })
}
