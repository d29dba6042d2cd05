//! Makes the table of the page's files that the binary carries inside.
//!
//! `RUNLOOM_SITE` names the folder that `scripts/build.sh` filled; its files are embedded under their path within
//! it, so `pkg/runloom.js` is served as `/pkg/runloom.js`. A sibling with `.br` or `.gz` behind the whole name is the
//! same file compressed. Without the variable the table is empty, so that a fresh clone can be checked and tested
//! before the page is built.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// How many bytes of a file's SHA-256 tell its versions apart.
const ETAG_BYTES: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUNLOOM_SITE");
    let mut table = String::from("pub(super) static FILES: &[EmbeddedFile] = &[\n");
    if let Some(site) = env::var_os("RUNLOOM_SITE").filter(|value| !value.is_empty()) {
        let site = PathBuf::from(site);
        if !site.is_absolute() || !site.is_dir() {
            let site = site.display();
            return Err(format!(
                "RUNLOOM_SITE is `{site}`, which must be an absolute path of a folder: run `scripts/build.sh`, or unset it"
            )
            .into());
        }
        println!("cargo::rerun-if-changed={}", text(&site)?);
        let mut files = Vec::new();
        collect(&site, &mut files)?;
        files.sort();
        for file in &files {
            if !is_compressed(file) {
                write_entry(&mut table, &site, file)?;
            }
        }
    }
    table.push_str("];\n");
    let out_dir = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: this is run by cargo")?;
    fs::write(Path::new(&out_dir).join("site.rs"), table)?;
    Ok(())
}

/// Adds every file below `folder` to `files`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes one element of the table: the file, its tag and its compressed forms.
fn write_entry(table: &mut String, site: &Path, file: &Path) -> Result<(), Box<dyn Error>> {
    let mut etag = String::new();
    for byte in Sha256::digest(fs::read(file)?).iter().take(ETAG_BYTES) {
        write!(etag, "{byte:02x}")?;
    }
    let path = format!("/{}", text(file.strip_prefix(site)?)?);
    let bytes = text(file)?;
    let br = compressed(file, "br")?;
    let gzip = compressed(file, "gz")?;
    writeln!(
        table,
        "    EmbeddedFile {{ path: {path:?}, etag: {etag:?}, bytes: include_bytes!({bytes:?}), br: {br}, gzip: {gzip} }},"
    )?;
    Ok(())
}

/// The expression for a compressed form of `file`: `None` where there is none.
fn compressed(file: &Path, suffix: &str) -> Result<String, Box<dyn Error>> {
    let sibling = format!("{}.{suffix}", text(file)?);
    Ok(if Path::new(&sibling).is_file() {
        format!("Some(include_bytes!({sibling:?}))")
    } else {
        "None".to_owned()
    })
}

/// Whether `file` is the compressed form of another one.
fn is_compressed(file: &Path) -> bool {
    file.extension()
        .is_some_and(|suffix| suffix == "br" || suffix == "gz")
        && file.with_extension("").is_file()
}

/// A path as text; generated code and URLs need UTF-8.
fn text(path: &Path) -> Result<&str, Box<dyn Error>> {
    path.to_str()
        .ok_or_else(|| format!("the path {} is not UTF-8", path.display()).into())
}
