//! `/decisions`: the state of the decision log.

use std::path::Path;
use std::sync::Arc;

use http::StatusCode;
use plimsoll_config::WhenFull;
use serde::Serialize;

use crate::backend_pool::BackendPool;
use crate::dispatch::{DataPart, LogState};
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Refused, Reply, json};

/// Files that are listed; a directory holds as many as the configuration says.
const MOST_FILES: usize = 10_000;

#[derive(Serialize)]
struct Shown {
    enabled: bool,
    directory: Option<String>,
    file_bytes_max: Option<u64>,
    files_max: Option<usize>,
    when_full: Option<&'static str>,
    stopped: bool,
    bytes: u64,
    files: Vec<LogFile>,
    dropped_chunks: u64,
    errors: u64,
    last_error: Option<String>,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct LogFile {
    name: String,
    bytes: u64,
}

/// The state of the log.
pub(super) async fn state(shared: Arc<FrontEndShared>) -> Result<Reply, Refused> {
    // The directory may be on a slow disk; health checks share this thread.
    off_thread(move || json(StatusCode::OK, &look(&shared))).await
}

/// Writes what has been gathered, and tells the state afterwards.
pub(super) async fn flush(shared: Arc<FrontEndShared>) -> Result<Reply, Refused> {
    let written = off_thread(move || sync_logs(&shared).then(|| json(StatusCode::OK, &look(&shared))));
    written.await?.ok_or_else(|| {
        let remedy = "configure [decision_log] with its directory, and reload";
        Refused::new(StatusCode::CONFLICT, "there is no decision log", remedy)
    })
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Refused::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            error.to_string(),
            "look at the messages of the front-end",
        )
    })
}

fn look(shared: &FrontEndShared) -> Shown {
    let config = shared.config.load_full();
    let log = config.decision_log.as_ref();
    let mut state = LogState::default();
    let pools = shared.pools();
    for part in pools.iter().flat_map(|pool| pool.dispatch.parts()) {
        state.add(part.inspect(|i| i.log_state()));
    }
    let (files, error) = match log.map(|log| files_of_all(&pools, &log.directory)) {
        None => (Vec::new(), None),
        Some(Ok(files)) => (files, None),
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
    };
    Shown {
        enabled: log.is_some(),
        directory: log.map(|log| log.directory.display().to_string()),
        file_bytes_max: log.map(|log| log.file_bytes),
        files_max: log.map(|log| log.files),
        when_full: log.map(|log| match log.when_full {
            WhenFull::Rotate => "rotate",
            WhenFull::Stop => "stop",
        }),
        stopped: state.stopped,
        bytes: files.iter().map(|file| file.bytes).sum(),
        files,
        dropped_chunks: state.dropped_chunks,
        errors: state.errors,
        last_error: state.last_error.or(error),
    }
}

/// Writes what all pools have gathered; false where there is no log.
fn sync_logs(shared: &FrontEndShared) -> bool {
    // Each of them.
    shared.pools().iter().filter(|pool| pool.dispatch.sync_log()).count() > 0
}

/// The files of all pools, those beside the first one each in a directory of its own.
fn files_of_all(pools: &[Arc<BackendPool>], directory: &Path) -> std::io::Result<Vec<LogFile>> {
    let mut all = Vec::new();
    for pool in pools.iter().filter(|pool| !pool.is_leaving()) {
        let config = pool.config.load();
        let Some(log) = &config.decision_log else { continue };
        let within = log.directory.strip_prefix(directory).unwrap_or(Path::new(""));
        let named = |file: LogFile| LogFile { name: within.join(file.name).display().to_string(), ..file };
        all.extend(files_of(pool.dispatch.parts().len(), &log.directory)?.into_iter().map(named));
    }
    Ok(all)
}

/// The files of all partitions, each of which has a directory where there are several.
fn files_of(parts: usize, directory: &Path) -> std::io::Result<Vec<LogFile>> {
    let count = u16::try_from(parts).unwrap_or(u16::MAX);
    let mut all = Vec::new();
    for number in 0..count {
        let own = DataPart { number, count }.log_directory(directory);
        let within = own.strip_prefix(directory).unwrap_or(Path::new("")).to_path_buf();
        let named = |file: LogFile| LogFile { name: within.join(file.name).display().to_string(), ..file };
        all.extend(files(&own)?.into_iter().map(named));
    }
    Ok(all)
}

fn files(directory: &Path) -> std::io::Result<Vec<LogFile>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(MOST_FILES) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("decisions-") && name.ends_with(".plog") {
            // One that was rotated away meanwhile is not there any more.
            if let Ok(data) = entry.metadata() {
                found.push(LogFile { name, bytes: data.len() });
            }
        }
    }
    found.sort();
    Ok(found)
}
