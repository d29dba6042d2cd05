//! States, as they are named on the wire. What an end state carries (time, error, usage) is in [`crate::model`].

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every state, in the order of its definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The state of a word on the wire.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// State of a node.
    NodeStatus {
        /// Announced; its arguments may still stream.
        Pending = "pending",
        /// It waits for a person.
        AwaitingApproval = "awaiting_approval",
        /// It runs.
        Running = "running",
        /// It ended well.
        Succeeded = "succeeded",
        /// It ended with an error.
        Failed = "failed",
        /// A person stopped it.
        Cancelled = "cancelled",
        /// Its owner is gone.
        Interrupted = "interrupted",
        /// A person refused it.
        Denied = "denied",
        /// Announced, but never started.
        NotRun = "not_run",
        /// Its time limit ended it.
        TimedOut = "timed_out",
    }
}

impl NodeStatus {
    /// Whether nothing more happens in this state.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::AwaitingApproval | Self::Running)
    }
}

words! {
    /// State of an attempt.
    AttemptStatus {
        /// It goes on.
        Running = "running",
        /// The model stopped by itself.
        Completed = "completed",
        /// It ended with an error.
        Failed = "failed",
        /// A person stopped it.
        Cancelled = "cancelled",
        /// Its owner is gone.
        Interrupted = "interrupted",
        /// Its stream fell silent.
        Stalled = "stalled",
        /// Salvaged: its text is used.
        Partial = "partial",
        /// Replaced by `regenerate`.
        Superseded = "superseded",
    }
}

impl AttemptStatus {
    /// Whether the attempt is closed.
    pub fn is_final(self) -> bool {
        self != Self::Running
    }
}

words! {
    /// Why an attempt was started.
    AttemptReason {
        /// The first one.
        Initial = "initial",
        /// The one before stalled.
        StallRetry = "stall_retry",
        /// The one before failed.
        ErrorRetry = "error_retry",
        /// Another provider takes over.
        ProviderRotation = "provider_rotation",
        /// The output did not fit the asked schema.
        OutputRepair = "output_repair",
        /// It goes on after an interruption.
        Resume = "resume",
        /// A person asked for another answer.
        Regenerate = "regenerate",
        /// Made from a record of an older form.
        Legacy = "legacy",
    }
}

words! {
    /// State of a block.
    BlockStatus {
        /// More may come.
        Streaming = "streaming",
        /// It is whole.
        Complete = "complete",
        /// It ended early; the text so far is kept.
        Cut = "cut",
    }
}

impl BlockStatus {
    /// Whether the block is closed.
    pub fn is_final(self) -> bool {
        self != Self::Streaming
    }
}

words! {
    /// State of a run.
    RunStatus {
        /// It waits for an owner.
        Queued = "queued",
        /// It has an owner and works.
        Running = "running",
        /// It waits for a person.
        Waiting = "waiting",
        /// It ended well.
        Succeeded = "succeeded",
        /// It ended with an error.
        Failed = "failed",
        /// A person stopped it.
        Cancelled = "cancelled",
        /// Its owner is gone.
        Interrupted = "interrupted",
    }
}

impl RunStatus {
    /// Whether the run is over (it may still be resumed).
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

words! {
    /// A person's answer to a request for approval.
    ApprovalAnswer {
        /// This call may run.
        Approve = "approve",
        /// It may not.
        Deny = "deny",
        /// It may, and so may the session's later calls of the same tool.
        Always = "always",
    }
}

words! {
    /// Delivery of a person's message.
    MessageState {
        /// It waits to be read.
        Queued = "queued",
        /// The model has it.
        Delivered = "delivered",
        /// The run ended before it was read.
        Returned = "returned",
    }
}

words! {
    /// Who wrote a message.
    MessageRole {
        /// A person.
        User = "user",
        /// The system.
        System = "system",
    }
}

words! {
    /// What a node is.
    NodeKind {
        /// The one root of a run.
        Root = "root",
        /// A phase of a mission.
        Phase = "phase",
        /// A model call.
        Model = "model",
        /// A tool call.
        Function = "function",
        /// A `run_code` call.
        Code = "code",
    }
}

words! {
    /// Who executes a node.
    Executor {
        /// This server.
        Runloom = "runloom",
        /// The provider of the model, such as its web search.
        Provider = "provider",
    }
}

words! {
    /// One stream of text of a node.
    Channel {
        /// The arguments as the model wrote them.
        Arguments = "arguments",
        /// What the tool reported while it ran.
        Log = "log",
        /// What it gave back.
        Result = "result",
    }
}

words! {
    /// Whether reasoning is kept.
    Retention {
        /// It is kept.
        Saved = "saved",
        /// It is shown live only.
        NotSaved = "not_saved",
    }
}

words! {
    /// What a live stream is doing.
    StreamActivity {
        /// The request is out; nothing came yet.
        WaitingFirstToken = "waiting_first_token",
        /// Content comes.
        Streaming = "streaming",
        /// Nothing has come for a while.
        Silent = "silent",
        /// A tool runs; the model waits.
        ToolRunning = "tool_running",
        /// A person is asked.
        AwaitingPerson = "awaiting_person",
        /// The provider asked to wait.
        RateLimited = "rate_limited",
        /// Another attempt is about to start.
        Retrying = "retrying",
        /// Another provider takes over.
        Rotating = "rotating",
        /// It is over.
        Settled = "settled",
    }
}

words! {
    /// One of the two liveness clocks.
    LivenessClock {
        /// Any byte.
        Byte = "byte",
        /// Text, reasoning or arguments.
        Content = "content",
    }
}
