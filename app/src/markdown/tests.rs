//! Every prefix of a text against the whole, hostile texts, and what a long text costs.

mod corpus;
mod hostile;
mod prefixes;
mod rendering;
