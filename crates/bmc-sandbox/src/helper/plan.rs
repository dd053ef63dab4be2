//! Decides what is mounted where, from the paths of an order and the host's mounts.
//!
//! Runs in the helper while it still sees the host, reads directories and links only, and mounts nothing. The order of
//! the actions is the order of mounting: a path always comes after the paths above it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::mountinfo;
use super::stage::{At, Failure, Stage};
use crate::leftovers::Place;
use crate::spec::{Isolation, Network};
use crate::wire::Order;

/// Larger files at the top of a directory that has to be split are bound read-only instead of copied into memory.
/// The dot files of a home directory are a few kB.
pub(crate) const LARGEST_COPIED_FILE: u64 = 1 << 20;

/// Parts of `/run` that hold programs and libraries rather than state (NixOS).
const PROGRAMS_IN_RUN: [&str; 3] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
];

/// What happens at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A mount of the host below an overlay, read-only.
    Submount,
    /// An empty directory in scratch memory.
    Fresh { mode: u32 },
    /// Like `Fresh`, with copies of the small files and links that the host has there.
    Skeleton,
    /// A private `/dev`.
    Devices,
    /// A private `/proc`.
    Processes,
    /// The host's directory, copy-on-write. `optional`: may be read-only where no overlay is possible.
    Overlay { optional: bool },
    /// The host's file or directory.
    Bind { writable: bool, directory: bool },
    /// A symbolic link in a fresh directory.
    Link { target: PathBuf },
}

impl What {
    /// At equal paths the later one covers the earlier one.
    fn rank(&self) -> u8 {
        match self {
            Self::Submount => 0,
            Self::Fresh { .. } | Self::Skeleton | Self::Devices | Self::Processes => 1,
            Self::Overlay { .. } => 2,
            Self::Bind { .. } => 3,
            Self::Link { .. } => 4,
        }
    }
}

/// One mount (or link) of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// The canonical path on the host, which is the path in the view.
    pub(crate) path: PathBuf,
    pub(crate) what: What,
    /// Where changes below it are reported, and the part of the path that leads there from the place's root.
    pub(crate) place: Option<(Place, PathBuf)>,
}

/// The whole view of a world.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) full: bool,
    pub(crate) own_network: bool,
    pub(crate) scratch_bytes: u64,
    pub(crate) scratch_inodes: u64,
    pub(crate) actions: Vec<Action>,
    /// Canonical paths to hide, and whether each is a directory.
    pub(crate) masks: Vec<(PathBuf, bool)>,
}

impl Plan {
    /// The paths, relative to a fresh directory, that exist only so that something can be mounted there.
    pub(crate) fn mount_points_below(&self, fresh: &Path) -> Vec<PathBuf> {
        let mut points = Vec::new();
        for action in &self.actions {
            let Ok(inside) = action.path.strip_prefix(fresh) else {
                continue;
            };
            points.extend(
                inside
                    .ancestors()
                    .filter(|path| !path.as_os_str().is_empty())
                    .map(Path::to_owned),
            );
        }
        points.sort();
        points.dedup();
        points
    }
}

/// Works out the view. Fails only where the world would not be what was asked for.
pub(crate) fn resolve(order: &Order) -> Result<Plan, Failure> {
    let given_project = order.project.clone().into_path();
    let project = fs::canonicalize(&given_project).at_path(Stage::Request, &given_project)?;
    if !project.is_dir() || project == Path::new("/") {
        return Err(io::Error::from(io::ErrorKind::InvalidInput)).at_path(Stage::Request, &project);
    }
    let given_home = order.home.clone().map(crate::wire::Bytes::into_path);
    let home = given_home
        .as_ref()
        .and_then(|path| fs::canonicalize(path).ok())
        .filter(|path| path.is_dir() && path != Path::new("/") && *path != project);
    let mounts = mountinfo::mount_points().at(Stage::Request)?;
    let full = order.isolation == Isolation::Full;

    let mut draft = Draft {
        actions: Vec::new(),
        mounts,
        project: project.clone(),
    };
    draft.caught(&project, Place::Project);
    if let Some(home) = &home {
        draft.caught(home, Place::Home);
    }
    if full {
        draft.replaced();
        draft.submounts();
        let mut exposed: Vec<PathBuf> = order
            .expose
            .iter()
            .map(|path| path.clone().into_path())
            .collect();
        exposed.extend(PROGRAMS_IN_RUN.iter().map(PathBuf::from));
        if order.network == Network::Host {
            exposed.push(PathBuf::from("/etc/resolv.conf"));
        }
        for path in &exposed {
            draft.exposed(path);
        }
        let cwd = order
            .payload
            .as_ref()
            .map(|payload| payload.cwd.clone().into_path());
        for path in exposed
            .iter()
            .chain([&given_project])
            .chain(&given_home)
            .chain(&cwd)
        {
            draft.linked(path);
        }
    } else {
        draft.submounts();
    }
    for path in &order.writable {
        let path = path.clone().into_path();
        let resolved = fs::canonicalize(&path).at_path(Stage::Request, &path)?;
        let directory = resolved.is_dir();
        draft.add(
            resolved,
            What::Bind {
                writable: true,
                directory,
            },
            None,
        );
    }
    let mut masks: Vec<(PathBuf, bool)> = order
        .masks
        .iter()
        .filter_map(|path| fs::canonicalize(path.clone().into_path()).ok())
        .map(|path| (path.is_dir(), path))
        .map(|(directory, path)| (path, directory))
        .collect();
    masks.sort_by_key(|(path, _)| depth(path));
    masks.dedup();

    let mut actions = draft.actions;
    actions.sort_by_key(|action| (depth(&action.path), action.what.rank()));
    Stage::Request.done();
    Ok(Plan {
        full,
        own_network: full && order.network == Network::Loopback,
        scratch_bytes: order.scratch_bytes,
        scratch_inodes: order.scratch_inodes,
        actions,
        masks,
    })
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

struct Draft {
    actions: Vec<Action>,
    mounts: Vec<PathBuf>,
    project: PathBuf,
}

impl Draft {
    fn add(&mut self, path: PathBuf, what: What, place: Option<(Place, PathBuf)>) {
        self.actions.push(Action { path, what, place });
    }

    /// Catches writes below a directory.
    fn caught(&mut self, path: &Path, place: Place) {
        if self.mount_below(path) {
            // The kernel allows no overlay over a directory with a mount of the host somewhere below it.
            self.split(path, path, place);
        } else {
            self.add(
                path.to_owned(),
                What::Overlay { optional: false },
                Some((place, PathBuf::new())),
            );
        }
    }

    fn mount_below(&self, path: &Path) -> bool {
        self.mounts
            .iter()
            .any(|mount| mount != path && mount.starts_with(path))
    }

    /// Rebuilds a directory from overlays on those of its parts that have no mounts below.
    fn split(&mut self, root: &Path, path: &Path, place: Place) {
        let inside = |path: &Path| {
            Some((
                place,
                path.strip_prefix(root)
                    .map(Path::to_owned)
                    .unwrap_or_default(),
            ))
        };
        self.add(path.to_owned(), What::Skeleton, inside(path));
        let Ok(entries) = fs::read_dir(path) else {
            return;
        };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else {
                continue;
            };
            if path == self.project || self.mounts.contains(&path) {
                // The project has its own action; other mounts are added by `submounts`.
            } else if kind.is_dir() && self.mount_below(&path) {
                self.split(root, &path, place);
            } else if kind.is_dir() {
                let place = inside(&path);
                self.add(path, What::Overlay { optional: true }, place);
            } else if kind.is_file()
                && entry
                    .metadata()
                    .is_ok_and(|data| data.len() > LARGEST_COPIED_FILE)
            {
                self.add(
                    path,
                    What::Bind {
                        writable: false,
                        directory: false,
                    },
                    None,
                );
            }
        }
    }

    /// Replaces the directories that programs share.
    fn replaced(&mut self) {
        for (path, mode, place) in [
            ("/tmp", 0o1777, Some(Place::Tmp)),
            ("/var/tmp", 0o1777, Some(Place::VarTmp)),
            ("/run", 0o755, None),
        ] {
            let Ok(path) = fs::canonicalize(path) else {
                continue;
            };
            if path.is_dir() && !self.actions.iter().any(|action| action.path == path) {
                self.add(
                    path,
                    What::Fresh { mode },
                    place.map(|place| (place, PathBuf::new())),
                );
            }
        }
        self.add(PathBuf::from("/dev"), What::Devices, None);
        self.add(
            PathBuf::from("/dev/shm"),
            What::Fresh { mode: 0o1777 },
            Some((Place::Shm, PathBuf::new())),
        );
        self.add(PathBuf::from("/proc"), What::Processes, None);
    }

    /// The action whose files are seen at a path.
    fn cover(&self, path: &Path) -> Option<&Action> {
        self.actions
            .iter()
            .filter(|action| path.starts_with(&action.path))
            .max_by_key(|action| depth(&action.path))
    }

    /// Keeps the host's mounts below caught directories visible.
    fn submounts(&mut self) {
        let mut mounts = self.mounts.clone();
        mounts.sort_by_key(|path| depth(path));
        for mount in mounts {
            let wanted = self.cover(&mount).is_some_and(|action| match action.what {
                What::Overlay { .. } | What::Skeleton => action.path != mount,
                // A mount in a mount comes along with it; what is below a replaced directory is replaced.
                What::Submount
                | What::Fresh { .. }
                | What::Devices
                | What::Processes
                | What::Bind { .. }
                | What::Link { .. } => false,
            });
            if wanted {
                self.add(mount, What::Submount, None);
            }
        }
    }

    fn hidden(&self, path: &Path) -> bool {
        self.cover(path)
            .is_some_and(|action| matches!(action.what, What::Fresh { .. } | What::Devices))
    }

    fn exposed(&mut self, path: &Path) {
        let Ok(resolved) = fs::canonicalize(path) else {
            return;
        };
        let replaced_itself = self.actions.iter().any(|action| action.path == resolved);
        if self.hidden(&resolved) && !replaced_itself {
            let directory = resolved.is_dir();
            self.add(
                resolved,
                What::Bind {
                    writable: false,
                    directory,
                },
                None,
            );
        }
    }

    /// Recreates a path that reaches its target through a link in a replaced directory.
    fn linked(&mut self, path: &Path) {
        let (Ok(target), true) = (fs::canonicalize(path), path.is_absolute()) else {
            return;
        };
        let plain = !path
            .components()
            .any(|part| matches!(part, std::path::Component::ParentDir));
        let already = self.actions.iter().any(|action| action.path == path);
        if plain && target != path && self.hidden(path) && !already {
            // The directory above the link may itself be a link to somewhere that is not replaced.
            let above = path
                .parent()
                .and_then(|parent| fs::canonicalize(parent).ok());
            if above.is_some_and(|above| self.hidden(&above.join("x"))) {
                self.add(path.to_owned(), What::Link { target }, None);
            }
        }
    }
}
