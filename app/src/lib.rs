//! The page of Runloom.
