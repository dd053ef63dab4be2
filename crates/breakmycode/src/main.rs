//! The breakmycode binary.
fn main() {}
