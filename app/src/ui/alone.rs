//! A page that is a file of its own: everything is open and in it, and nothing in it can be pressed or asked for.

#[cfg(feature = "ssr")]
use leptos::prelude::use_context;

/// In context where such a page is drawn.
#[cfg(feature = "ssr")]
#[derive(Debug, Clone, Copy)]
pub struct Alone;

/// Whether what is drawn stands alone. Only a server draws such pages.
pub fn is_alone() -> bool {
    #[cfg(feature = "ssr")]
    return use_context::<Alone>().is_some();
    #[cfg(not(feature = "ssr"))]
    return false;
}
