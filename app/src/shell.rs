//! What stands around the content: top bar, status, composer, scrolling, keys.

pub mod composer;
pub mod connection;
pub mod dialog;
pub mod export;
pub mod focus;
pub mod keys;
pub mod replay;
pub mod scroll;
pub mod status_chip;
pub mod stop;
pub mod topbar;
