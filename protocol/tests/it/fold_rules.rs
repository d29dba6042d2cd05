//! One test for each rule of the fold, named after it.

mod blocks;
mod nodes;
mod sequence;
mod unknown;
