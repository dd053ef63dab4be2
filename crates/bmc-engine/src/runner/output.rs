//! What a process printed: always drained, kept only at both ends.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Kept from the beginning: where a failing start says why.
const HEAD: usize = 64 << 10;

/// Kept from the end: where stacks and the last words of a crash are.
const TAIL: usize = 128 << 10;

/// Output of a process, shared with the thread that reads it.
#[derive(Debug, Clone, Default)]
pub struct Captured(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Captured {
    /// Drains a pipe until its last writer is gone.
    pub(crate) fn drain(pipe: OwnedFd) -> std::io::Result<Self> {
        let captured = Self::default();
        let shared = captured.clone();
        thread::Builder::new()
            .name("output".into())
            .spawn(move || {
                let mut pipe = File::from(pipe);
                let mut buffer = vec![0; 1 << 16];
                loop {
                    match pipe.read(&mut buffer) {
                        Ok(0) => return,
                        Ok(got) => shared.add(&buffer[..got]),
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(_) => return,
                    }
                }
            })?;
        Ok(captured)
    }

    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.total += bytes.len() as u64;
        let room = HEAD.saturating_sub(kept.head.len()).min(bytes.len());
        kept.head.extend_from_slice(&bytes[..room]);
        kept.tail.extend_from_slice(&bytes[room..]);
        if kept.tail.len() > 2 * TAIL {
            let cut = kept.tail.len() - TAIL;
            kept.tail.drain(..cut);
        }
    }

    /// How many bytes came so far.
    pub fn total(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// The text; what was left out in the middle is said.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = &kept.tail[kept.tail.len().saturating_sub(TAIL)..];
        let left_out = kept.total - kept.head.len() as u64 - tail.len() as u64;
        let mut text = String::from_utf8_lossy(&kept.head).into_owned();
        if left_out > 0 {
            text.push_str(&format!("\n[… {left_out} bytes left out …]\n"));
        }
        text.push_str(&String::from_utf8_lossy(tail));
        text
    }

    /// The text that came after the first `offset` bytes, as far as it is kept.
    pub fn text_since(&self, offset: u64) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = usize::try_from(kept.total.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = kept.head.clone();
        bytes.extend_from_slice(&kept.tail);
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(fresh)..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_endless_output_are_kept_and_the_gap_is_said() {
        let captured = Captured::default();
        captured.add(b"first words\n");
        for _ in 0..4096 {
            captured.add(&[b'x'; 1024]);
        }
        let before = captured.total();
        captured.add(b"\nlast words");
        let text = captured.text();
        assert!(text.starts_with("first words\n") && text.ends_with("\nlast words"));
        assert!(text.contains("bytes left out"), "the gap is not said");
        assert!(text.len() < HEAD + TAIL + 100);
        assert_eq!(captured.text_since(before), "\nlast words");
    }
}
