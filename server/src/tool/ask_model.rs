//! `ask_model`: another model does a part of the work, with tools of its own.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{decode, schema_of};
use super::{
    Concurrency, Exposure, InnerCall, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What the model is asked. It knows nothing else of this conversation.
    prompt: String,
    /// What it is told about its role. Left out: that it does a part of another model's work.
    system: Option<String>,
    /// Which model: `PROVIDER/MODEL`, or a model's name. Left out: the one that serves inner calls.
    model: Option<String>,
    /// The names of the tools that it may call, of those that you have; `[]` for none. Left out: all of them.
    tools: Option<Vec<String>>,
    /// Whether a long part of the answer will do when its stream breaks off, as for a draft or a design. Left out: the
    /// whole answer is needed, and it is asked for again.
    #[serde(default)]
    accept_partial: bool,
}

/// The tool `ask_model`.
pub struct AskModel {
    info: ToolInfo,
}

impl AskModel {
    /// The tool. What it asks is run by whoever runs the call.
    pub fn new() -> Self {
        let info = ToolInfo {
            name: "ask_model".to_owned(),
            description: "Asks another model to do a part of the work, with tools of its own, and gives back its \
                          answer. Use it for a question that can be answered apart from the rest. Several calls in \
                          one turn run at the same time."
                .to_owned(),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::ParallelSafe,
            mutating: false,
            exposure: Exposure::Full,
        };
        Self { info }
    }
}

impl Default for AskModel {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for AskModel {
    fn can_go_on(&self) -> bool {
        true
    }

    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        if arguments.prompt.trim().is_empty() {
            return Err(ToolError::new(
                "invalid_arguments",
                "The argument `prompt` is empty: say what the model is asked.",
            ));
        }
        Ok(())
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let Arguments {
                prompt,
                system,
                model,
                tools,
                accept_partial,
            } = decode(&arguments)?;
            let call = InnerCall {
                prompt,
                system,
                model,
                tools,
                accept_partial,
            };
            let text = context.models.ask(call).await?;
            Ok(ToolOutput {
                text,
                media_type: "text/markdown".to_owned(),
                exit_code: None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::test_support::{call, quiet_context};
    use crate::tool::{InnerModels, InnerRequest};

    #[tokio::test]
    async fn what_is_asked_reaches_whoever_runs_the_call_and_the_answer_is_the_result() {
        let (models, mut requests) = InnerModels::channel();
        let context = ToolContext {
            models,
            ..quiet_context()
        };
        let tool = AskModel::new();
        let arguments = json!({ "prompt": "Is it?", "model": "local/small", "tools": ["read_file"] });
        let answering = async {
            let InnerRequest { call, answer } = requests.recv().await.unwrap();
            answer.send(Ok("It is.".to_owned())).unwrap();
            call
        };
        let (output, asked) = tokio::join!(tool.call(arguments, &context), answering);
        assert_eq!(output.unwrap().text, "It is.");
        assert_eq!(
            asked,
            InnerCall {
                prompt: "Is it?".to_owned(),
                system: None,
                model: Some("local/small".to_owned()),
                tools: Some(vec!["read_file".to_owned()]),
                accept_partial: false,
            }
        );
    }

    #[tokio::test]
    async fn wrong_arguments_are_refused_before_anything_is_asked() {
        let tool = AskModel::new();
        for arguments in [
            json!({}),
            json!({ "prompt": "  " }),
            json!({ "prompt": 5 }),
            json!({ "prompt": "x", "tools": "read_file" }),
            json!({ "prompt": "x", "temperature": 1 }),
        ] {
            let error = tool.check(&arguments).unwrap_err();
            assert_eq!(error.code, "invalid_arguments", "{arguments}");
        }
    }

    #[tokio::test]
    async fn where_nobody_runs_models_the_call_says_so() {
        let error = call(&AskModel::new(), json!({ "prompt": "x" }))
            .await
            .unwrap_err();
        assert_eq!(error.code, "no_models");
    }
}
