//! Files of a page that `cargo leptos watch` builds anew beside the running server. Development builds only.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Asset, content_type};

/// Where the watcher puts what it built.
pub(super) struct Folder {
    site: PathBuf,
    style: PathBuf,
}

impl Folder {
    /// The watched folder, where the server was started by `cargo leptos watch`: it sets these variables and starts
    /// the server in the workspace's root.
    pub(super) fn from_env() -> Option<Self> {
        std::env::var_os("LEPTOS_WATCH")?;
        Some(Self::new(std::env::var_os("LEPTOS_SITE_ROOT")?, "style"))
    }

    /// A site at `site`, whose style sheet imports its parts from `style`.
    pub(super) fn new(site: impl Into<PathBuf>, style: impl Into<PathBuf>) -> Self {
        Self {
            site: site.into(),
            style: style.into(),
        }
    }

    /// The file at `path` as it is now.
    pub(super) fn asset(&self, path: &str) -> Option<Asset> {
        let relative = Path::new(path.strip_prefix('/')?);
        if !relative
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
        {
            return None;
        }
        // The watcher leaves `@import` in the style sheet, and the browser then asks for the parts beside it.
        let part = relative
            .strip_prefix("pkg")
            .ok()
            .filter(|part| part.extension().is_some_and(|it| it == "css"));
        let bytes = std::fs::read(self.site.join(relative))
            .or_else(|error| part.map_or(Err(error), |part| std::fs::read(self.style.join(part))))
            .ok()?;
        let etag = Sha256::digest(&bytes)
            .iter()
            .take(12)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(Asset {
            bytes: bytes.into(),
            content_type: content_type(path),
            etag,
            br: None,
            gzip: None,
        })
    }
}
