//! No way out of the workspace, and words for what cannot be read.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::*;
use crate::tool::test_support::Folder;

fn read(folder: &Folder, requested: &str) -> Result<String, ToolError> {
    let path = folder.workspace.resolve(requested)?;
    let mut opened = folder.workspace.open_file(&path)?;
    let mut text = String::new();
    opened.file.read_to_string(&mut text).unwrap();
    assert_eq!(opened.size, text.len() as u64);
    Ok(text)
}

fn code(folder: &Folder, requested: &str) -> &'static str {
    read(folder, requested).unwrap_err().code
}

#[test]
fn spellings_of_one_path_inside_are_tolerated() {
    let folder = Folder::new();
    folder.write("src/größe 🦀.txt", "text");
    let absolute = folder.path("src/größe 🦀.txt");
    for spelling in [
        "src/größe 🦀.txt",
        "./src/größe 🦀.txt",
        "src//größe 🦀.txt/",
        "src/../src/./größe 🦀.txt",
        absolute.to_str().unwrap(),
    ] {
        assert_eq!(read(&folder, spelling).unwrap(), "text", "{spelling}");
        assert_eq!(
            folder.workspace.resolve(spelling).unwrap().to_string(),
            "src/größe 🦀.txt"
        );
    }
    assert!(folder.workspace.resolve("").unwrap().is_root());
    assert!(
        folder
            .workspace
            .resolve(folder.path("").to_str().unwrap())
            .unwrap()
            .is_root()
    );
    assert_eq!(folder.workspace.resolve("src/..").unwrap().to_string(), ".");
}

#[test]
fn an_absolute_path_by_the_configured_spelling_of_the_root_is_inside() {
    let folder = Folder::new();
    folder.write("a.txt", "text");
    let alias = folder.outside().join("alias");
    std::os::unix::fs::symlink(folder.path(""), &alias).unwrap();
    let workspace = Workspace::open(&alias).unwrap();
    let path = workspace.resolve(alias.join("a.txt").to_str().unwrap()).unwrap();
    assert_eq!(path.to_string(), "a.txt");
    assert!(workspace.open_file(&path).is_ok());
    let path = workspace
        .resolve(workspace.root().join("a.txt").to_str().unwrap())
        .unwrap();
    assert_eq!(path.to_string(), "a.txt");
}

#[test]
fn dots_and_absolute_paths_do_not_lead_out() {
    let folder = Folder::new();
    folder.write("src/a.txt", "");
    let sideways = format!("{}/../outside/secret.txt", folder.path("src/..").display());
    let longer_name = format!(
        "{}side/secret.txt",
        folder.path("").display().to_string().trim_end_matches('/')
    );
    for requested in [
        "..",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "./../inside/src/a.txt",
        "/etc/passwd",
        "/",
        "/..",
        &sideways,
        &longer_name,
        folder.outside().join("secret.txt").to_str().unwrap(),
    ] {
        let error = read(&folder, requested).unwrap_err();
        assert_eq!(error.code, "outside_workspace", "{requested}");
        assert!(
            error.message.contains("relative to its root"),
            "{}",
            error.message
        );
    }
}

#[test]
fn links_do_not_lead_out() {
    let folder = Folder::new();
    folder.link("../outside/secret.txt", "relative-file");
    folder.link("../outside", "relative-folder");
    folder.link(folder.outside().join("secret.txt"), "absolute-file");
    folder.link(folder.outside(), "absolute-folder");
    folder.link("/proc/self/root", "machine");
    folder.link("../outside/missing.txt", "dangling");
    for requested in [
        "relative-file",
        "relative-folder/secret.txt",
        "absolute-file",
        "absolute-folder/secret.txt",
        "machine/etc/passwd",
        "dangling",
    ] {
        assert_eq!(code(&folder, requested), "outside_workspace", "{requested}");
        let path = folder.workspace.resolve(requested).unwrap();
        assert_eq!(
            folder.workspace.real_path(&path).unwrap_err().code,
            "outside_workspace",
            "{requested}"
        );
    }
}

#[test]
fn links_that_stay_inside_are_followed_also_by_absolute_path() {
    let folder = Folder::new();
    folder.write("deep/down/a.txt", "text");
    folder.link("deep/down", "relative");
    folder.link(folder.workspace.root().join("deep"), "absolute");
    assert_eq!(read(&folder, "relative/a.txt").unwrap(), "text");
    assert_eq!(read(&folder, "absolute/down/a.txt").unwrap(), "text");
    let path = folder.workspace.resolve("absolute/down").unwrap();
    assert_eq!(
        folder.workspace.real_path(&path).unwrap().as_path(),
        PathBuf::from("deep/down")
    );
    let root = folder.workspace.resolve(".").unwrap();
    assert!(folder.workspace.real_path(&root).unwrap().is_root());
}

#[test]
fn a_folder_replaced_by_a_link_after_it_was_resolved_does_not_lead_out() {
    let folder = Folder::new();
    folder.write("data/secret.txt", "harmless");
    let path = folder.workspace.resolve("data/secret.txt").unwrap();
    assert!(folder.workspace.open_file(&path).is_ok());
    std::fs::rename(folder.path("data"), folder.path("moved")).unwrap();
    folder.link("../outside", "data");
    assert_eq!(
        folder.workspace.open_file(&path).unwrap_err().code,
        "outside_workspace"
    );
}

#[test]
fn links_in_a_circle_are_named_as_such() {
    let folder = Folder::new();
    folder.link("two", "one");
    folder.link("one", "two");
    assert_eq!(code(&folder, "one"), "symlink_loop");
    assert_eq!(code(&folder, "one/deeper"), "symlink_loop");
}

#[test]
fn special_files_are_refused_without_waiting_for_them() {
    let folder = Folder::new();
    folder.pipe("pipe");
    let _listener = UnixListener::bind(folder.path("socket")).unwrap();
    for (requested, kind) in [("pipe", "a named pipe"), ("socket", "a socket")] {
        let error = read(&folder, requested).unwrap_err();
        assert_eq!(error.code, "not_a_file");
        assert!(error.message.contains(kind), "{}", error.message);
    }
}

#[test]
fn a_directory_and_what_is_missing_come_with_advice() {
    let folder = Folder::new();
    folder.write("src/main.rs", "");
    folder.write("src/model.rs", "");
    let directory = read(&folder, "src/").unwrap_err();
    assert_eq!(directory.code, "is_directory");
    assert!(directory.message.contains("`list_dir`"));
    let missing = read(&folder, "src/mian.rs").unwrap_err();
    assert_eq!(missing.code, "not_found");
    assert_eq!(
        missing.message,
        "There is no `src/mian.rs`: `src` has no `mian.rs`. Did you mean `src/main.rs`?"
    );
    let folder_missing = read(&folder, "scr/main.rs").unwrap_err();
    assert!(
        folder_missing.message.contains("Did you mean `src`?"),
        "{}",
        folder_missing.message
    );
    let far = read(&folder, "completely-different").unwrap_err();
    assert!(far.message.contains("`list_dir`"), "{}", far.message);
    assert_eq!(code(&folder, "src/main.rs/deeper"), "not_a_directory");
    assert_eq!(code(&folder, &"long".repeat(200)), "io_error");
}

#[test]
fn a_nul_in_a_path_is_a_wrong_argument() {
    let error = Folder::new().workspace.resolve("a\0b").unwrap_err();
    assert_eq!(error.code, "invalid_arguments");
    assert!(error.message.contains("`path`"));
}

#[test]
fn a_workspace_must_be_a_folder_that_is_there() {
    let folder = Folder::new();
    folder.write("file", "");
    assert!(Workspace::open(&folder.path("file")).is_err());
    assert!(Workspace::open(&folder.path("missing")).is_err());
}
