//! From a path to a place where runs can be made: project, interpreter, isolation, environment variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bmc_pytest::interpreter::{self, Discovery, Interpreter, Request};
use bmc_pytest::package;
use bmc_sandbox::{Isolation, Network, Probe};
use bmc_types::report::{EnvironmentFacts, ProjectFacts};
use bmc_types::{Problem, ScanId};

use super::request::{ScanRequest, Setting};
use crate::project::{GitFacts, Snapshot, git_facts};
use crate::runner::Site;

/// Endings and parts of variable names whose values are not passed to tests.
const SECRET_PARTS: [&str; 8] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "APIKEY",
    "PRIVATE_KEY",
    "ACCESS_KEY",
];

/// Variables that lead to agents and daemons of the user.
const DOORS: [&str; 6] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "DOCKER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "WSL_INTEROP",
    "GPG_AGENT_INFO",
];

/// Our own variables and those of pytest runs around us.
const OURS: [&str; 4] = [
    "NEBIUS_API_KEY",
    "NVIDIA_API_KEY",
    "PYTEST_CURRENT_TEST",
    "PYTEST_XDIST_WORKER",
];

/// Folders and files of the home that hold keys and tokens.
const MASKED: [&str; 14] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".netrc",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".config/gh",
    ".config/hub",
    ".cargo/credentials.toml",
];

/// What root may do in a world, the same in fresh processes (where the sandbox sees to it) and in forked children.
const ROOT_CAPABILITIES: [&str; 8] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
];

/// Memory for what the tests of one world write. Twice this, in a world and its child, still fits a small machine;
/// a project that writes more than a gigabyte in one run needs `--copy`.
const SCRATCH_BYTES: u64 = 1 << 30;

/// Where runs can be made.
#[derive(Debug)]
pub struct Place {
    /// The site for the runner.
    pub site: Site,
    /// The isolation of scan runs.
    pub isolation: Isolation,
    /// What the report says.
    pub facts: EnvironmentFacts,
    /// Remarks.
    pub problems: Vec<Problem>,
}

/// Looks for the interpreter.
pub(super) fn discover(request: &ScanRequest, setting: &Setting) -> Discovery {
    interpreter::discover(&question(request, setting))
}

fn question<'a>(request: &'a ScanRequest, setting: &'a Setting) -> Request<'a> {
    Request {
        path: &request.path,
        explicit: request.python.as_deref(),
        prefer_active: request.active,
        surroundings: &setting.surroundings,
    }
}

/// Facts about the project as the report shows them.
pub(super) fn project_facts(root: &Path, snapshot: &Snapshot, setting: &Setting) -> ProjectFacts {
    let vars = &setting.surroundings.vars;
    let GitFacts {
        commit,
        branch,
        dirty,
    } = git_facts(
        root,
        vars.get(OsStr::new("PATH")).map(OsString::as_os_str),
        setting.surroundings.home.as_deref(),
    );
    ProjectFacts {
        root: root.to_string_lossy().into_owned(),
        commit,
        branch,
        dirty,
        tree_digest: snapshot.digest(),
    }
}

/// Prepares everything for running.
///
/// # Errors
/// A folder of ours that cannot be made.
pub(super) fn prepare(
    request: &ScanRequest,
    setting: &Setting,
    discovery: &Discovery,
    interpreter: &Interpreter,
    id: &ScanId,
) -> std::io::Result<Place> {
    let root = discovery.root.path.canonicalize()?;
    let cache = absolute(&setting.directories.cache);
    let scratch = cache.join("scans").join(id.as_str());
    let plugin = scratch.join("plugin");
    if plugin.as_os_str().as_bytes().contains(&b':') {
        // PYTHONPATH is cut at colons, and there is no way to escape one.
        let words = "the path has a colon, and Python cannot search for modules below such a path";
        return Err(std::io::Error::other(words));
    }
    let (major, minor, _) = interpreter.probe.version;
    let bytecode = cache.join("bytecode").join(format!(
        "{}-{major}.{minor}",
        interpreter.probe.implementation
    ));
    std::fs::create_dir_all(&plugin)?;
    std::fs::write(scratch.join("pid"), std::process::id().to_string())?;
    std::fs::create_dir_all(&bytecode)?;
    package::unpack(&plugin)?;
    let (isolation, detail, mut problems) = choose_isolation(request, &setting.launcher.probe());
    let network = if request.host_network {
        Network::Host
    } else {
        Network::Loopback
    };
    let (env, withheld) = variables(&setting.surroundings.vars, &request.pass_env);
    if !withheld.is_empty() {
        problems.push(Problem::note(
            "variables_withheld",
            format!("not passed to tests, because the names look secret: {} (pass one with --pass-env NAME)", withheld.join(", ")),
        ));
    }
    let tree = discovery
        .root
        .git
        .as_ref()
        .and_then(|git| git.canonicalize().ok())
        .unwrap_or_else(|| root.clone());
    let probe = &interpreter.probe;
    let mut expose = vec![
        plugin.clone(),
        probe.prefix.clone(),
        probe.base_prefix.clone(),
    ];
    expose.extend(interpreter.executable.parent().map(Path::to_owned));
    expose.extend(
        probe
            .sys_path
            .iter()
            .filter(|p| p.is_absolute() && p.exists())
            .cloned(),
    );
    expose.retain(|path| path.is_absolute() && path != Path::new("/"));
    let home = setting
        .surroundings
        .home
        .as_ref()
        .and_then(|home| home.canonicalize().ok())
        .filter(|home| home.is_dir());
    let mut masks: Vec<PathBuf> = home
        .iter()
        .flat_map(|home| MASKED.map(|name| home.join(name)))
        .collect();
    masks.extend(setting.directories.database.parent().map(absolute));
    // A mask must not hide what the tests or the interpreter consist of.
    masks.retain(|mask| {
        !tree.starts_with(mask)
            && !expose.iter().any(|e| e.starts_with(mask))
            && !scratch.starts_with(mask)
    });
    let site = Site {
        launcher: setting.launcher.clone(),
        network,
        root: root.clone(),
        tree,
        home,
        python: interpreter.executable.clone(),
        expose,
        masks,
        plugin,
        bytecode,
        scratch,
        env,
        pytest_args: pytest_args(request, &root),
        continue_on_collection_errors: request.continue_on_collection_errors,
        scratch_bytes: SCRATCH_BYTES,
        keep_caps: if rustix::process::geteuid().is_root() {
            ROOT_CAPABILITIES.map(str::to_owned).to_vec()
        } else {
            Vec::new()
        },
    };
    let (a, b, c) = probe.version;
    let facts = EnvironmentFacts {
        python: format!("{a}.{b}.{c}"),
        implementation: probe.implementation.clone(),
        executable: interpreter.display.clone(),
        found_by: interpreter.found_by.clone(),
        pytest: probe.pytest.clone().unwrap_or_default(),
        plugins: probe
            .plugins
            .iter()
            .map(|p| (p.distribution.clone(), p.version.clone()))
            .collect(),
        switched_off: Vec::new(),
        isolation: isolation.to_string(),
        isolation_detail: detail,
        network: if isolation == Isolation::Full && !request.host_network {
            "loopback"
        } else {
            "host"
        }
        .to_owned(),
    };
    problems.extend(discovery.notes.iter().map(|note| {
        let help = if note.help.is_empty() {
            String::new()
        } else {
            format!(" ({})", note.help.join("; "))
        };
        Problem::note("environment", format!("{}{help}", note.text))
    }));
    Ok(Place {
        site,
        isolation,
        facts,
        problems,
    })
}

/// The strongest isolation that works here and was not declined. Never silent about less.
fn choose_isolation(request: &ScanRequest, probe: &Probe) -> (Isolation, String, Vec<Problem>) {
    const FULL: &str = "user, mount, pid, network, ipc and uts namespaces, overlay";
    const COPY: &str =
        "a copy of the project for every run; network, /tmp and processes are the host's";
    if request.copy {
        return (Isolation::Copy, COPY.to_owned(), Vec::new());
    }
    match probe.level {
        Isolation::Full => (Isolation::Full, FULL.to_owned(), Vec::new()),
        Isolation::FilesOnly | Isolation::Copy => {
            let failed = probe.steps.iter().find(|step| !step.ok);
            let why = failed.map_or_else(
                || "namespaces are not available".to_owned(),
                |s| format!("{}: {}", s.name, s.detail),
            );
            let words = format!(
                "runs are isolated by copying only, and one at a time ({why}); see breakmycode doctor"
            );
            (
                Isolation::Copy,
                format!("{COPY} ({why})"),
                vec![Problem::warning("isolation", words)],
            )
        }
    }
}

/// The variables for tests, and the names of those that are withheld.
fn variables(
    vars: &BTreeMap<OsString, OsString>,
    pass: &[String],
) -> (Vec<(OsString, OsString)>, Vec<String>) {
    let mut env = Vec::new();
    let mut withheld = Vec::new();
    for (name, value) in vars {
        let text = name.to_string_lossy();
        let upper = text.to_ascii_uppercase();
        if pass.iter().any(|p| *p == text) {
            env.push((name.clone(), value.clone()));
        } else if DOORS.contains(&upper.as_str())
            || OURS.contains(&upper.as_str())
            || upper.starts_with("BREAKMYCODE_")
        {
            // Known to be of no use to a test in isolation; naming them would be noise.
        } else if SECRET_PARTS.iter().any(|part| upper.contains(part)) && !value.is_empty() {
            withheld.push(text.into_owned());
        } else {
            env.push((name.clone(), value.clone()));
        }
    }
    (env, withheld)
}

/// The arguments for pytest: the user's, and the given path if it lies below the root.
fn pytest_args(request: &ScanRequest, root: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = request.pytest_args.iter().map(OsString::from).collect();
    if let Ok(path) = request.path.canonicalize()
        && let Ok(below) = path.strip_prefix(root)
        && !below.as_os_str().is_empty()
    {
        arguments.push(below.as_os_str().to_owned());
    }
    arguments
}

fn absolute(path: impl AsRef<Path>) -> PathBuf {
    std::path::absolute(path.as_ref()).unwrap_or_else(|_| path.as_ref().to_owned())
}

/// What `doctor` shows.
#[derive(Debug)]
pub struct Doctor {
    /// The interpreter ladder.
    pub discovery: Discovery,
    /// What isolation works.
    pub probe: Probe,
    /// State of the project's git work tree.
    pub git: GitFacts,
    /// Variables that would be withheld from tests.
    pub withheld: Vec<String>,
    /// Files and folders of the project that cannot be read.
    pub unreadable: Vec<PathBuf>,
}

/// Looks at everything a scan depends on, without running a test.
pub fn doctor(request: &ScanRequest, setting: &Setting) -> Doctor {
    let discovery = interpreter::survey(&question(request, setting));
    let root = &discovery.root.path;
    let vars = &setting.surroundings.vars;
    let git = git_facts(
        root,
        vars.get(OsStr::new("PATH")).map(OsString::as_os_str),
        setting.surroundings.home.as_deref(),
    );
    let unreadable = Snapshot::take(root)
        .map(|s| s.unreadable().to_vec())
        .unwrap_or_else(|_| vec![root.clone()]);
    Doctor {
        probe: setting.launcher.probe(),
        git,
        withheld: variables(vars, &request.pass_env).1,
        unreadable,
        discovery,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_here_unless_named_and_the_rest_is_passed() {
        let vars: BTreeMap<OsString, OsString> = [
            ("PATH", "/bin"),
            ("DATABASE_URL", "x"),
            ("GITHUB_TOKEN", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("EMPTY_TOKEN", ""),
            ("NEBIUS_API_KEY", "x"),
            ("SSH_AUTH_SOCK", "x"),
            ("BREAKMYCODE_RUNS", "3"),
            ("MY_API_KEY", "x"),
        ]
        .map(|(n, v)| (n.into(), v.into()))
        .into();
        let (env, withheld) = variables(&vars, &["MY_API_KEY".to_owned()]);
        let names: Vec<_> = env.iter().map(|(n, _)| n.to_str().unwrap()).collect();
        assert_eq!(names, ["DATABASE_URL", "EMPTY_TOKEN", "MY_API_KEY", "PATH"]);
        assert_eq!(withheld, ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"]);
    }
}
