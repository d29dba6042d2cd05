//! The binary `runloom`.

fn main() {}
