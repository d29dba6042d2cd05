//! `runloom verify RUN`: folds the journal again and compares the outcome with what the rows hold.

use protocol::digest::digest;
use protocol::fold::{Applied, RunState};
use protocol::id::RunId;

use crate::store::{Store, StoreError, journal};

/// Ops that are read at a time.
const PAGE: u32 = 5_000;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The last op.
    pub seq: u64,
    /// The digest of the rows: what pages show.
    pub rows: String,
    /// The digest of the folded journal.
    pub journal: String,
    /// What does not fit, in plain words; empty when all is well.
    pub problems: Vec<String>,
}

/// Checks one run; none when there is no such run.
pub async fn verify(store: &Store, run_id: &RunId) -> Result<Option<Verified>, StoreError> {
    let Some(rows) = store.load_run(run_id).await? else {
        return Ok(None);
    };
    let mut folded = RunState::new(run_id.clone(), rows.run().session_id.clone());
    let mut problems = Vec::new();
    loop {
        let entries = journal::after(store.pool(), run_id, folded.seq(), PAGE).await?;
        // The run may go on meanwhile: both sides are compared at the same op.
        let entries: Vec<_> = entries
            .into_iter()
            .take_while(|entry| entry.seq <= rows.seq())
            .collect();
        if entries.is_empty() {
            break;
        }
        let before = folded.seq();
        for entry in &entries {
            match folded.apply(entry) {
                Ok(Applied::Changed(_) | Applied::Duplicate) => {}
                Ok(Applied::Refused(refusal)) => problems.push(format!("op {}: {refusal}", entry.seq)),
                Err(error) => problems.push(format!("op {}: {error}", entry.seq)),
            }
        }
        if folded.seq() == before {
            break;
        }
    }
    if folded.seq() != rows.seq() {
        problems.push(format!(
            "the journal ends at op {}, the rows at op {}",
            folded.seq(),
            rows.seq()
        ));
    }
    for block in rows.blocks() {
        if let (Some(content), protocol::model::BlockState::Ended(end)) = (block.body.content(), &block.state)
        {
            check_content(
                &mut problems,
                block.block_id.as_str(),
                content.text.as_bytes(),
                end.sha256.as_deref(),
            );
        }
    }
    for node in rows.nodes() {
        for (channel, output) in &node.outputs {
            let thing = format!("{} {channel}", node.node_id);
            check_content(
                &mut problems,
                &thing,
                output.text.as_bytes(),
                output.sha256.as_deref(),
            );
        }
    }
    let (rows_digest, journal_digest) = (digest(&rows), digest(&folded));
    if rows_digest != journal_digest {
        problems.push("the rows and the folded journal differ".to_owned());
    }
    Ok(Some(Verified {
        seq: rows.seq(),
        rows: rows_digest,
        journal: journal_digest,
        problems,
    }))
}

/// A closed content has the hash that closed it.
fn check_content(problems: &mut Vec<String>, thing: &str, content: &[u8], stated: Option<&str>) {
    if let Some(stated) = stated
        && protocol::digest::sha256(content) != stated
    {
        problems.push(format!(
            "{thing}: the content does not have the hash that closed it"
        ));
    }
}
