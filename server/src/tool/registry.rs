//! The tools that a run can call, by name.

use std::sync::Arc;

use super::ask_model::AskModel;
use super::edit_file::EditFile;
use super::list_dir::ListDir;
use super::read_file::ReadFile;
use super::search_files::SearchFiles;
use super::write_file::WriteFile;
use super::{Tool, ToolError, ToolInfo, ToolSource, Workspace};

/// Two tools of one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool named `{0}` is registered already")]
pub struct DuplicateTool(pub String);

/// Tools in the order of their registration, which is the order in which they are offered to a model.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    // A handful of entries: a scan is as quick as a map and keeps the order.
    tools: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn ToolSource>>,
}

impl ToolRegistry {
    /// A registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools that reach no further than the workspace: `read_file`, `list_dir`, `search_files`, `write_file`,
    /// `edit_file`, and `ask_model`.
    pub fn built_in(workspace: Arc<Workspace>) -> Self {
        Self {
            tools: vec![
                Arc::new(ReadFile::new(Arc::clone(&workspace))),
                Arc::new(ListDir::new(Arc::clone(&workspace))),
                Arc::new(SearchFiles::new(Arc::clone(&workspace))),
                Arc::new(WriteFile::new(Arc::clone(&workspace))),
                Arc::new(EditFile::new(workspace)),
                Arc::new(AskModel::new()),
            ],
            sources: Vec::new(),
        }
    }

    /// Adds a tool behind the others.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), DuplicateTool> {
        let name = &tool.info().name;
        if self.get(name).is_some() {
            return Err(DuplicateTool(name.clone()));
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Adds a source, whose tools come behind the others once they are there.
    pub fn attach(&mut self, source: Arc<dyn ToolSource>) {
        self.sources.push(source);
    }

    /// The tools that there are now, those of sources included, and why a source has none. Waits for sources that have
    /// only begun. A name that is taken stays with who had it first.
    pub async fn now(&self) -> (Self, Vec<(String, String)>) {
        let mut now = Self {
            tools: self.tools.clone(),
            sources: Vec::new(),
        };
        let mut problems = Vec::new();
        for source in &self.sources {
            source.settled().await;
            if let Some(problem) = source.problem() {
                problems.push((source.name().to_owned(), problem));
            }
            for tool in source.tools() {
                if let Err(error) = now.register(tool) {
                    tracing::warn!(source = source.name(), %error, "a tool is left out");
                }
            }
        }
        (now, problems)
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.info().name == name)
    }

    /// The tool of that name, for a call by a model.
    ///
    /// # Errors
    /// `unknown_tool` with the names that are known.
    pub fn find(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.get(name).ok_or_else(|| {
            let known = self
                .definitions()
                .map(|info| format!("`{}`", info.name))
                .collect::<Vec<_>>();
            let known = if known.is_empty() {
                "There are no tools here.".to_owned()
            } else {
                format!("The tools here are: {}.", known.join(", "))
            };
            ToolError::new(
                "unknown_tool",
                format!("There is no tool named `{name}`. {known}"),
            )
        })
    }

    /// Those tools of this registry that are named, in the registry's order.
    ///
    /// # Errors
    /// `unknown_tool` with the names that are known.
    pub fn only(&self, names: &[String]) -> Result<Self, ToolError> {
        for name in names {
            self.find(name)?;
        }
        let is_named = |tool: &&Arc<dyn Tool>| names.contains(&tool.info().name);
        Ok(Self {
            tools: self.tools.iter().filter(is_named).cloned().collect(),
            sources: Vec::new(),
        })
    }

    /// What is fixed about each tool, in order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolInfo> {
        self.tools.iter().map(|tool| tool.info())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::{Concurrency, Exposure};

    fn built_in() -> (tempfile::TempDir, ToolRegistry) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::open(folder.path()).unwrap());
        (folder, ToolRegistry::built_in(workspace))
    }

    #[test]
    fn built_in_tools_keep_their_order_and_what_changes_files_goes_alone() {
        let (_folder, registry) = built_in();
        let names: Vec<_> = registry.definitions().map(|info| info.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "read_file",
                "list_dir",
                "search_files",
                "write_file",
                "edit_file",
                "ask_model"
            ]
        );
        for info in registry.definitions() {
            let is_exclusive = info.concurrency == Concurrency::Exclusive;
            assert_eq!(info.mutating, is_exclusive, "{}", info.name);
            assert_eq!(
                info.mutating,
                ["write_file", "edit_file"].contains(&info.name.as_str())
            );
            assert_eq!(info.exposure, Exposure::Full);
        }
    }

    #[test]
    fn every_schema_is_a_closed_object_whose_fields_are_described() {
        let (_folder, registry) = built_in();
        for info in registry.definitions() {
            assert_eq!(info.parameters["type"], "object", "{}", info.name);
            assert_eq!(
                info.parameters["additionalProperties"],
                json!(false),
                "{}",
                info.name
            );
            assert_eq!(info.parameters.get("$schema"), None, "{}", info.name);
            for (field, schema) in info.parameters["properties"].as_object().unwrap() {
                assert!(schema["description"].is_string(), "{}.{field}", info.name);
                assert!(schema["type"].is_string(), "{}.{field}", info.name);
            }
        }
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_known_names() {
        let (_folder, registry) = built_in();
        assert_eq!(registry.find("read_file").unwrap().info().name, "read_file");
        let error = registry.find("cat").err().unwrap();
        assert_eq!(error.code, "unknown_tool");
        assert_eq!(
            error.message,
            "There is no tool named `cat`. The tools here are: `read_file`, `list_dir`, `search_files`, \
             `write_file`, `edit_file`, `ask_model`."
        );
        assert!(
            ToolRegistry::new()
                .find("cat")
                .err()
                .unwrap()
                .message
                .contains("no tools here")
        );
    }

    #[test]
    fn a_part_of_a_registry_holds_what_is_named_and_no_more() {
        let (_folder, registry) = built_in();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let part = registry.only(&names(&["list_dir", "read_file"])).unwrap();
        let known: Vec<_> = part.definitions().map(|info| info.name.as_str()).collect();
        assert_eq!(known, ["read_file", "list_dir"]);
        assert_eq!(registry.only(&[]).unwrap().definitions().count(), 0);
        let error = part.only(&names(&["search_files"])).err().unwrap();
        assert_eq!(error.code, "unknown_tool");
    }

    #[test]
    fn a_name_is_registered_once() {
        let (_folder, registry) = built_in();
        let mut other = ToolRegistry::new();
        let tool = registry.get("list_dir").unwrap();
        other.register(Arc::clone(tool)).unwrap();
        assert_eq!(
            other.register(Arc::clone(tool)),
            Err(DuplicateTool("list_dir".to_owned()))
        );
        assert_eq!(other.definitions().count(), 1);
    }
}
