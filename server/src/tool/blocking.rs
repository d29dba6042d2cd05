//! File work off the async threads.

use tokio_util::sync::CancellationToken;

use super::{ToolContext, ToolError, ToolOutput};

/// Runs `work` on a thread for blocking work. The call returns as soon as it is cancelled, even while the file system
/// hangs; `work` gets a token that ends with the call, also when the call's future is dropped.
pub(crate) async fn run_blocking<F>(context: &ToolContext, work: F) -> Result<ToolOutput, ToolError>
where
    F: FnOnce(&CancellationToken) -> Result<ToolOutput, ToolError> + Send + 'static,
{
    if context.cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    let token = context.cancel.child_token();
    let _ends_with_the_call = token.clone().drop_guard();
    let task = tokio::task::spawn_blocking(move || work(&token));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(ToolError::cancelled()),
        joined = task => joined.unwrap_or_else(|error| {
            tracing::error!(error = %error, "a tool ended without a result");
            Err(ToolError::new("internal", "The tool broke off because of an error of its own; this was \
            logged."))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::tool::test_support::quiet_context;

    #[tokio::test]
    async fn a_cancelled_call_returns_while_its_work_still_hangs() {
        let context = quiet_context();
        let (release, gate) = mpsc::channel::<()>();
        let cancel = context.cancel.clone();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let call = tokio::spawn(async move {
            run_blocking(&context, move |token| {
                let _ = started.send(());
                let _ = gate.recv();
                let _ = ended.send(token.is_cancelled());
                Err(ToolError::cancelled())
            })
            .await
        });
        has_started.await.unwrap();
        cancel.cancel();
        assert_eq!(call.await.unwrap(), Err(ToolError::cancelled()));
        release.send(()).unwrap();
        assert!(has_ended.await.unwrap());
    }

    #[tokio::test]
    async fn a_dropped_call_ends_its_work() {
        let context = quiet_context();
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let call = tokio::spawn(async move {
            run_blocking(&context, move |token| {
                let _ = started.send(());
                tokio::runtime::Handle::current().block_on(token.cancelled());
                let _ = ended.send(());
                Err(ToolError::cancelled())
            })
            .await
        });
        has_started.await.unwrap();
        call.abort();
        has_ended.await.unwrap();
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_of_the_call() {
        let result = run_blocking(&quiet_context(), |_| panic!("on purpose")).await;
        assert_eq!(result.unwrap_err().code, "internal");
    }
}
