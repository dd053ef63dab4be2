//! Reads where the host has mounts. Knows the format of `/proc/self/mountinfo` and nothing else.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// All mount points that this process sees, each once.
pub(crate) fn mount_points() -> io::Result<Vec<PathBuf>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

fn parse(text: &[u8]) -> Vec<PathBuf> {
    let mut points: Vec<PathBuf> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .collect();
    points.sort();
    points.dedup();
    points
}

/// Undoes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'\\'
            && let [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] = tail
        {
            bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = tail;
        } else {
            bytes.push(*first);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_unescaped_sorted_and_unique() {
        let text = b"1 0 8:1 / / rw - ext4 /dev/vda rw\n\
            2 1 0:2 / /mnt/a\\040b\\134c rw shared:1 - tmpfs t rw\n\
            3 1 0:2 / / rw - tmpfs t rw\n\nshort line\n";
        assert_eq!(
            parse(text),
            [PathBuf::from("/"), PathBuf::from("/mnt/a b\\c")]
        );
    }

    #[test]
    fn a_backslash_that_starts_no_escape_stays() {
        assert_eq!(unescape(b"a\\9\\04"), b"a\\9\\04");
        assert_eq!(unescape(b"\\"), b"\\");
    }
}
