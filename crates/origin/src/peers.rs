//! Cooperative caching: other nodes' memory, which is asked before the disk.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use bytes::Bytes;

use super::found::Found;
use super::source::Source;
use super::store::Store;

/// A document, as nodes that serve the same documents tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedDocument<'a> {
    /// Its path, as in a URL.
    pub name: &'a str,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it was last modified, in ns since 1970.
    pub modified_ns: i128,
}

/// What other nodes are asked for ends in this.
pub type PeerFetch = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// The memory of other nodes. An origin tells it what its own memory gets and loses.
pub trait PeerMemory: fmt::Debug + Send + Sync {
    /// Called once, by the origin: its own memory, for the others.
    fn attach(&self, memory: OriginMemory);

    /// The document from another node; `None` if it is to be read from the disk. It must end in bounded time.
    fn fetch(&self, document: SharedDocument<'_>) -> PeerFetch;

    /// Whether a document that another node has sent is put into memory here too.
    fn replicates(&self) -> bool;

    /// The document was read from the disk here.
    fn read(&self, document: SharedDocument<'_>, bytes: &Bytes);

    /// The document of this name is in memory here from now on.
    fn held(&self, name: &str);

    /// The document of this name is in memory here no more.
    fn dropped(&self, name: &str);
}

/// An origin's memory, as other nodes ask for it. It does not keep the origin alive.
#[derive(Debug, Clone)]
pub struct OriginMemory {
    source: Source,
    store: Weak<Store>,
}

impl OriginMemory {
    pub(crate) fn new(source: &Source, store: &Arc<Store>) -> Self {
        Self { source: source.clone(), store: Arc::downgrade(store) }
    }

    /// The document, if it is the same here. It is read from the disk if need be, unless `held_only`; other nodes are never
    /// asked for it.
    pub async fn document(&self, wanted: SharedDocument<'_>, held_only: bool) -> Option<Bytes> {
        let Ok(Found::Object(object)) = self.source.find(wanted.name).await else { return None };
        let store = self.store.upgrade()?;
        if object.shared() != Some(wanted) || !store.takes(object.size_bytes) {
            return None;
        }
        match store.hit(&object) {
            Some(bytes) => Some(bytes),
            None if held_only => None,
            None => Some(store.fetch_here(&object).await.ok()?.0),
        }
    }
}
