use super::*;
use crate::interpreter::desk::{Desk, FIT};

fn listed(desk: &Desk, prefer_active: bool) -> Vec<String> {
    let root = Root {
        path: desk.root(),
        marker: None,
        git: Some(desk.top.clone()),
    };
    let metadata = Metadata::read(&root.path, root.git.as_deref());
    all(&root, &metadata, &desk.surroundings(), prefer_active)
        .into_iter()
        .map(|place| match place.what {
            What::Interpreter(file) => {
                format!(
                    "{}: {}",
                    place.found_by,
                    file.strip_prefix(&desk.top).unwrap_or(&file).display()
                )
            }
            What::Broken(_, fault) => format!("{}: {fault}", place.found_by),
            What::Nothing(why) => format!("{}: {why}", place.found_by),
        })
        .collect()
}

#[test]
fn places_come_in_the_order_of_the_ladder() {
    let mut desk = Desk::new(&[
        (".pdm-python", "/opt/pdm/bin/python"),
        (".python-version", "3.11\n"),
    ]);
    desk.write(
        "pyproject.toml",
        "[tool.uv.workspace]\nmembers = ['shop']\n",
    );
    for folder in [
        "named",
        "shop/.venv",
        ".venv",
        "shop/venv",
        "shop/.pixi/envs/default",
        "active",
    ] {
        desk.environment(folder, &FIT);
    }
    desk.write("shop/env/settings.ini", "");
    for version in ["3.11.2", "3.11.10", "3.110.1"] {
        desk.interpreter(&format!("home/.pyenv/versions/{version}/bin/python"), &FIT);
    }
    desk.interpreter("bin/python3", &FIT);
    desk.interpreter("bin/python", &FIT);
    desk.set("UV_PROJECT_ENVIRONMENT", "../named");
    desk.set("VIRTUAL_ENV", desk.top.join("active"));
    let own = [
        "UV_PROJECT_ENVIRONMENT: shop/../named/bin/python",
        "project .venv: shop/.venv/bin/python",
        "uv workspace .venv: .venv/bin/python",
        "project venv: shop/venv/bin/python",
        "pixi environment: shop/.pixi/envs/default/bin/python",
        ".pdm-python: /opt/pdm/bin/python",
    ];
    let active = ["VIRTUAL_ENV: active/bin/python"];
    let rest = [
        ".python-version 3.11 (pyenv): home/.pyenv/versions/3.11.10/bin/python",
        "PATH python3: bin/python3",
        "PATH python: bin/python",
    ];
    assert_eq!(listed(&desk, false), [&own[..], &active, &rest].concat());
    assert_eq!(listed(&desk, true), [&active[..], &own, &rest].concat());
}

#[test]
fn empty_places_say_so() {
    let desk = Desk::new(&[]);
    assert_eq!(
        listed(&desk, false),
        [
            "project .venv: does not exist",
            "VIRTUAL_ENV: unset",
            "PATH python3: not found"
        ]
    );
}

#[test]
fn conda_base_comes_last_and_other_conda_environments_are_active() {
    let mut desk = Desk::new(&[]);
    for folder in ["conda/envs/shop", "conda"] {
        desk.write(&format!("{folder}/conda-meta/history"), "");
        desk.interpreter(&format!("{folder}/bin/python"), &FIT);
    }
    desk.set("CONDA_PREFIX", desk.top.join("conda/envs/shop"));
    desk.set("CONDA_DEFAULT_ENV", "shop");
    assert_eq!(
        listed(&desk, false)[2],
        "CONDA_PREFIX: conda/envs/shop/bin/python"
    );
    desk.set("CONDA_PREFIX", desk.top.join("conda"));
    desk.set("CONDA_DEFAULT_ENV", "base");
    assert_eq!(
        listed(&desk, false).last().unwrap(),
        "conda base: conda/bin/python"
    );
    desk.set("CONDA_DEFAULT_ENV", "conda");
    desk.set("_CONDA_ROOT", desk.top.join("conda"));
    assert_eq!(
        listed(&desk, false).last().unwrap(),
        "conda base: conda/bin/python"
    );
}

#[test]
fn folders_that_are_no_environments_are_told_apart() {
    let desk = Desk::new(&[]);
    desk.write("shop/.venv/bin/python", "");
    assert_eq!(
        look_into(&desk.root().join(".venv")),
        What::Broken(desk.root().join(".venv"), Fault::NoConfig)
    );
    desk.write("hollow/pyvenv.cfg", "");
    assert_eq!(
        look_into(&desk.top.join("hollow")),
        What::Broken(desk.top.join("hollow"), Fault::NoInterpreter)
    );
    desk.write("windows/pyvenv.cfg", "");
    desk.write("windows/Scripts/python.exe", "MZ");
    assert_eq!(
        look_into(&desk.top.join("windows")),
        What::Interpreter(desk.top.join("windows/Scripts/python.exe"))
    );
    let real = desk.environment("elsewhere", &FIT);
    desk.write(
        "pointer",
        &format!("{}\n", desk.top.join("elsewhere").display()),
    );
    assert_eq!(
        look_into(&desk.top.join("pointer")),
        What::Interpreter(real)
    );
    std::os::unix::fs::symlink("/nonexistent/env", desk.top.join("dangling")).unwrap();
    let fault = Fault::DanglingLink {
        target: "/nonexistent/env".into(),
    };
    assert_eq!(
        look_into(&desk.top.join("dangling")),
        What::Broken(desk.top.join("dangling"), fault)
    );
}

#[test]
fn spellings_of_one_interpreter_share_an_identity_but_an_environment_differs_from_its_base() {
    let desk = Desk::new(&[]);
    let base = desk.interpreter("bin/python3.12", &FIT);
    std::os::unix::fs::symlink("python3.12", desk.top.join("bin/python3")).unwrap();
    std::fs::create_dir_all(desk.top.join("env/bin")).unwrap();
    std::os::unix::fs::symlink(&base, desk.top.join("env/bin/python")).unwrap();
    assert_eq!(identity(&desk.top.join("bin/python3")), base);
    assert_eq!(
        identity(&desk.top.join("env/bin/python")),
        desk.top.join("env/bin/python")
    );
}

#[test]
fn relative_folders_of_path_are_left_out() {
    let mut desk = Desk::new(&[]);
    let file = desk.interpreter("bin/python3", &FIT);
    desk.set(
        "PATH",
        format!(":.:relative:{}", desk.top.join("bin").display()),
    );
    assert_eq!(named_on_path(&desk.surroundings(), "python3"), [file]);
}
