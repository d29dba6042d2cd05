//! What stands around the content: top bar, status, composer, scrolling.

pub mod composer;
pub mod connection;
pub mod scroll;
pub mod status_chip;
pub mod stop;
pub mod topbar;
