//! What a database column cannot hold is not taken from a file.

use protocol::op::{Entry, Op};

/// Numbers are kept in signed columns.
fn small(name: &str, number: u32) -> Result<(), String> {
    i32::try_from(number)
        .map(drop)
        .map_err(|_| format!("its {name} {number} is too large"))
}

fn large(name: &str, number: u64) -> Result<(), String> {
    i64::try_from(number)
        .map(drop)
        .map_err(|_| format!("its {name} {number} is too large"))
}

/// Names are columns of text, which cannot hold NUL: it is written as its symbol.
fn plain(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{2400}");
    }
}

/// Makes an entry fit the record's columns, or says why it cannot.
pub(super) fn sound(entry: &mut Entry) -> Result<(), String> {
    large("generation", entry.generation)?;
    large("seq", entry.seq)?;
    match &mut entry.op {
        Op::MessageAdded(op) if op.text.len() > protocol::MAX_PROMPT => {
            return Err(format!("its text has {} bytes", op.text.len()));
        }
        Op::NodeStarted(op) => {
            plain(&mut op.name);
            plain(&mut op.title);
            small("ordinal", op.ordinal)?;
        }
        Op::NodeUpdated(op) => {
            if let Some(title) = &mut op.title {
                plain(title);
            }
        }
        Op::NodeFinished(op) => {
            for summary in op.outputs.values() {
                large("bytes", summary.bytes)?;
            }
        }
        Op::AttemptStarted(op) => {
            plain(&mut op.provider);
            plain(&mut op.model);
            small("attempt_index", op.attempt_index)?;
        }
        Op::AttemptFinished(op) => {
            if let Some(reason) = &mut op.stop_reason {
                plain(reason);
            }
        }
        Op::BlockStarted(op) => {
            small("block_index", op.block_index)?;
            small("round", op.round)?;
        }
        Op::BlockFinished(op) => {
            large("bytes", op.bytes)?;
            plain(&mut op.sha256);
        }
        _ => {}
    }
    Ok(())
}
