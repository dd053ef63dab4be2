//! Messages of failures come from the project: normalising them must never panic.
#![no_main]

use bmc_engine::lab::signature::normalise;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &str| {
    let _ = normalise(message);
});
