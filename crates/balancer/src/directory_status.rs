//! What others of this process may see of the directory of services.

use std::sync::Arc;

use plimsoll_directory::{AnnouncementCounts, DirectoryView};
use tokio::sync::watch;

/// The directory of services, as it is listened to.
#[derive(Debug)]
pub(crate) struct DirectoryStatus {
    pub(crate) view: watch::Receiver<Arc<DirectoryView>>,
    pub(crate) counts: Arc<AnnouncementCounts>,
}
