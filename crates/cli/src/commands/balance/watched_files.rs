//! Watches the files that a configuration names and that are to be read again when they change: those of TLS.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use plimsoll_config::Config;
use tokio::sync::mpsc;

use super::watch::{FileWatch, Stamp};

/// The files that are watched besides the configuration.
pub(super) fn watched_by(config: &Config) -> BTreeSet<PathBuf> {
    config.tls_files().into_iter().cloned().collect()
}

/// Watches of several files that report to one channel.
pub(super) struct WatchedFiles {
    changed: mpsc::Sender<()>,
    watches: BTreeMap<PathBuf, FileWatch>,
}

impl WatchedFiles {
    /// Of no file yet.
    pub(super) fn new(changed: mpsc::Sender<()>) -> Self {
        Self { changed, watches: BTreeMap::new() }
    }

    /// Watches these from now on, and no others. Each new one is reported once, as it may have changed before it was watched.
    pub(super) fn set(&mut self, files: &BTreeSet<PathBuf>) {
        self.watches.retain(|file, _| files.contains(file));
        for file in files {
            if self.watches.contains_key(file) {
                continue;
            }
            match FileWatch::start(file, Stamp::none(), self.changed.clone()) {
                Ok(watch) => drop(self.watches.insert(file.clone(), watch)),
                Err(error) => {
                    tracing::warn!("cannot watch {}: {error}; it is read again on reload", file.display());
                }
            }
        }
    }

    /// Watches the directories that lead to the files now; to be called after each change.
    pub(super) fn follow(&mut self) {
        for (file, watch) in &mut self.watches {
            if let Err(error) = watch.follow() {
                tracing::warn!("cannot watch {}: {error}", file.display());
            }
        }
    }
}
