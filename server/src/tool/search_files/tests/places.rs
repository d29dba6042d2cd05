//! Which places are searched, and that nothing outside is looked at.

use super::*;

#[tokio::test]
async fn ignored_files_are_left_out_unless_named() {
    let folder = Folder::new();
    folder.write(".gitignore", "target/\n*.log\n");
    folder.write("nested/.gitignore", "only-here\n");
    for file in [
        "target/out",
        "a.log",
        "nested/only-here",
        "nested/b.log",
        "only-here",
        ".hidden",
        ".git/config",
    ] {
        folder.write(file, "needle");
    }
    let needle = json!({"pattern": "needle"});
    assert_eq!(
        found(&folder, needle).await,
        [".hidden:1: needle", "only-here:1: needle"]
    );
    assert_eq!(
        found(&folder, json!({"pattern": "needle", "path": "target"})).await,
        ["target/out:1: needle"]
    );
    assert_eq!(
        found(&folder, json!({"pattern": "needle", "path": "a.log"})).await,
        ["a.log:1: needle"]
    );
    // What stands in .gitignore above the searched directory counts too.
    assert!(
        found(&folder, json!({"pattern": "needle", "path": "nested"}))
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn ignore_files_outside_of_the_workspace_do_not_count() {
    let folder = Folder::new();
    std::fs::write(
        folder.workspace.root().parent().unwrap().join(".gitignore"),
        "*\n",
    )
    .unwrap();
    folder.write("a", "needle");
    assert_eq!(
        found(&folder, json!({"pattern": "needle"})).await,
        ["a:1: needle"]
    );
}

#[tokio::test]
async fn links_are_not_followed_out_of_the_workspace() {
    let folder = Folder::new();
    folder.write("inside.txt", "secret\n");
    folder.link("../outside", "folder");
    folder.link("../outside/secret.txt", "file");
    folder.link(".", "circle");
    assert_eq!(
        found(&folder, json!({"pattern": "secret"})).await,
        ["inside.txt:1: secret"]
    );
    for path in ["folder", "file", "..", "/"] {
        let error = search_with(&folder, json!({"pattern": "secret", "path": path}))
            .await
            .unwrap_err();
        assert_eq!(error.code, "outside_workspace", "{path}");
    }
}

#[tokio::test]
async fn a_link_that_is_named_is_followed_inside() {
    let folder = Folder::new();
    folder.write("real/a", "needle");
    folder.link("real", "link");
    assert_eq!(
        found(&folder, json!({"pattern": "needle", "path": "link"})).await,
        ["real/a:1: needle"]
    );
}

#[test]
fn a_folder_replaced_by_a_link_during_the_walk_is_not_read() {
    let folder = Folder::new();
    folder.write("data/secret.txt", "needle\n");
    // Makes the walk start at the folder itself, so that the link is followed.
    folder.write(".gitignore", "data\n");
    let target = folder.workspace.resolve("data").unwrap();
    std::fs::rename(folder.path("data"), folder.path("moved")).unwrap();
    folder.link("../outside", "data");
    let mut seen = Vec::new();
    walk::files(&folder.workspace, &target, |_, file| {
        seen.push(folder.workspace.open_file(&file.unwrap()).unwrap_err().code);
        ControlFlow::Continue(())
    });
    assert_eq!(seen, ["outside_workspace"]);
}

#[tokio::test]
async fn named_pipes_are_not_waited_for_not_even_as_ignore_files() {
    let folder = Folder::new();
    folder.write("nested/a", "needle");
    folder.write("b", "needle");
    folder.pipe("pipe");
    folder.pipe("nested/.gitignore");
    assert_eq!(
        found(&folder, json!({"pattern": "needle"})).await,
        ["b:1: needle"]
    );
    folder.pipe(".gitignore");
    assert_eq!(
        found(&folder, json!({"pattern": "needle"})).await,
        ["b:1: needle"]
    );
    let error = search_with(&folder, json!({"pattern": "needle", "path": "pipe"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, "not_a_file");
}
