//! What a test process sends is a stranger's: any bytes must be frames, an end, or a violation, and never a panic.
#![no_main]

use bmc_pytest::wire::{FrameReader, Read1};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = FrameReader::new(bytes);
    while let Ok(Read1::Frame(_)) = reader.next_frame() {}
});
