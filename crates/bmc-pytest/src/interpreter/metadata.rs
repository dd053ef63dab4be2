//! Reads what a project's files say about itself: its name, the Python it asks for, and who manages its packages.
//!
//! Must not fail: a file that cannot be read says nothing.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Manager;
use super::specifier::Constraint;

/// Largest project file that is read. The largest `pyproject.toml` seen in the wild was below 100 KB.
const FILE_LIMIT: u64 = 4 << 20;

/// What the project's files say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metadata {
    /// Name of the package.
    pub(crate) name: Option<String>,
    /// The Python versions it allows.
    pub(crate) requires: Option<Constraint>,
    /// The file that says so.
    pub(crate) requires_from: &'static str,
    /// A constraint that could not be understood.
    pub(crate) unread: Option<String>,
    /// Who manages its packages.
    pub(crate) manager: Manager,
    /// `pyproject.toml`, if it can be read.
    pub(crate) pyproject: Table,
}

impl Metadata {
    /// Reads the files of the project at `root`; lock files may also lie further up, below `git`.
    pub(crate) fn read(root: &Path, git: Option<&Path>) -> Self {
        let pyproject = read_toml(&root.join("pyproject.toml"));
        let name = text_at(&pyproject, &["project", "name"])
            .or_else(|| text_at(&pyproject, &["tool", "poetry", "name"]));
        let asked = [
            (
                text_at(&pyproject, &["project", "requires-python"]),
                "pyproject.toml",
            ),
            (poetry_python(&pyproject), "pyproject.toml"),
            (setup_cfg_python(root), "setup.cfg"),
            (pipfile_python(root), "Pipfile"),
        ];
        let (mut requires, mut requires_from, mut unread) = (None, "", None);
        if let Some((Some(text), file)) = asked.into_iter().find(|(text, _)| text.is_some()) {
            requires = Constraint::parse(&text);
            requires_from = file;
            unread = requires.is_none().then_some(text);
        }
        let manager = Manager::detect(root, git, &pyproject);
        Self {
            name,
            requires,
            requires_from,
            unread,
            manager,
            pyproject,
        }
    }
}

/// Reads a file as text; `None` if it is missing, too large, or not a plain file.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let file = fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a TOML file; an empty table if that is not possible.
pub(crate) fn read_toml(path: &Path) -> Table {
    read_text(path)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// Returns the table at a path of keys.
pub(crate) fn table_at<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Table> {
    keys.iter()
        .try_fold(table, |table, key| table.get(*key)?.as_table())
}

/// Returns the text at a path of keys.
pub(crate) fn text_at(table: &Table, keys: &[&str]) -> Option<String> {
    let (last, tables) = keys.split_last()?;
    Some(table_at(table, tables)?.get(*last)?.as_str()?.to_owned())
}

fn poetry_python(pyproject: &Table) -> Option<String> {
    match table_at(pyproject, &["tool", "poetry", "dependencies"])?.get("python")? {
        Value::String(text) => Some(text.clone()),
        Value::Table(table) => Some(table.get("version")?.as_str()?.to_owned()),
        Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_) => None,
    }
}

fn setup_cfg_python(root: &Path) -> Option<String> {
    let text = read_text(&root.join("setup.cfg"))?;
    ini_value(&text, "options", "python_requires")
}

fn pipfile_python(root: &Path) -> Option<String> {
    let pipfile = read_toml(&root.join("Pipfile"));
    text_at(&pipfile, &["requires", "python_full_version"])
        .or_else(|| text_at(&pipfile, &["requires", "python_version"]))
}

/// Returns the value of a key in an INI file, continuation lines joined by newlines.
pub(crate) fn ini_value(text: &str, section: &str, key: &str) -> Option<String> {
    let mut here = false;
    let mut value: Option<String> = None;
    for line in text.lines() {
        if let (Some(value), true) = (&mut value, line.starts_with([' ', '\t'])) {
            value.push('\n');
            value.push_str(line.trim());
            continue;
        }
        if value.is_some() && !line.trim().is_empty() && !line.starts_with(['#', ';']) {
            break;
        }
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            here = name.trim_end_matches(']').trim() == section;
        } else if here
            && let Some((name, rest)) = line.split_once(['=', ':'])
            && name.trim().eq_ignore_ascii_case(key)
        {
            value = Some(rest.trim().to_owned());
        }
    }
    value.map(|value| value.trim().to_owned())
}

/// Yields a folder and the folders above it, up to and with `top`; only the folder itself if it is not below `top`.
pub(crate) fn up_to<'a>(
    folder: &'a Path,
    top: Option<&'a Path>,
) -> impl Iterator<Item = &'a Path> + use<'a> {
    let top = top.filter(|top| folder.starts_with(top)).unwrap_or(folder);
    folder
        .ancestors()
        .take_while(move |ancestor| ancestor.starts_with(top))
}

/// Writes a path for people: relative to the project, or with `~` for the home folder.
pub(crate) fn display(path: &Path, root: &Path, home: Option<&Path>) -> String {
    if let Ok(rest) = path.strip_prefix(root)
        && !rest.as_os_str().is_empty()
    {
        return rest.display().to_string();
    }
    if let Some(rest) = home.and_then(|home| path.strip_prefix(home).ok()) {
        return PathBuf::from("~").join(rest).display().to_string();
    }
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ini_values_with_continuation_lines_are_read() {
        let text = "[other]\nkey = 1\n[options]\n# note\npython_requires = >=3.8\ninstall_requires =\n    httpx>=1\n    attrs ; python_version < '3'\n[x]\ny=1\n";
        assert_eq!(
            ini_value(text, "options", "python_requires").as_deref(),
            Some(">=3.8")
        );
        assert_eq!(
            ini_value(text, "options", "install_requires").as_deref(),
            Some("httpx>=1\nattrs ; python_version < '3'")
        );
        assert_eq!(ini_value(text, "options", "y"), None);
    }

    #[test]
    fn requires_python_is_found_in_each_kind_of_file() {
        let table = [
            (
                "pyproject.toml",
                "[project]\nname='a'\nrequires-python = '>=3.9'\n",
                ">=3.9",
            ),
            (
                "pyproject.toml",
                "[tool.poetry.dependencies]\npython = '^3.8'\n",
                "^3.8",
            ),
            (
                "pyproject.toml",
                "[tool.poetry.dependencies]\npython = {version='^3.7'}\n",
                "^3.7",
            ),
            (
                "setup.cfg",
                "[options]\npython_requires = ~=3.10\n",
                "~=3.10",
            ),
            ("Pipfile", "[requires]\npython_version = '3.11'\n", "3.11"),
        ];
        for (file, text, expected) in table {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(file), text).unwrap();
            let metadata = Metadata::read(folder.path(), None);
            assert_eq!(
                metadata.requires.as_ref().map(Constraint::text),
                Some(expected),
                "{file}"
            );
            assert_eq!(metadata.requires_from, file);
        }
    }

    #[test]
    fn an_unreadable_constraint_is_kept_as_text_and_constrains_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("pyproject.toml"),
            "[project]\nrequires-python = 'newest please'\n",
        )
        .unwrap();
        let metadata = Metadata::read(folder.path(), None);
        assert_eq!(
            (metadata.requires, metadata.unread.as_deref()),
            (None, Some("newest please"))
        );
    }

    #[test]
    fn paths_are_shown_relative_to_the_project_or_the_home_folder() {
        let (root, home) = (Path::new("/home/dev/shop"), Path::new("/home/dev"));
        let show = |path: &str| display(Path::new(path), root, Some(home));
        assert_eq!(show("/home/dev/shop/.venv/bin/python"), ".venv/bin/python");
        assert_eq!(show("/home/dev/envs/a/bin/python"), "~/envs/a/bin/python");
        assert_eq!(show("/usr/bin/python3"), "/usr/bin/python3");
        assert_eq!(show("/home/dev/shop"), "~/shop");
    }
}
