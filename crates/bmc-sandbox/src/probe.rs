//! Finds out which isolation this machine allows, and why not more. Reads only facts about the kernel.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::spec::Isolation;

/// One part of building a world, tried for real.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What was tried.
    pub name: String,
    /// Whether it worked.
    pub ok: bool,
    /// What the kernel said and the likely cause; empty when it worked.
    pub detail: String,
}

/// The strongest isolation that works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The level to use.
    pub level: Isolation,
    /// What was tried, in order, up to the first step that failed.
    pub steps: Vec<Step>,
}

/// What a throw-away helper reported.
pub(crate) struct Outcome {
    pub(crate) done: Vec<String>,
    pub(crate) failed: Option<(String, Option<i32>)>,
}

/// Draws the conclusion.
pub(crate) fn interpret(outcome: Result<Outcome, SandboxError>) -> Probe {
    conclude(outcome, &Machine::look())
}

fn conclude(outcome: Result<Outcome, SandboxError>, machine: &Machine) -> Probe {
    let (done, failed) = match outcome {
        Ok(outcome) => (
            outcome.done,
            outcome
                .failed
                .map(|(name, errno)| (name, said(errno), errno)),
        ),
        Err(error) => {
            let why = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            (
                Vec::new(),
                Some((
                    "helper process".to_owned(),
                    format!("cannot {error}: {why}"),
                    None,
                )),
            )
        }
    };
    let mut steps: Vec<Step> = done
        .into_iter()
        .map(|name| Step {
            name,
            ok: true,
            detail: String::new(),
        })
        .collect();
    let level = if failed.is_some() {
        Isolation::Copy
    } else {
        Isolation::Full
    };
    if let Some((name, said, errno)) = failed {
        let detail = match machine.likely_cause(&name, errno) {
            Some(cause) => format!("{said}; {cause}"),
            None => said,
        };
        steps.push(Step {
            name,
            ok: false,
            detail,
        });
    }
    Probe { level, steps }
}

fn said(errno: Option<i32>) -> String {
    errno.map_or_else(
        || "it failed".to_owned(),
        |errno| io::Error::from_raw_os_error(errno).to_string(),
    )
}

/// Facts that explain a failure.
#[derive(Debug, Default)]
struct Machine {
    /// Ubuntu 23.10 and later: unknown programs get user namespaces without any rights in them.
    apparmor_restricts: bool,
    no_user_namespaces: bool,
    /// Debian's and Arch's own switch.
    debian_forbids: bool,
    wsl1: bool,
    gvisor: bool,
    container: bool,
    filtered: bool,
    /// Major and minor number of the kernel.
    kernel: (u32, u32),
}

impl Machine {
    fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let number = |path: &str| read(path).trim().to_owned();
        let version = read("/proc/version");
        let mut numbers = read("/proc/sys/kernel/osrelease");
        numbers.retain(|letter| !letter.is_whitespace());
        let mut numbers = numbers
            .split(['.', '-'])
            .map(|part| part.parse().unwrap_or(0));
        Self {
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                == "1",
            no_user_namespaces: number("/proc/sys/user/max_user_namespaces") == "0",
            debian_forbids: number("/proc/sys/kernel/unprivileged_userns_clone") == "0",
            wsl1: version.contains("Microsoft") && !version.contains("WSL2"),
            gvisor: version.contains("gVisor") || read("/proc/cmdline").contains("gVisor"),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| fs::exists(path).unwrap_or(false))
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            filtered: read("/proc/self/status")
                .lines()
                .any(|line| line.starts_with("Seccomp:") && line.ends_with('2')),
            kernel: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        }
    }

    fn likely_cause(&self, step: &str, errno: Option<i32>) -> Option<String> {
        let forbidden = matches!(errno, Some(libc::EPERM | libc::EACCES));
        let unknown = matches!(
            errno,
            Some(libc::ENOSYS | libc::EINVAL | libc::ENODEV | libc::EOPNOTSUPP)
        );
        let cause = if self.wsl1 {
            "this is WSL 1, which has no namespaces; WSL 2 has".to_owned()
        } else if self.gvisor {
            "this is a gVisor sandbox, which lacks parts of the kernel".to_owned()
        } else if step == "namespaces" && (self.no_user_namespaces || errno == Some(libc::ENOSPC)) {
            "the number of user namespaces is limited (sysctl user.max_user_namespaces)".to_owned()
        } else if step == "namespaces" && self.debian_forbids {
            "user namespaces are off for ordinary users (sysctl kernel.unprivileged_userns_clone)"
                .to_owned()
        } else if forbidden && self.apparmor_restricts {
            "AppArmor restricts user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns); \
             a profile for this program that says `userns,` lifts that"
                .to_owned()
        } else if step.starts_with("process list") && forbidden {
            "parts of /proc are covered, as container engines do, and then no new one may be mounted".to_owned()
        } else if (forbidden || errno == Some(libc::ENOSYS)) && (self.container || self.filtered) {
            "the surrounding container or its system call filter (seccomp) forbids it".to_owned()
        } else if step.starts_with("removing") && self.kernel < (6, 6) {
            format!(
                "Linux {}.{} is older than 6.6, where memory file systems got the needed attributes",
                self.kernel.0, self.kernel.1
            )
        } else if step.starts_with("overlay") && errno == Some(libc::EINVAL) {
            "the host's own files are a stack of overlays already, or the file system cannot be below one".to_owned()
        } else if unknown && self.kernel < (5, 12) {
            format!(
                "Linux {}.{} is older than 5.12, the first that can do it",
                self.kernel.0, self.kernel.1
            )
        } else {
            return None;
        };
        Some(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(machine: &Machine, step: &str, errno: i32) -> String {
        let outcome = Outcome {
            done: vec!["request".to_owned()],
            failed: Some((step.to_owned(), Some(errno))),
        };
        let mut probe = conclude(Ok(outcome), machine);
        assert_eq!(probe.level, Isolation::Copy);
        assert_eq!(probe.steps.len(), 2);
        let step = probe.steps.pop().unwrap();
        assert!(!step.ok);
        step.detail
    }

    #[test]
    fn each_known_obstacle_is_named() {
        let modern = || Machine {
            kernel: (6, 8),
            ..Machine::default()
        };
        let apparmor = Machine {
            apparmor_restricts: true,
            ..modern()
        };
        assert!(cause(&apparmor, "base file system", libc::EPERM).contains("AppArmor"));
        let none = Machine {
            no_user_namespaces: true,
            ..modern()
        };
        assert!(cause(&none, "namespaces", libc::ENOSPC).contains("max_user_namespaces"));
        let debian = Machine {
            debian_forbids: true,
            ..modern()
        };
        assert!(cause(&debian, "namespaces", libc::EPERM).contains("unprivileged_userns_clone"));
        let docker = Machine {
            container: true,
            filtered: true,
            ..modern()
        };
        assert!(cause(&docker, "namespaces", libc::EPERM).contains("container"));
        assert!(cause(&docker, "process list", libc::EPERM).contains("/proc"));
        let old = Machine {
            kernel: (5, 4),
            ..Machine::default()
        };
        assert!(cause(&old, "read-only view of the host", libc::ENOSYS).contains("5.12"));
        let debian12 = Machine {
            kernel: (6, 1),
            ..Machine::default()
        };
        assert!(
            cause(
                &debian12,
                "removing and recreating a directory in an overlay",
                libc::EIO
            )
            .contains("6.6")
        );
        assert!(
            cause(
                &Machine {
                    wsl1: true,
                    ..modern()
                },
                "namespaces",
                libc::EINVAL
            )
            .contains("WSL 1")
        );
        assert!(
            cause(
                &Machine {
                    gvisor: true,
                    ..modern()
                },
                "overlay",
                libc::EINVAL
            )
            .contains("gVisor")
        );
        assert!(cause(&modern(), "overlay /x", libc::EINVAL).contains("stack of overlays"));
    }

    #[test]
    fn an_unexplained_failure_keeps_what_the_kernel_said() {
        assert_eq!(
            cause(
                &Machine {
                    kernel: (6, 8),
                    ..Machine::default()
                },
                "devices",
                libc::EIO
            ),
            io::Error::from_raw_os_error(libc::EIO).to_string()
        );
    }

    #[test]
    fn everything_working_means_full() {
        let outcome = Outcome {
            done: vec!["request".to_owned()],
            failed: None,
        };
        let probe = conclude(Ok(outcome), &Machine::default());
        assert_eq!(probe.level, Isolation::Full);
        assert!(probe.steps.iter().all(|step| step.ok));
    }

    #[test]
    fn a_helper_that_does_not_start_is_a_failed_step() {
        let probe = conclude(Err(SandboxError::Gone), &Machine::default());
        assert_eq!(probe.level, Isolation::Copy);
        assert!(
            probe
                .steps
                .iter()
                .any(|step| !step.ok && !step.detail.is_empty())
        );
    }
}
