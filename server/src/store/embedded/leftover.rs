//! What an earlier PostgreSQL left behind: a process that still runs, or files of one that does not.
//!
//! The caller holds the lock on the data folder, so no other server uses these data. A process that still runs is
//! stopped rather than adopted: it is nobody's child, so it would not end with this server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::EmbeddedError;
use super::layout::SOCKET_NAME;

const POLL: Duration = Duration::from_millis(15);
/// How long each way of ending a process may take, the mildest first.
pub(super) const WAYS_TO_END: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(30)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(10)),
];
/// How long orphaned backends may take to notice that their parent is gone.
const ORPHANS: Duration = Duration::from_secs(30);

/// What `postmaster.pid` says: one value a line, later lines absent while PostgreSQL starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    pub(super) pid: Pid,
    pub(super) socket_folder: Option<PathBuf>,
    /// Id of the System V segment that every process of this PostgreSQL is attached to.
    shared_memory: Option<u64>,
    pub(super) is_ready: bool,
}

impl PidFile {
    /// The file in `data`; none when there is none, or none that can be read.
    pub(super) fn read(data: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path_of(data)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let pid = lines.first()?.parse().ok().filter(|pid| *pid > 0)?;
        Some(Self {
            pid: Pid::from_raw(pid),
            socket_folder: lines
                .get(4)
                .filter(|folder| !folder.is_empty())
                .map(PathBuf::from),
            shared_memory: lines
                .get(6)
                .and_then(|line| line.split_whitespace().nth(1)?.parse().ok()),
            is_ready: lines.get(7).is_some_and(|state| *state == "ready"),
        })
    }

    /// Whether the process is a living PostgreSQL on `data`, and not another that got its number.
    pub(super) fn is_alive(&self, data: &Path) -> bool {
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        // A zombie has a name but no arguments.
        let arguments = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let data = data.as_os_str().as_encoded_bytes();
        name.trim().starts_with("postgres")
            && arguments
                .split(|byte| *byte == 0)
                .any(|argument| argument == data)
    }
}

fn path_of(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

/// Makes the way free for a new PostgreSQL on `data`, without touching the data.
pub(super) fn clear(data: &Path, socket_folder: &Path) -> Result<(), EmbeddedError> {
    if let Some(file) = PidFile::read(data) {
        if file.is_alive(data) {
            tracing::info!(
                postgres.pid = file.pid.as_raw(),
                "stopping the PostgreSQL that an earlier server left running"
            );
            end(&file, data)?;
        }
        wait_for_orphans(&file, data)?;
        // Its number may belong to another process by now, for which PostgreSQL would refuse to start. Nobody is
        // attached to its shared memory, so nobody uses the data.
        if is_taken(file.pid) {
            remove(&path_of(data))?;
        }
    }
    remove(&socket_folder.join(SOCKET_NAME))?;
    remove(&socket_folder.join(format!("{SOCKET_NAME}.lock")))
}

fn end(file: &PidFile, data: &Path) -> Result<(), EmbeddedError> {
    for (signal, patience) in WAYS_TO_END {
        match kill(file.pid, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(EmbeddedError::io("stop the PostgreSQL of", data)(error.into())),
        }
        if wait_until(patience, || !file.is_alive(data)) {
            return Ok(());
        }
    }
    Err(EmbeddedError::StillInUse {
        data: data.to_path_buf(),
        shared_memory: file.shared_memory.unwrap_or_default(),
    })
}

/// Backends that lost their parent end by themselves, but until then they may still write.
fn wait_for_orphans(file: &PidFile, data: &Path) -> Result<(), EmbeddedError> {
    let Some(shared_memory) = file.shared_memory else {
        return Ok(());
    };
    let is_free = || {
        let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        attached(&table, shared_memory) == 0
    };
    if wait_until(ORPHANS, is_free) {
        return Ok(());
    }
    Err(EmbeddedError::StillInUse {
        data: data.to_path_buf(),
        shared_memory,
    })
}

/// How many processes are attached to a segment, by `/proc/sysvipc/shm` (columns: key, id, mode, size, creator, last,
/// attached, …).
fn attached(table: &str, shared_memory: u64) -> u64 {
    let number = |row: &str, column| {
        row.split_whitespace()
            .nth(column)
            .and_then(|text| text.parse::<u64>().ok())
    };
    table
        .lines()
        .find(|row| number(row, 1) == Some(shared_memory))
        .and_then(|row| number(row, 6))
        .unwrap_or(0)
}

fn is_taken(pid: Pid) -> bool {
    kill(pid, None) != Err(Errno::ESRCH)
}

pub(super) fn wait_until(patience: Duration, condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

fn remove(path: &Path) -> Result<(), EmbeddedError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_is_read_at_every_stage_of_a_start() {
        let whole = "412\n/d/data\n1780000000\n5432\n/d/run\n\n  5432001   98304\nready   \n";
        let file = PidFile::parse(whole).expect("a whole file");
        assert_eq!(file.pid, Pid::from_raw(412));
        assert_eq!(file.socket_folder, Some(PathBuf::from("/d/run")));
        assert_eq!(file.shared_memory, Some(98304));
        assert!(file.is_ready);
        assert!(
            !PidFile::parse(&whole.replace("ready", "starting"))
                .expect("a starting server")
                .is_ready
        );
        assert_eq!(
            PidFile::parse("412\n/d/data")
                .expect("the first lines")
                .socket_folder,
            None
        );
        for broken in ["", "\n", "-1\n", "0\n", "x\n"] {
            assert_eq!(PidFile::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn the_number_of_attached_processes_is_read_from_the_kernel_table() {
        let table = "       key      shmid perms       size  cpid  lpid nattch   uid\n   5432001      98304   600         56   412   413      6   101\n";
        assert_eq!(attached(table, 98304), 6);
        assert_eq!(attached(table, 1), 0);
        assert_eq!(attached("", 98304), 0);
    }

    #[test]
    fn a_process_that_only_got_the_number_is_not_taken_for_postgres() {
        let own = format!("{}\n", std::process::id());
        let file = PidFile::parse(&own).expect("a pid file");
        assert!(!file.is_alive(Path::new("/nowhere")));
    }
}
