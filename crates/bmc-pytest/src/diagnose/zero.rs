//! E028: pytest found no tests. Says where and by which patterns it looked, and what lies nearby.

use super::text::{count, line};
use super::{Advice, Context, advice};
use crate::interpreter::quote;

/// How many files are named.
const FILES: usize = 5;

/// Explains a collection without tests; `deselected` were found and then left out.
pub fn zero_tests(context: &Context, deselected: u64) -> Advice {
    let setting = |key: &str, default: &str| {
        let found = context.files.pytest_setting(key);
        let value = found.as_ref().map_or_else(
            || default.to_owned(),
            |(value, _)| line(&value.replace('\n', " ")),
        );
        (value, found.map_or("pytest's default", |(_, file)| file))
    };
    if deselected > 0 {
        let (addopts, file) = setting("addopts", "");
        let place = (!addopts.is_empty()).then(|| format!("{file}   addopts = {addopts}"));
        let tests = count(usize::try_from(deselected).unwrap_or(usize::MAX), "test");
        return advice(
            "E028",
            format!("no tests are left: {tests} collected, all of them deselected"),
            place.into_iter().collect(),
            vec!["an option such as -m, -k or --deselect leaves every test out".to_owned()],
            vec!["for once without those options: breakmycode . -- -o addopts=".to_owned()],
        );
    }
    let (folders, folders_from) = setting("testpaths", ".");
    let (files, files_from) = setting("python_files", "test_*.py *_test.py");
    let (functions, functions_from) = setting("python_functions", "test*");
    let (classes, classes_from) = setting("python_classes", "Test*");
    let why = vec![
        format!("looked in {folders} ({folders_from})"),
        format!("for files {files} ({files_from})"),
        format!(
            "with functions {functions} ({functions_from}) or classes {classes} ({classes_from})"
        ),
    ];
    let (by_name, by_content) = context.files.test_like_files(FILES);
    let mut help = Vec::new();
    let outside = by_name.iter().find(|file| {
        !folders
            .split_whitespace()
            .any(|folder| folder == "." || file.starts_with(folder))
    });
    if let Some(folder) =
        outside.map(|file| file.rsplit_once('/').map_or(".", |(folder, _)| folder))
    {
        help.push(format!("breakmycode {}", quote(folder)));
        help.push(context.files.setting_line("testpaths", folder));
    }
    if let Some(name) = by_content.first().map(|file| {
        file.rsplit_once('/')
            .map_or(file.as_str(), |(_, name)| name)
    }) {
        let pattern = name
            .split_once('_')
            .map_or_else(|| name.to_owned(), |(first, _)| format!("{first}_*.py"));
        help.push(
            context
                .files
                .setting_line("python_files", &format!("{files} {pattern}")),
        );
    }
    if by_name.is_empty() && by_content.is_empty() {
        help.push(
            "there is nothing that looks like a test below this folder; is it the right one?"
                .to_owned(),
        );
    }
    let places = [by_name, by_content]
        .concat()
        .iter()
        .take(FILES)
        .map(|file| format!("{}   looks like tests", line(file)))
        .collect();
    advice(
        "E028",
        "pytest found no tests".to_owned(),
        places,
        why,
        help,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::desk::Desk;

    #[test]
    fn an_empty_collection_says_where_it_looked_and_what_lies_nearby() {
        let desk = Desk::new(&[
            (
                "pytest.ini",
                "[pytest]\ntestpaths = tests\npython_files = spec_*.py\n",
            ),
            ("checks/check_shop.py", "def test_cart():\n    pass\n"),
            ("other/test_old.py", ""),
        ]);
        let expected = Advice {
            code: "E028".to_owned(),
            headline: "pytest found no tests".to_owned(),
            places: vec![
                "other/test_old.py   looks like tests".to_owned(),
                "checks/check_shop.py   looks like tests".to_owned(),
            ],
            why: vec![
                "looked in tests (pytest.ini)".to_owned(),
                "for files spec_*.py (pytest.ini)".to_owned(),
                "with functions test* (pytest's default) or classes Test* (pytest's default)"
                    .to_owned(),
            ],
            help: vec![
                "breakmycode other".to_owned(),
                "pytest.ini, [pytest]: testpaths = other".to_owned(),
                "pytest.ini, [pytest]: python_files = spec_*.py check_*.py".to_owned(),
            ],
        };
        assert_eq!(zero_tests(&desk.context, 0), expected);
    }

    #[test]
    fn deselected_tests_are_not_missing_tests() {
        let desk = Desk::new(&[(
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = '-m slow'\n",
        )]);
        let advice = zero_tests(&desk.context, 3);
        assert_eq!(
            advice.headline,
            "no tests are left: 3 tests collected, all of them deselected"
        );
        assert_eq!(advice.places, ["pyproject.toml   addopts = -m slow"]);
    }
}
