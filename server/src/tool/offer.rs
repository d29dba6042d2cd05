//! Which tools a model and a program may call, by the mode of the run. The executor asks here before it looks at anything
//! else of a call; what a model is offered is the same list.

use std::sync::Arc;

use protocol::api::ToolMode;

use super::registry::ToolRegistry;
use super::run_code::{RUN_CODE, signatures};
use super::{Tool, ToolError, ToolInfo};

/// Who calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledBy {
    /// A model, by itself.
    Model,
    /// A program that a model wrote.
    Program,
}

/// Whether a tool may be called so.
fn may_call(mode: ToolMode, by: CalledBy, name: &str) -> bool {
    let is_program = name == RUN_CODE;
    match (by, mode) {
        (CalledBy::Program, _) | (CalledBy::Model, ToolMode::Native) => !is_program,
        (CalledBy::Model, ToolMode::Code) => is_program,
        (CalledBy::Model, ToolMode::Both) => true,
    }
}

impl ToolRegistry {
    /// The tool of that name, for a call.
    ///
    /// # Errors
    /// `unknown_tool` with the names that are known; `not_in_mode` where the tool is there and may not be called so.
    pub fn callable(&self, mode: ToolMode, by: CalledBy, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        let tool = self.find(name)?;
        if may_call(mode, by, name) {
            return Ok(tool);
        }
        let words = match by {
            CalledBy::Program => format!("`{name}` cannot be called from within a program."),
            CalledBy::Model if name == RUN_CODE => {
                format!("`{name}` cannot be called here: the tools of this run are called one by one.")
            }
            CalledBy::Model => format!(
                "`{name}` cannot be called by itself here: call it from a program, by `{RUN_CODE}`, as \
                 tools[\"{name}\"](arguments)."
            ),
        };
        Err(ToolError::new("not_in_mode", words))
    }

    /// What a model is offered, in order. Where it cannot call the other tools by themselves, the description of
    /// `run_code` says how a program calls them.
    pub fn offered(&self, mode: ToolMode) -> Vec<ToolInfo> {
        let of_model = |info: &&ToolInfo| may_call(mode, CalledBy::Model, &info.name);
        let mut offered: Vec<ToolInfo> = self.definitions().filter(of_model).cloned().collect();
        if mode == ToolMode::Code {
            let within = self
                .definitions()
                .filter(|info| may_call(mode, CalledBy::Program, &info.name));
            let within = signatures(within);
            for info in offered.iter_mut().filter(|info| info.name == RUN_CODE) {
                info.description.push_str("\n\nThe tools of a program:\n\n");
                info.description.push_str(&within);
            }
        }
        offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::run_code::RunCode;
    use crate::tool::test_support::Folder;

    fn registry() -> ToolRegistry {
        let mut registry = ToolRegistry::built_in(Folder::new().workspace);
        registry.register(Arc::new(RunCode::default())).unwrap();
        registry
    }

    fn names(mode: ToolMode) -> Vec<String> {
        let offered = registry().offered(mode);
        offered.into_iter().map(|info| info.name).collect()
    }

    #[test]
    fn a_mode_offers_what_may_be_called_in_it_and_no_more() {
        let all = names(ToolMode::Both);
        assert_eq!(all.last().unwrap(), RUN_CODE);
        assert_eq!(names(ToolMode::Native), all[..all.len() - 1]);
        assert_eq!(names(ToolMode::Code), [RUN_CODE]);
        let registry = registry();
        for mode in [ToolMode::Native, ToolMode::Code, ToolMode::Both] {
            for name in &all {
                let is_offered = names(mode).contains(name);
                let called = registry.callable(mode, CalledBy::Model, name);
                assert_eq!(called.is_ok(), is_offered, "{mode:?} {name}");
                let within = registry.callable(mode, CalledBy::Program, name);
                assert_eq!(within.is_ok(), name != RUN_CODE, "{mode:?} {name}");
            }
        }
        let error = registry.callable(ToolMode::Code, CalledBy::Model, "read_file");
        let error = error.err().unwrap();
        assert_eq!(error.code, "not_in_mode");
        assert!(
            error.message.contains("tools[\"read_file\"](arguments)"),
            "{error}"
        );
        let error = registry.callable(ToolMode::Both, CalledBy::Program, "__proto__");
        assert_eq!(error.err().unwrap().code, "unknown_tool");
    }

    #[test]
    fn where_a_model_has_programs_only_their_tools_are_described_to_it() {
        let offered = registry().offered(ToolMode::Code);
        let description = &offered[0].description;
        for name in names(ToolMode::Native) {
            assert!(description.contains(&format!("tools[\"{name}\"](")), "{name}");
        }
        assert!(!description.contains("tools[\"run_code\"]"));
        assert!(description.contains("path: string"), "{description}");
        assert!(description.contains("offset?: number"), "{description}");
    }
}
