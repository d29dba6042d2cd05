//! The server of Runloom.
