use std::collections::BTreeMap;

use super::*;

/// A project and a home folder, with files in them.
struct Desk {
    folder: tempfile::TempDir,
    vars: BTreeMap<std::ffi::OsString, std::ffi::OsString>,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
            vars: BTreeMap::new(),
        };
        for (file, text) in files {
            let path = desk.root().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        desk
    }

    fn root(&self) -> PathBuf {
        let root = self.folder.path().canonicalize().unwrap().join("My Shop");
        fs::create_dir_all(&root).unwrap();
        root
    }

    /// Makes an environment below the home folder.
    fn environment(&self, path: &str) -> PathBuf {
        let folder = self.folder.path().join("home").join(path);
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::create_dir_all(folder.join("conda-meta")).unwrap();
        fs::write(folder.join("bin/python"), "").unwrap();
        folder
    }

    fn found(&self) -> Vec<(String, What)> {
        let root = Root {
            path: self.root(),
            marker: None,
            git: None,
        };
        let surroundings = Surroundings {
            vars: self.vars.clone(),
            home: Some(self.folder.path().join("home")),
            own_executable: "/usr/bin/breakmycode".into(),
        };
        let metadata = Metadata::read(&root.path, None);
        all(&root, &metadata, &surroundings)
            .into_iter()
            .map(|place| (place.found_by, place.what))
            .collect()
    }

    fn expect(&self, found_by: &str, folders: &[&PathBuf]) {
        let expected: Vec<(String, What)> = folders
            .iter()
            .map(|folder| {
                (
                    found_by.to_owned(),
                    What::Interpreter(folder.join("bin/python")),
                )
            })
            .collect();
        assert_eq!(self.found(), expected);
    }
}

#[test]
fn folder_hashes_are_those_of_poetry_pipenv_and_hatch() {
    // Computed by Python's hashlib and base64; the same rule gave the names that the real tools chose.
    assert_eq!(hash(OsStr::new("/home/dev/shop")), "6Cis_Hku");
    assert_eq!(hash(OsStr::new("/home/dev/shop/Pipfile")), "_7rSsLg_");
    assert_eq!(hash(OsStr::new("/home/dev/shop3")), "-_ePB2m1");
}

#[test]
fn poetry_environments_are_found_and_envs_toml_says_which() {
    let desk = Desk::new(&[("pyproject.toml", "[tool.poetry]\nname = 'My_Shop.x'\n")]);
    let name = format!("my-shop-x-{}", hash(desk.root().as_os_str()));
    let cache = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    let folder = format!("{cache}/pypoetry/virtualenvs");
    let older = desk.environment(&format!("{folder}/{name}-py3.9"));
    let newer = desk.environment(&format!("{folder}/{name}-py3.12"));
    desk.environment(&format!("{folder}/my-shop-x-AAAAAAAA-py3.12"));
    desk.expect("poetry environment", &[&newer, &older]);
    fs::write(
        older.with_file_name("envs.toml"),
        format!("[{name}]\nminor = '3.9'\npatch = '3.9.1'\n"),
    )
    .unwrap();
    desk.expect("poetry environment", &[&older, &newer]);
}

#[test]
fn poetry_settings_move_the_folder() {
    let mut desk = Desk::new(&[
        ("pyproject.toml", "[tool.poetry]\nname = 'shop'\n"),
        (
            "poetry.toml",
            "[virtualenvs]\npath = '{cache-dir}/elsewhere'\n",
        ),
    ]);
    let name = format!("shop-{}-py3.12", hash(desk.root().as_os_str()));
    let folder = desk.environment(&format!("cache/elsewhere/{name}"));
    let cache = desk.folder.path().join("home/cache");
    desk.vars.insert("POETRY_CACHE_DIR".into(), cache.into());
    desk.expect("poetry environment", &[&folder]);
}

#[test]
fn pipenv_environments_are_named_after_folder_and_pipfile() {
    let desk = Desk::new(&[("Pipfile", "")]);
    let name = format!("My_Shop-{}", hash(desk.root().join("Pipfile").as_os_str()));
    let folder = desk.environment(&format!(".local/share/virtualenvs/{name}"));
    desk.environment(".local/share/virtualenvs/My_Shop-AAAAAAAA");
    desk.expect("pipenv environment", &[&folder]);
}

#[test]
fn pdm_names_the_interpreter_itself() {
    let desk = Desk::new(&[(".pdm-python", "/home/dev/.pdm/venvs/shop/bin/python\n")]);
    let file = What::Interpreter("/home/dev/.pdm/venvs/shop/bin/python".into());
    assert_eq!(desk.found(), [(".pdm-python".to_owned(), file)]);
}

#[test]
fn hatch_test_environments_come_before_the_default_one() {
    let mut desk = Desk::new(&[(
        "pyproject.toml",
        "[project]\nname = 'My_Shop'\n[tool.hatch.envs.default]\n",
    )]);
    let id = hash(desk.root().as_os_str());
    let folder = format!("data/env/virtual/my-shop/{id}");
    let default = desk.environment(&format!("{folder}/my-shop"));
    let older = desk.environment(&format!("{folder}/hatch-test.py3.9"));
    let newer = desk.environment(&format!("{folder}/hatch-test.py3.12"));
    desk.vars.insert(
        "HATCH_DATA_DIR".into(),
        desk.folder.path().join("home/data").into(),
    );
    desk.expect("hatch environment", &[&newer, &older, &default]);
}

#[test]
fn conda_environments_are_found_by_the_name_in_environment_yml() {
    let desk = Desk::new(&[("environment.yml", "channels: [x]\nname: \"shop\"\n")]);
    let folder = desk.environment("miniforge3/envs/shop");
    desk.expect("conda environment", &[&folder]);
}

#[test]
fn a_name_that_leaves_the_folder_is_ignored() {
    let desk = Desk::new(&[("environment.yml", "name: ../../etc\n")]);
    assert_eq!(desk.found(), []);
}
