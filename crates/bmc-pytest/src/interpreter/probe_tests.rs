use super::*;
use crate::interpreter::desk::{Desk, FIT, Fake};

fn ask_on(desk: &Desk, executable: &Path, limit: Duration) -> Result<ProbeResult, Fault> {
    let folder = desk.root();
    ask(
        executable,
        &Question {
            folder: &folder,
            vars: &desk.vars,
            limit,
        },
    )
}

fn fault(desk: &Desk, executable: &Path) -> Fault {
    ask_on(desk, executable, TIME_LIMIT).unwrap_err()
}

#[test]
fn an_answer_is_found_among_other_output() {
    let desk = Desk::new(&[]);
    let file = desk.environment(
        "env",
        &Fake {
            overlay: true,
            ..FIT
        },
    );
    let probe = ask_on(&desk, &file, TIME_LIMIT).unwrap();
    assert_eq!(probe.version, (3, 12, 1));
    assert_eq!(probe.executable, file);
    assert_eq!(probe.plugins[0].entry_point, "pytest_cov");
    assert_eq!(
        probe.extends_environment,
        Some("/home/dev/shop/.venv".into())
    );
}

#[test]
fn the_ways_of_not_answering_are_told_apart() {
    let desk = Desk::new(&[]);
    assert_eq!(fault(&desk, &desk.top.join("absent")), Fault::Missing);
    assert_eq!(fault(&desk, &desk.top.join("home")), Fault::NoInterpreter);

    let link = desk.top.join("link");
    std::os::unix::fs::symlink("python3", &link).unwrap();
    std::os::unix::fs::symlink("/nonexistent/python3.9", desk.top.join("python3")).unwrap();
    assert_eq!(
        fault(&desk, &link),
        Fault::DanglingLink {
            target: "/nonexistent/python3.9".into()
        }
    );

    let file = desk.script("silent", "exit 0");
    assert_eq!(
        fault(&desk, &file),
        Fault::Garbage {
            text: String::new()
        }
    );
    let file = desk.script("talker", "echo Hello there");
    assert_eq!(
        fault(&desk, &file),
        Fault::Garbage {
            text: "Hello there".to_owned()
        }
    );
    let file = desk.script(
        "failing",
        "echo first >&2; printf 'cannot \\033[1mload\\n' >&2; exit 127",
    );
    assert_eq!(
        fault(&desk, &file),
        Fault::Exit {
            code: Some(127),
            message: "cannot [1mload".to_owned()
        }
    );
    let file = desk.script("killed", "kill -9 $$");
    assert_eq!(
        fault(&desk, &file),
        Fault::Exit {
            code: None,
            message: "ended by signal 9".to_owned()
        }
    );

    desk.write("plain", "#!/bin/sh\n");
    assert_eq!(fault(&desk, &desk.top.join("plain")), Fault::NotExecutable);
    desk.write("windows.exe", "MZ\u{1}");
    assert_eq!(
        fault(&desk, &desk.top.join("windows.exe")),
        Fault::ForeignFormat
    );
    let file = desk.script("foreign", "");
    std::fs::write(&file, b"\x7fELF\x02\x01\x01nonsense").unwrap();
    assert_eq!(fault(&desk, &file), Fault::ForeignFormat);
    let file = desk.script("no-shell", "");
    std::fs::write(&file, "#!/nonexistent/python\n").unwrap();
    let expected = "its first line names /nonexistent/python, which does not exist";
    assert_eq!(fault(&desk, &file), Fault::CannotStart(expected.to_owned()));
}

#[test]
fn an_environment_whose_base_is_gone_says_so() {
    let desk = Desk::new(&[]);
    desk.write(
        "env/pyvenv.cfg",
        "include-system-site-packages = false\nhome = /nonexistent/bin\n",
    );
    // A copied interpreter still starts, and fails.
    let file = desk.script(
        "env/bin/python",
        "echo 'No module named encodings' >&2; exit 1",
    );
    assert_eq!(
        fault(&desk, &file),
        Fault::BaseMoved {
            home: "/nonexistent/bin".into()
        }
    );
    // A linked one does not even exist.
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/nonexistent/bin/python3", &file).unwrap();
    assert_eq!(
        fault(&desk, &file),
        Fault::BaseMoved {
            home: "/nonexistent/bin".into()
        }
    );
    // One that answers in spite of it is as good as any.
    std::fs::remove_file(&file).unwrap();
    let file = desk.interpreter("env/bin/python", &FIT);
    assert!(ask_on(&desk, &file, TIME_LIMIT).is_ok());
}

#[test]
fn a_silent_interpreter_is_ended_with_its_children_at_the_limit() {
    let desk = Desk::new(&[]);
    // Both processes hold the pipe open, so its end is seen when the last of them is gone.
    let pipe = desk.root().join("pipe");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    let reader = thread::spawn(move || std::fs::read(pipe).unwrap());
    let file = desk.script(
        "sleeper",
        "exec 9>pipe; /bin/sleep 60 & echo started >&9; wait",
    );
    let begin = Instant::now();
    assert_eq!(
        ask_on(&desk, &file, Duration::from_secs(2)),
        Err(Fault::Timeout { seconds: 2 })
    );
    assert_eq!(reader.join().unwrap(), b"started\n");
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_child_left_behind_does_not_hold_the_answer_up() {
    let desk = Desk::new(&[]);
    let answering = desk.environment("env", &FIT);
    let file = desk.script(
        "wrapper",
        &format!("/bin/sleep 600 &\nexec '{}'", answering.display()),
    );
    let begin = Instant::now();
    assert!(ask_on(&desk, &file, TIME_LIMIT).is_ok());
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn endless_output_is_cut_and_drained() {
    let desk = Desk::new(&[]);
    let file = desk.script(
        "chatty",
        "PATH=/usr/bin:/bin; head -c 5000000 /dev/zero | tr '\\0' 'x'; echo; echo done",
    );
    assert!(matches!(fault(&desk, &file), Fault::Garbage { text } if text.len() == 200));
}

#[test]
fn only_listed_variables_reach_the_interpreter() {
    let mut desk = Desk::new(&[]);
    for name in [
        "AWS_SECRET_ACCESS_KEY",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "LANG",
    ] {
        desk.set(name, "x");
    }
    desk.set("PATH", "/usr/bin:/bin");
    let file = desk.script("env", "/usr/bin/env | sort | cut -d= -f1 | tr '\\n' ' '");
    let Fault::Garbage { text } = fault(&desk, &file) else {
        panic!("a listing was expected")
    };
    let names: Vec<&str> = text
        .split_whitespace()
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    assert_eq!(names, ["LANG", "PATH"]);
}

#[test]
fn what_isolated_mode_hides_is_handed_over() {
    let mut desk = Desk::new(&[]);
    desk.set("PYTHONPATH", "src::/opt/lib");
    let folder = desk.root();
    let question = Question {
        folder: &folder,
        vars: &desk.vars,
        limit: TIME_LIMIT,
    };
    let asked: serde_json::Value = serde_json::from_str(&hidden_paths(&question)).unwrap();
    assert_eq!(
        asked,
        serde_json::json!({"paths": [folder.join("src"), "/opt/lib"], "user_site": true})
    );
}
