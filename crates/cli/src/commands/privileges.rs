//! As whom the commands that serve run once they have started, and what they keep.

use std::path::Path;

use plimsoll_config::{Config, MechanismKind};
use plimsoll_datapath::privileges::{
    FileAccess, FileNeed, Identity, KeptWork, PrivilegeDrop, PrivilegeError, choose, provide,
};

use super::balance::watch;
use crate::error::CliError;

/// What a front-end needs of the file system after its start: for a reload, a rotation of logs, and the logs themselves.
pub(super) fn needs_of_front_end(config: &Config, file: &Path, watches: bool) -> Vec<FileNeed> {
    let mut needs = vec![FileNeed::new(file, FileAccess::Read, "the configuration")];
    let named = config.files.iter();
    needs.extend(
        named.map(|path| FileNeed::new(path, FileAccess::Read, "a file that the configuration names")),
    );
    if watches && let Ok(directories) = watch::directories(file) {
        let watched =
            |path| FileNeed::new(path, FileAccess::Read, "the watch on the configuration (--no-watch)");
        needs.extend(directories.into_iter().map(watched));
    }
    if let Some(path) = config.access_log.as_ref().and_then(|log| log.file.as_ref()) {
        needs.push(FileNeed::new(path, FileAccess::Append, "the access log"));
        // Where a log is moved away, its successor is made beside it. A user that was chosen by hand may do with a rotation
        // that makes the successor itself.
        let may_be_moved = path.metadata().map_or(true, |found| found.is_file());
        if config.user.is_none() && may_be_moved {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = parent.unwrap_or(Path::new("."));
            needs.push(FileNeed::new(directory, FileAccess::CreateIn, "a rotation of the access log"));
        }
    }
    let sockets = config.all_backends().filter_map(|backend| backend.at.socket());
    needs.extend(
        sockets.map(|path| FileNeed::new(&**path, FileAccess::ConnectLater, "the socket of a back-end")),
    );
    let log = config.decision_log.as_ref();
    needs.extend(log.map(|log| FileNeed::new(&log.directory, FileAccess::Fill, "the decision log")));
    needs
}

/// As whom a front-end goes on.
///
/// # Errors
/// Those of [`choose`].
pub(super) fn front_end(config: &Config, needs: &[FileNeed]) -> Result<Identity, PrivilegeError> {
    choose(config.user.as_deref(), needs)
}

/// What a front-end goes on to do.
pub(super) fn work_of(config: &Config) -> KeptWork {
    match config.mechanism {
        MechanismKind::Proxy => KeptWork::Proxy,
        MechanismKind::Direct => KeptWork::Distribute,
        MechanismKind::Handoff | MechanismKind::Auto => KeptWork::HandOff,
    }
}

/// Has this process go on as somebody, with what its work needs and no more. `option` names a user of the user's choice.
pub(super) fn give_away(
    privileges: PrivilegeDrop<'_>,
    needs: &[FileNeed],
    option: &str,
) -> Result<(), CliError> {
    if let Some(user) = privileges.identity.user() {
        provide(needs, user)?;
    }
    let left = privileges.apply()?;
    let is_plain = matches!(privileges.identity, Identity::Starter) && left.ends_with("without capabilities");
    // Nothing was given away.
    if !is_plain {
        tracing::info!("{left}");
    }
    if let Identity::Root { why: Some(why), .. } = privileges.identity {
        tracing::warn!("it does not become another user: {why}; change that, or choose a user by {option}");
    }
    Ok(())
}

/// Says why a reload was refused, and what to do where the front-end itself may not use a file that it is to use.
pub(super) fn tell_refused(text: &str, identity: &Identity) {
    tracing::error!("{text}");
    if let Some(user) = identity.user().filter(|_| text.contains("Permission denied")) {
        tracing::error!("it runs as {user} since its start; give that user access, or start it anew");
    }
}

/// What `check` says of it.
pub(super) fn text(identity: &Identity) -> String {
    match identity {
        Identity::Starter => "the one that starts it".to_owned(),
        Identity::User(user) => user.to_string(),
        Identity::Root { why: None, .. } => "root, with few capabilities".to_owned(),
        Identity::Root { why: Some(why), .. } => format!("root, with few capabilities: {why}"),
    }
}

impl From<PrivilegeError> for CliError {
    fn from(error: PrivilegeError) -> Self {
        match error {
            PrivilegeError::NoUser { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Whether the directory of the access log is there: the front-end does not make one.
///
/// # Errors
/// It is not.
pub(super) fn logs_have_a_place(config: &Config, file: &Path) -> Result<(), CliError> {
    let log = config.access_log.as_ref().and_then(|log| log.file.as_ref());
    let directory = log.and_then(|log| log.parent()).filter(|at| !at.as_os_str().is_empty() && !at.is_dir());
    match directory {
        None => Ok(()),
        Some(directory) => Err(CliError::Failed(format!(
            "{} is not good: access_log.file: there is no directory {}; make it, or name a file in another one",
            file.display(),
            directory.display()
        ))),
    }
}
