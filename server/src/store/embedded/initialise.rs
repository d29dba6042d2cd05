//! The first start: `initdb` into a folder beside, which becomes the database only when it is whole.

use std::path::Path;

use super::Durability;
use super::error::EmbeddedError;
use super::layout::{Layout, sync_folder, write_private};
use super::programs::Programs;
use super::user::RunAs;
use crate::provider::Secret;

/// The one role, which owns everything.
pub(super) const ROLE: &str = "runloom";
const UNFINISHED: &str = "data.new-";

/// Creates the database. Killed at any moment, the next start begins anew; a database that exists is never touched.
pub(super) fn initialise(
    layout: &Layout,
    run_as: &RunAs,
    programs: &Programs,
    password: &Secret,
    durability: Durability,
) -> Result<(), EmbeddedError> {
    remove_unfinished(&layout.folder);
    tracing::info!(
        postgres.version = programs.major,
        postgres.user = %run_as.name,
        "first start: creating the database in {} (a few seconds, once)",
        layout.data.display()
    );
    let new = layout.folder.join(format!("{UNFINISHED}{}", std::process::id()));
    let password_file = layout.folder.join("password.new");
    write_private(&password_file, password.expose(), durability)?;
    run_as.take_over(&password_file)?;

    let mut command = run_as.command(&programs.initdb, &layout.folder);
    command
        .arg("-D")
        .arg(&new)
        .arg(format!("--username={ROLE}"))
        .args(["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"])
        .arg(format!("--pwfile={}", password_file.display()));
    if durability == Durability::Throwaway {
        // Small segments: most of what a short life would write is empty log.
        command.args(["--no-sync", "--wal-segsize=1"]);
    }
    let output = command
        .output()
        .map_err(|error| run_as.explain(&programs.initdb, &layout.folder, error));
    std::fs::remove_file(&password_file).map_err(EmbeddedError::io("remove", &password_file))?;
    let output = output?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        let output = String::from_utf8_lossy(&text).trim().to_owned();
        remove_unfinished(&layout.folder);
        return Err(EmbeddedError::Initialise {
            data: layout.data.clone(),
            output,
        });
    }
    std::fs::rename(&new, &layout.data).map_err(EmbeddedError::io("rename", &new))?;
    sync_folder(&layout.folder, durability)
}

/// Removes what an `initdb` that was killed left behind. No database was ever started on it.
fn remove_unfinished(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        if let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!("cannot remove the unfinished {}: {error}", entry.path().display());
        }
    }
}
