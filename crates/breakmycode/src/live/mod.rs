//! What a running scan looks like: consumers of its events. They show, and never change what is done or kept.

pub(crate) mod jsonl;
pub(crate) mod terminal;

mod block;

pub(crate) use jsonl::Jsonl;
pub(crate) use terminal::Terminal;
