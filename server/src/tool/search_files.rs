//! `search_files`: lines that match a regular expression, in all files of the workspace that are not ignored.

mod lines;
mod walk;

use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::arguments::{PositiveInteger, decode, schema_of};
use super::blocking::run_blocking;
use super::sniff::{SNIFFED_BYTES, binary_kind};
use super::workspace::WorkspacePath;
use super::{
    Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, ToolProgress,
    Workspace, words,
};
use lines::{Found, LineSink};

/// How many lines are shown when the call does not say.
const DEFAULT_RESULTS: usize = 200;
/// How many lines one call can show at most.
const MOST_RESULTS: usize = 2_000;
/// The longest line that is searched, in bytes; a file with a longer one is searched up to there.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// Progress is reported each time after so many files.
const FILES_PER_REPORT: u64 = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The regular expression, in the syntax of the Rust crate `regex`; it is matched against single lines.
    pattern: String,
    /// The directory or file to search, relative to the root of the workspace. Left out: the whole workspace.
    path: Option<String>,
    /// Only files whose path below the searched directory matches, such as `*.rs`, `src/**/*.{css,html}` or `!*.lock`.
    glob: Option<String>,
    /// Whether `a` and `A` differ. Left out: true.
    case_sensitive: Option<bool>,
    /// How many matching lines to show at most, up to 2000. Left out: 200. The rest is counted.
    max_results: Option<PositiveInteger>,
}

/// The tool `search_files`.
pub struct SearchFiles {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl SearchFiles {
    /// The tool over a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let info = ToolInfo {
            name: "search_files".to_owned(),
            description: "Searches the text files of the workspace for lines that match a regular \
                          expression. Each result is one line, `path:line: text`, sorted by path. Files \
                          that .gitignore names are left out unless `path` names them or their directory; \
                          hidden files are searched, binary files and links are not."
                .to_owned(),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::ParallelSafe,
            mutating: false,
            exposure: Exposure::Full,
        };
        Self { info, workspace }
    }
}

impl Tool for SearchFiles {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        matcher(&arguments).map(drop)
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: Arguments = decode(&arguments)?;
            let workspace = Arc::clone(&self.workspace);
            let progress = Arc::clone(&context.progress);
            run_blocking(context, move |cancel| {
                search(&workspace, &arguments, progress.as_ref(), cancel)
            })
            .await
        })
    }
}

/// Matches single lines.
pub(crate) fn line_matcher(pattern: &str, case_sensitive: bool) -> Result<RegexMatcher, grep_regex::Error> {
    RegexMatcherBuilder::new()
        .case_insensitive(!case_sensitive)
        .crlf(true)
        .build(pattern)
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, ToolError> {
    line_matcher(&arguments.pattern, arguments.case_sensitive != Some(false)).map_err(|error| {
        ToolError::new(
            "invalid_pattern",
            format!(
                "The argument `pattern` is not a regular expression that can be searched for: \
                     {error}\nEscape what is meant literally with a backslash; matches over several lines \
                     are not possible."
            ),
        )
    })
}

/// The files to search, by a glob relative to the searched directory.
fn file_filter(glob: Option<&str>) -> Result<Override, ToolError> {
    let Some(glob) = glob.filter(|glob| !glob.is_empty()) else {
        return Ok(Override::empty());
    };
    // A directory stands for what is in it.
    let glob = if glob.ends_with('/') {
        format!("{glob}**")
    } else {
        glob.to_owned()
    };
    let mut builder = OverrideBuilder::new("/");
    builder
        .add(&glob)
        .and_then(|builder| builder.build())
        .map_err(|error| {
            ToolError::new(
                "invalid_pattern",
                format!(
                    "The argument `glob` is not a pattern for paths: {error}. A right one is `*.rs` or \
                     `src/**/*.css`."
                ),
            )
        })
}

/// One search while it goes on.
struct Search<'a> {
    workspace: &'a Workspace,
    matcher: RegexMatcher,
    searcher: Searcher,
    progress: &'a dyn ToolProgress,
    cancel: &'a CancellationToken,
    found: Found,
    files: u64,
    skipped: u64,
}

fn search(
    workspace: &Workspace,
    arguments: &Arguments,
    progress: &dyn ToolProgress,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let matcher = matcher(arguments)?;
    let filter = file_filter(arguments.glob.as_deref())?;
    let path = workspace.resolve(arguments.path.as_deref().unwrap_or(""))?;
    // Links in the path itself are followed here, none are on the way below it.
    let target = workspace.real_path(&path)?;
    let wanted = arguments.max_results.map_or(DEFAULT_RESULTS, |count| {
        usize::try_from(count.get())
            .unwrap_or(MOST_RESULTS)
            .min(MOST_RESULTS)
    });
    let mut search = Search::new(workspace, matcher, wanted, progress, cancel);
    if workspace.metadata(&target)?.is_dir() {
        walk::files(workspace, &target, |below, file| {
            if cancel.is_cancelled() {
                return ControlFlow::Break(());
            }
            match file {
                Ok(path) if !filter.matched(below, false).is_ignore() => search.one_file(&path),
                Ok(_) => {}
                Err(reason) => search.skip(&words::name(below.as_os_str()), &reason),
            }
            ControlFlow::Continue(())
        });
    } else {
        // Asked for by name: why it cannot be read is the answer.
        workspace.open_file(&target)?;
        search.one_file(&target);
    }
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    Ok(ToolOutput {
        text: search.into_text(),
        media_type: "text/plain".to_owned(),
        exit_code: None,
    })
}

impl<'a> Search<'a> {
    fn new(
        workspace: &'a Workspace,
        matcher: RegexMatcher,
        wanted: usize,
        progress: &'a dyn ToolProgress,
        cancel: &'a CancellationToken,
    ) -> Self {
        let searcher = SearcherBuilder::new()
            // The same as the matcher's: `$` stands before CRLF too.
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE))
            .build();
        Self {
            workspace,
            matcher,
            searcher,
            progress,
            cancel,
            found: Found::new(wanted),
            files: 0,
            skipped: 0,
        }
    }

    fn one_file(&mut self, path: &WorkspacePath) {
        let mut file = match self.workspace.open_file(path) {
            Ok(opened) => opened.file,
            Err(error) => return self.skip(&path.to_string(), &error.message),
        };
        let mut head = Vec::with_capacity(SNIFFED_BYTES);
        if let Err(error) = (&mut file).take(SNIFFED_BYTES as u64).read_to_end(&mut head) {
            return self.skip(&path.to_string(), &error.to_string());
        }
        if binary_kind(&head, path.as_path()).is_some() {
            return;
        }
        let shown_path = path.to_string();
        let mut sink = LineSink::new(&self.matcher, &shown_path, &mut self.found, self.cancel);
        let content = lines::UntilCancelled::new(Cursor::new(head).chain(file), self.cancel);
        let result = self.searcher.search_reader(&self.matcher, content, &mut sink);
        let met_binary = sink.met_binary();
        match result {
            Ok(()) if met_binary => {
                self.note(&format!(
                    "{shown_path} was searched up to its first NUL byte only"
                ));
            }
            Ok(()) => {}
            Err(_) if self.cancel.is_cancelled() => return,
            Err(error) => self.note(&format!("{shown_path} was searched in part only: {error}")),
        }
        self.files += 1;
        if self.files.is_multiple_of(FILES_PER_REPORT) {
            self.progress.progress(self.files, None, Some("files searched"));
        }
    }

    fn skip(&mut self, what: &str, reason: &str) {
        self.skipped += 1;
        self.note(&format!("skipped {what}: {reason}"));
    }

    fn note(&self, line: &str) {
        self.progress.log(&format!("{line}\n"));
    }

    /// The lines that were found and what there is beside them.
    fn into_text(self) -> String {
        let Self {
            found,
            files,
            skipped,
            ..
        } = self;
        let searched = format!("{files} {} searched", words::plural(files, "file", "files"));
        let skipped = match skipped {
            0 => String::new(),
            count => format!("; {count} could not be read, the log says why"),
        };
        let (mut text, shown, rest) = found.into_parts();
        if shown == 0 && rest == 0 {
            return format!("[No line matches; {searched}{skipped}.]\n");
        }
        if rest > 0 {
            text.push_str(&format!(
                "[{shown} of {} matching lines shown; {searched}{skipped}. Narrow the search with `path`, \
                 `glob` or a more exact pattern.]\n",
                shown + rest
            ));
        } else {
            text.push_str(&format!(
                "[{shown} matching {}; {searched}{skipped}.]\n",
                words::plural(shown, "line", "lines")
            ));
        }
        text
    }
}

/// The part of `path` below `directory`, which is empty for the root.
fn below<'a>(path: &'a Path, directory: &Path) -> &'a Path {
    path.strip_prefix(directory).unwrap_or(path)
}

#[cfg(test)]
mod tests;
