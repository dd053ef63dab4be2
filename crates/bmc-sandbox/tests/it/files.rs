//! What a world sees of the files, and what reaches the host.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bmc_sandbox::{Change, Isolation, LeftFile, Place};

use crate::support::{Site, is_root, run, run_well, said, tool};

const WRECK: &str = r#"
set -e
echo changed >> kept.txt
rm -r sub/deep
mkdir sub/deep
echo new > sub/deep/new.txt
mkdir -p fresh/inside
echo x > fresh/inside/file
ln -s nowhere link
chmod 600 sub/inner.txt
echo evil > .git/hooks/pre-commit
echo fsmonitor >> .git/config
echo gone > "$HOME/kept.txt"
rm -r "$HOME/sub"
echo y > "$HOME/.profile"
"#;

fn file(place: Place, path: &str, change: Change) -> LeftFile {
    LeftFile {
        place,
        path: path.into(),
        change,
    }
}

#[test]
fn the_host_is_untouched_and_every_change_is_listed() {
    for isolation in [Isolation::Full, Isolation::FilesOnly] {
        let site = Site::new();
        let before = site.snapshot();
        let mut spec = site.shell(WRECK);
        spec.isolation = isolation;
        let (_, left) = run_well(spec);
        assert_eq!(site.snapshot(), before, "{isolation}");
        let expected = [
            file(Place::Project, ".git/config", Change::Changed),
            file(Place::Project, ".git/hooks/pre-commit", Change::Created),
            file(Place::Project, "fresh", Change::Created),
            file(Place::Project, "fresh/inside", Change::Created),
            file(Place::Project, "fresh/inside/file", Change::Created),
            file(Place::Project, "kept.txt", Change::Changed),
            file(Place::Project, "link", Change::Created),
            file(Place::Project, "sub/deep", Change::Changed),
            file(Place::Project, "sub/deep/new.txt", Change::Created),
            file(Place::Project, "sub/inner.txt", Change::Changed),
            file(Place::Home, ".profile", Change::Created),
            file(Place::Home, "kept.txt", Change::Changed),
            file(Place::Home, "sub", Change::Deleted),
        ];
        assert_eq!(left.files, expected, "{isolation}");
        assert!(left.processes.is_empty() && !left.truncated);
    }
}

#[test]
fn a_file_that_was_only_opened_for_writing_is_no_change() {
    let site = Site::new();
    let (_, left) =
        run_well(site.python("open('kept.txt', 'r+').close(); open('sub/inner.txt', 'a').close()"));
    assert_eq!(left.files, []);
}

#[test]
fn a_long_list_of_changes_is_cut_and_says_so() {
    let site = Site::new();
    let (_, left) = run_well(site.python("for i in range(1500): open(f'f{i}', 'w').close()"));
    assert_eq!((left.files.len(), left.truncated), (1000, true));
}

#[test]
fn the_project_and_the_home_may_contain_each_other() {
    for (project, home) in [
        ("ann/shop", "ann"),
        ("shop", "shop/.home"),
        ("both", "both"),
        ("a/b/c/shop", "a"),
    ] {
        let site = Site::with(project, home);
        let before = site.snapshot();
        let script = "cat kept.txt \"$HOME/kept.txt\" && echo 1 > made && echo 2 > \"$HOME/.made\" && cat made";
        let (output, left) = run_well(site.shell(script));
        assert_eq!(output, "before\nbefore\n1\n", "{project} {home}");
        assert_eq!(site.snapshot(), before, "{project} {home}");
        let place_of_home = if project == home {
            Place::Project
        } else {
            Place::Home
        };
        let mut expected = vec![
            file(place_of_home, ".made", Change::Created),
            file(Place::Project, "made", Change::Created),
        ];
        expected.sort();
        assert_eq!(left.files, expected, "{project} {home}");
    }
}

#[test]
fn paths_with_odd_bytes_work() {
    let names: [&[u8]; 4] = [
        b"a,b:c\\d \"e\"",
        b"not utf-8 \xff\xfe",
        b"line\nbreak\ttab",
        b"-lowerdir=x,upperdir=y",
    ];
    for name in names {
        let name = OsStr::from_bytes(name);
        let site = Site::with(Path::new("x").join(name), Path::new("home").join(name));
        let before = site.snapshot();
        let mut spec = site.shell("cat kept.txt && rm kept.txt && touch new && ls .secret && pwd");
        let secret = site.project.join(".secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "k").unwrap();
        spec.masks = vec![secret.clone()];
        let (output, left) = run_well(spec);
        assert!(output.starts_with("before\n"), "{output}");
        assert!(!output.contains("key"), "{output}");
        fs::remove_dir_all(secret).unwrap();
        let after = site.snapshot();
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>()
        );
        let expected = [
            file(Place::Project, "kept.txt", Change::Deleted),
            file(Place::Project, "new", Change::Created),
        ];
        assert_eq!(left.files, expected);
    }
}

#[test]
fn a_project_given_through_a_link_is_found_at_both_paths() {
    let site = Site::new();
    let link = site.root.path().join("link");
    std::os::unix::fs::symlink(&site.project, &link).unwrap();
    let mut spec = site.shell("echo x > made && cat \"$1/made\" && pwd -P");
    spec.project = link.clone();
    spec.cwd = link.clone();
    spec.args.extend(["sh".into(), link.into_os_string()]);
    let output = said(spec);
    assert_eq!(
        output,
        format!("x\n{}\n", site.project.canonicalize().unwrap().display())
    );
    assert!(!site.project.join("made").exists());
}

#[test]
fn temporary_directories_are_private_and_empty() {
    let site = Site::new();
    let own = format!("bmc-private-{}", std::process::id());
    let script = format!(
        "for d in /tmp /var/tmp /dev/shm; do echo x > $d/{own}; done; ls -A /run /var/tmp /dev/shm; \
         stat -c '%a' /tmp /var/tmp /dev/shm /run"
    );
    let (output, left) = run_well(site.shell(&script));
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(
        lines,
        [
            "/dev/shm:",
            &own,
            "",
            "/run:",
            "",
            "/var/tmp:",
            &own,
            "1777",
            "1777",
            "1777",
            "755"
        ],
        "{output}"
    );
    let expected =
        [Place::Tmp, Place::VarTmp, Place::Shm].map(|place| file(place, &own, Change::Created));
    assert_eq!(left.files, expected);
    for directory in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!Path::new(directory).join(&own).exists());
    }
}

#[test]
fn temporary_directories_are_the_hosts_when_only_files_are_isolated() {
    let site = Site::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    let mut spec = site.shell("echo here > \"$1\"; echo changed > kept.txt");
    spec.args.extend(["sh".into(), outside.path().into()]);
    spec.isolation = Isolation::FilesOnly;
    said(spec);
    assert_eq!(fs::read_to_string(outside.path()).unwrap(), "here\n");
    assert_eq!(
        fs::read_to_string(site.project.join("kept.txt")).unwrap(),
        "before\n"
    );
}

#[test]
fn the_rest_of_the_host_is_read_only() {
    let site = Site::new();
    let ran = run(site.shell("for p in / /usr /etc /proc/sys/kernel/core_pattern /sys/kernel/mm; do \
        if [ -d $p ]; then touch $p/bmc-made; else echo x > $p; fi && echo \"wrote $p\"; done; true"));
    assert!(!ran.output.contains("wrote"), "{}", ran.output);
    // An ordinary user is refused anyway; root is refused by the mounts alone.
    let refusals = ran.output.matches("Read-only file system").count();
    assert!(!is_root() || refusals == 5, "{}", ran.output);
}

#[test]
fn masked_paths_look_empty_and_missing_ones_are_not_created() {
    let site = Site::new();
    fs::write(site.project.join(".env"), "TOKEN=1\n").unwrap();
    std::os::unix::fs::symlink(site.home.join(".ssh"), site.home.join("keys")).unwrap();
    let before = site.snapshot();
    let mut spec = site.shell("ls -A \"$HOME/.ssh\" \"$HOME/keys/\"; wc -c < .env; mv .env other; mv \"$HOME/.ssh\" other; ls -d missing");
    spec.masks = vec![
        site.project.join(".env"),
        site.home.join("keys"),
        site.project.join("missing"),
        PathBuf::from("/nonexistent/x"),
        PathBuf::from("/tmp/bmc-no-such-file"),
    ];
    let ran = run(spec);
    assert!(
        !ran.output.contains("id\n") && !ran.output.contains("TOKEN"),
        "{}",
        ran.output
    );
    assert!(ran.output.contains("\n0\n"), "{}", ran.output);
    assert_eq!(ran.output.matches("busy").count(), 2, "{}", ran.output);
    assert_eq!(site.snapshot(), before);
}

#[test]
fn writable_paths_reach_the_host_and_exposed_ones_do_not() {
    let site = Site::new();
    let (cache, tools) = (
        site.root.path().join("cache"),
        site.root.path().join("tools"),
    );
    fs::create_dir(&cache).unwrap();
    fs::create_dir(&tools).unwrap();
    let (one_file, single) = (site.home.join("note"), site.root.path().join("single"));
    fs::write(&one_file, "").unwrap();
    fs::write(&single, "alone\n").unwrap();
    fs::write(tools.join("tool"), "tool\n").unwrap();
    let mut spec = site.shell(
        "set -e; cd ..; cat tools/tool single; echo 1 > cache/made; echo 2 > \"$HOME/note\"; \
         touch tools/x single 2>/dev/null && echo wrote; true",
    );
    spec.writable = vec![cache.clone(), one_file.clone()];
    spec.expose = vec![
        tools.clone(),
        single,
        PathBuf::from("/nonexistent"),
        PathBuf::from("/usr"),
    ];
    let (output, left) = run_well(spec);
    assert_eq!(output, "tool\nalone\n");
    assert_eq!(fs::read_to_string(cache.join("made")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(one_file).unwrap(), "2\n");
    assert!(!tools.join("x").exists());
    assert_eq!(left.files, []);
}

#[test]
fn what_is_not_exposed_below_tmp_is_hidden() {
    let site = Site::new();
    let hidden = site.root.path().join("hidden");
    fs::write(&hidden, "").unwrap();
    let output = said(site.shell("ls -A .."));
    assert_eq!(output, "ann\nshop\n");
}

#[test]
fn writes_are_limited_by_the_scratch_memory() {
    let site = Site::new();
    let mut spec = site.shell(
        "head -c 20000000 /dev/zero > big; head -c 1000000 /dev/zero > /tmp/small; wc -c < big",
    );
    spec.scratch_bytes = 8 << 20;
    let ran = run(spec);
    assert_eq!(
        ran.output.matches("No space left").count(),
        2,
        "{}",
        ran.output
    );
    assert!(site.project.metadata().unwrap().is_dir() && !site.project.join("big").exists());
}

#[test]
fn mounts_below_home_and_project_stay_visible() {
    let site = Site::with("ann/shop", "ann");
    // A mount on the project itself, one beside it, one inside it, and one that is not in the way.
    let script = r#"
set -e
mount -t tmpfs mnt "$HOME/sub"
echo on-mount > "$HOME/sub/file"
mkdir "$HOME/sub/under"
mount --bind "$PROJECT" "$PROJECT"
mount -t tmpfs mnt "$PROJECT/sub/deep"
echo deep > "$PROJECT/sub/deep/file"
ln -s kept.txt "$HOME/link"
exec "$TOOL" --leftovers --home "$HOME" --project "$PROJECT" -- /bin/sh -c '
cat "$HOME/sub/file" sub/deep/file kept.txt "$HOME/kept.txt" "$HOME/link" sub/inner.txt
echo new > "$HOME/new"; echo x >> "$HOME/kept.txt"; echo made > made; rm sub/inner.txt; rm "$HOME/link"
echo z > "$HOME/.ssh/known"; echo no > "$HOME/sub/no"; true'
"#;
    let before = site.snapshot();
    let mut command = Command::new("unshare");
    command.args(if is_root() { &["-m"][..] } else { &["-Urm"] });
    command.args(["sh", "-c", script]);
    command
        .env("HOME", &site.home)
        .env("PROJECT", &site.project)
        .env("TOOL", tool());
    let done = command.output().unwrap();
    let (output, errors) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    let expected = "on-mount\ndeep\nbefore\nbefore\nbefore\ninner\n\
        Created Project made\nDeleted Project sub/inner.txt\n\
        Created Home .ssh/known\nDeleted Home link\nChanged Home kept.txt\nCreated Home new\n";
    let sort = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sort(&output), sort(expected), "{errors}");
    assert!(errors.contains("Read-only"), "{errors}");
    let added = site.home.join("link");
    fs::remove_file(added).unwrap();
    let untimed = |snapshot: std::collections::BTreeMap<PathBuf, String>| {
        snapshot.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(untimed(site.snapshot()), untimed(before));
    assert_eq!(
        fs::read_to_string(site.home.join("kept.txt")).unwrap(),
        "before\n"
    );
}

#[test]
fn a_project_on_an_overlay_works_as_in_containers() {
    let site = Site::new();
    let script = r#"
set -e
mkdir /tmp/layers
mount -t tmpfs layers /tmp/layers
mkdir /tmp/layers/upper /tmp/layers/work /tmp/layers/root
mount -t overlay -o userxattr,lowerdir="$ROOT",upperdir=/tmp/layers/upper,workdir=/tmp/layers/work overlay "$ROOT"
exec "$TOOL" --leftovers --home "$ROOT/ann" --project "$ROOT/shop" -- /bin/sh -c '
cat kept.txt && echo x > made && rm -r sub && mkdir sub && ls sub'
"#;
    let mut command = Command::new("unshare");
    command.args(if is_root() { &["-m"][..] } else { &["-Urm"] });
    // The mounts are made in a `/tmp` of its own, but the project must stay reachable.
    let script = format!(
        "mount -t tmpfs t /mnt\nmkdir /mnt/r\nmount --bind \"$ROOT\" /mnt/r\nmount -t tmpfs t /tmp\nROOT=/mnt/r\n{script}"
    );
    command.args(["sh", "-c", &script]);
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let tool_copy = place.path().join("tool");
    fs::copy(tool(), &tool_copy).unwrap();
    command
        .env("ROOT", site.root.path())
        .env("TOOL", &tool_copy);
    let done = command.output().unwrap();
    let (output, errors) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert_eq!(
        output, "before\nCreated Project made\nChanged Project sub\n",
        "{errors}"
    );
    assert!(site.project.join("sub/inner.txt").exists() && !site.project.join("made").exists());
}
