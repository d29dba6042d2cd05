//! Attempts that follow, and what a person can do about a run that is over.

use protocol::state::{AttemptReason, AttemptStatus, BlockStatus, RunStatus};

use super::{page, words};
use crate::fixtures::script::Script;

#[test]
fn a_boundary_says_number_provider_reason_and_what_is_kept() {
    for (tokens, kept) in [(12, "12 tokens kept"), (1, "1 token kept"), (0, "nothing kept")] {
        let mut script = Script::started();
        script.text("blk_0", 0, "half a sen");
        script.finish_block("blk_0", BlockStatus::Cut, "half a sen");
        script.finish_attempt("att_1", AttemptStatus::Failed, None);
        script.attempt_after("att_2", 1, AttemptReason::ErrorRetry, "att_1", tokens);
        let text = words(&page(&script));
        let step = if tokens > 0 {
            "again after an error, goes on from there"
        } else {
            "again after an error"
        };
        assert!(text.contains(kept), "{text}");
        assert!(text.contains(&format!("Attempt 2 demo {step}")), "{text}");
    }
}

#[test]
fn a_run_that_broke_off_can_be_resumed_by_a_form() {
    for (status, can) in [
        (RunStatus::Interrupted, true),
        (RunStatus::Failed, true),
        (RunStatus::Cancelled, true),
        (RunStatus::Succeeded, false),
        (RunStatus::Running, false),
    ] {
        let mut script = Script::started();
        script.run_status(status);
        let html = page(&script);
        assert_eq!(html.contains("action=\"/runs/run_1/resume\""), can, "{status}");
        assert_eq!(words(&html).contains("Resume"), can, "{status}");
        assert!(
            !html.contains("/regenerate"),
            "only on the page of a session whose last run it is"
        );
    }
}
