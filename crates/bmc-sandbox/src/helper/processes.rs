//! Looks at the processes of a world through `/proc`, and clears it where no namespace does that.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use crate::leftovers::LeftProcess;
use crate::sys;

/// One process as `/proc/<pid>/stat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pid: i32,
    parent: i32,
    name: String,
    dead: bool,
}

fn all() -> Vec<Entry> {
    let Ok(directory) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    directory
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Reads `pid (name) state parent …`; the name may hold spaces and parentheses.
fn parse(pid: i32, stat: &[u8]) -> Option<Entry> {
    let stat = String::from_utf8_lossy(stat);
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(start + 1..end)?.to_owned();
    let mut fields = stat.get(end + 1..)?.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Entry {
        pid,
        parent,
        name,
        dead: matches!(state, "Z" | "X" | "x"),
    })
}

/// Those processes of which `root` is an ancestor, and not through one of `except`.
fn descendants(entries: &[Entry], root: i32, except: &[i32]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
    for entry in entries {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut pending = vec![root];
    while let Some(parent) = pending.pop() {
        // Taken out, so that no inconsistent snapshot can make this run in circles.
        for child in children.remove(&parent).unwrap_or_default() {
            if !except.contains(&child.pid) {
                found.push(child.clone());
                pending.push(child.pid);
            }
        }
    }
    found
}

/// The living processes of a world with its own process namespace, whose init we are.
///
/// Those in child worlds, whose inits are `inits`, are not counted. A process that entered this world from outside has
/// no parent in it, so this starts from parent 0 as well.
pub(crate) fn living_inside(payload: Option<i32>, inits: &[i32]) -> Vec<LeftProcess> {
    let entries = all();
    let mut found = descendants(&entries, 1, inits);
    found.extend(descendants(&entries, 0, &[1]));
    left(found, payload)
}

/// The living descendants of this process.
pub(crate) fn living_below(payload: Option<i32>) -> Vec<LeftProcess> {
    left(descendants(&all(), own_pid(), &[]), payload)
}

fn left(entries: Vec<Entry>, payload: Option<i32>) -> Vec<LeftProcess> {
    let mut left: Vec<LeftProcess> = entries
        .into_iter()
        .filter(|entry| !entry.dead && Some(entry.pid) != payload)
        .filter_map(|entry| {
            Some(LeftProcess {
                pid: u32::try_from(entry.pid).ok()?,
                name: entry.name,
            })
        })
        .collect();
    left.sort();
    left
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Signals every descendant of this process.
pub(crate) fn signal_below(signal: i32) -> io::Result<()> {
    for entry in descendants(&all(), own_pid(), &[]) {
        match sys::kill(entry.pid, signal) {
            // It ended in the meantime.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            other => other?,
        }
    }
    Ok(())
}

/// Kills and reaps every descendant until there is none. This process must be their subreaper, so that those whose
/// parents die become its own children and are found in the next round.
pub(crate) fn sweep() {
    loop {
        let mut waited = false;
        loop {
            match sys::reap() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No children are left, so no descendants either.
                Err(_) => return,
            }
        }
        for entry in descendants(&all(), own_pid(), &[]) {
            if !entry.dead {
                let _ = sys::kill(entry.pid, libc::SIGKILL);
            }
            waited = true;
        }
        if waited {
            thread::sleep(Duration::from_micros(500));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32) -> Entry {
        Entry {
            pid,
            parent,
            name: format!("p{pid}"),
            dead: false,
        }
    }

    #[test]
    fn names_with_parentheses_and_spaces_are_read() {
        let found = parse(7, b"7 (a) b) (c) S 3 7 7 0 -1").unwrap();
        assert_eq!(
            found,
            Entry {
                pid: 7,
                parent: 3,
                name: "a) b) (c".to_owned(),
                dead: false
            }
        );
        assert!(parse(7, b"7 (a) Z 3").unwrap().dead);
        assert_eq!(parse(7, b"7 a S 3"), None);
        assert_eq!(parse(7, b")("), None);
        assert_eq!(parse(7, b""), None);
    }

    #[test]
    fn descendants_leave_out_excluded_trees_and_strangers() {
        let entries = [
            entry(2, 1),
            entry(3, 2),
            entry(4, 1),
            entry(5, 4),
            entry(9, 8),
        ];
        let pids = |found: Vec<Entry>| {
            let mut pids: Vec<i32> = found.iter().map(|entry| entry.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(descendants(&entries, 1, &[])), [2, 3, 4, 5]);
        assert_eq!(pids(descendants(&entries, 1, &[4])), [2, 3]);
    }

    #[test]
    fn a_circle_in_a_torn_snapshot_ends() {
        assert_eq!(descendants(&[entry(2, 3), entry(3, 2)], 2, &[]).len(), 2);
    }
}
