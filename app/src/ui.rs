//! Small parts that every page uses: icons, state marks, buttons, chips, and how figures are written.

pub mod alone;
pub mod button;
pub mod chip;
#[cfg(feature = "hydrate")]
mod clipboard;
pub mod dynamic;
pub mod format;
pub mod icon;
#[cfg(feature = "hydrate")]
mod listener;
pub mod state;
#[cfg(feature = "hydrate")]
pub(crate) mod stepped;
#[cfg(test)]
mod style_tests;
pub mod theme;

pub use button::{Button, ButtonKind, CopyButton, IconButton};
pub use chip::StreamChip;
#[cfg(feature = "hydrate")]
pub use clipboard::copy_text;
pub use icon::{Icon, IconName, IconSprite};
#[cfg(feature = "hydrate")]
pub use listener::Listener;
pub use state::{StateKind, StateMark};
pub use theme::{THEME_SCRIPT, ThemeSwitch};
