//! Finding PostgreSQL's programs on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::EmbeddedError;
use super::user::RunAs;

/// The oldest major version that the tables and settings work with.
const OLDEST: u32 = 13;

/// Where to look.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// `PG_BIN`: this folder and no other.
    pub(super) folder: Option<PathBuf>,
    /// `PATH`.
    pub(super) path: Option<OsString>,
}

/// The programs of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) initdb: PathBuf,
    pub(super) postgres: PathBuf,
    pub(super) major: u32,
}

impl Programs {
    /// The first installation that fits: the newest, or the one with the major version of the data. `folder` must be
    /// reachable for `run_as`; the programs are tried in it.
    pub(super) fn find(
        search: &Search,
        run_as: &RunAs,
        folder: &Path,
        data: &Path,
        data_major: Option<u32>,
    ) -> Result<Self, EmbeddedError> {
        let (folders, looked) = candidates(search);
        let mut found = Vec::new();
        for bin in folders
            .into_iter()
            .filter(|bin| bin.join("initdb").is_file() && bin.join("postgres").is_file())
        {
            let postgres = bin.join("postgres");
            let major = version(run_as, &postgres, folder)?;
            if data_major.is_none_or(|wanted| wanted == major) {
                if major < OLDEST {
                    let problem = format!("it is version {major}; version {OLDEST} or later is needed");
                    return Err(EmbeddedError::Program {
                        program: postgres,
                        problem,
                    });
                }
                return Ok(Self {
                    initdb: bin.join("initdb"),
                    postgres,
                    major,
                });
            }
            found.push(major.to_string());
        }
        match data_major {
            Some(data_major) if !found.is_empty() => {
                found.dedup();
                let found = found.join(", ");
                Err(EmbeddedError::VersionMismatch {
                    data: data.to_path_buf(),
                    data_major,
                    found,
                })
            }
            _ => Err(EmbeddedError::NoPrograms { looked }),
        }
    }
}

/// The folders in order, and in words where was looked.
fn candidates(search: &Search) -> (Vec<PathBuf>, String) {
    if let Some(folder) = &search.folder {
        return (vec![folder.clone()], format!("PG_BIN={}", folder.display()));
    }
    let mut folders = numbered(Path::new("/usr/lib/postgresql"), "");
    folders.extend(numbered(Path::new("/usr"), "pgsql-"));
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        folders.extend(
            String::from_utf8(output.stdout)
                .ok()
                .map(|text| PathBuf::from(text.trim())),
        );
    }
    if let Some(path) = &search.path {
        folders.extend(std::env::split_paths(path));
    }
    folders.retain(|folder| folder.is_absolute());
    (
        folders,
        "/usr/lib/postgresql/*/bin, pg_config --bindir, PATH".to_owned(),
    )
}

/// `parent/PREFIXnumber/bin`, the highest number first.
fn numbered(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    let mut numbered: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .collect();
    numbered.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    numbered.into_iter().map(|(_, bin)| bin).collect()
}

/// The major version that `postgres --version` says, asked as the user who will run it.
fn version(run_as: &RunAs, postgres: &Path, folder: &Path) -> Result<u32, EmbeddedError> {
    let output = run_as
        .command(postgres, folder)
        .arg("--version")
        .output()
        .map_err(|error| run_as.explain(postgres, folder, error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    major_of(&text).ok_or_else(|| EmbeddedError::Program {
        program: postgres.to_path_buf(),
        problem: format!(
            "`--version` says {:?}{}",
            text.trim(),
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    })
}

/// `postgres (PostgreSQL) 15.14 (Debian …)` is 15; so is `15beta1`.
fn major_of(text: &str) -> Option<u32> {
    let number = text.split_once("(PostgreSQL) ")?.1;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    number.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_form() {
        assert_eq!(
            major_of("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(major_of("postgres (PostgreSQL) 18beta2"), Some(18));
        assert_eq!(major_of("postgres (PostgreSQL) devel"), None);
        assert_eq!(major_of(""), None);
    }

    #[test]
    fn the_newest_installation_comes_first() {
        let parent = tempfile::tempdir().expect("a folder");
        for name in ["9.6", "15", "9", "17", "common"] {
            std::fs::create_dir(parent.path().join(name)).expect("a folder");
        }
        let expected: Vec<PathBuf> = ["17", "15", "9"]
            .map(|name| parent.path().join(name).join("bin"))
            .into();
        assert_eq!(numbered(parent.path(), ""), expected);
    }

    #[test]
    fn pg_bin_is_the_only_place_when_it_is_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let search = Search {
            folder: Some(folder.path().to_path_buf()),
            path: Some("/usr/bin".into()),
        };
        let run_as = RunAs::decide(&folder.path().join("data")).expect("a user");
        let data = folder.path().join("data");
        let message = Programs::find(&search, &run_as, Path::new("/"), &data, None)
            .expect_err("no programs")
            .to_string();
        assert!(
            message.contains("PG_BIN=") && message.contains("apt-get install postgresql"),
            "{message}"
        );
    }
}
