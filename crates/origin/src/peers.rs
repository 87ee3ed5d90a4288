//! Cooperative caching: other nodes' memory, which is asked before the disk.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

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
    fn attach(&self, memory: Arc<dyn OwnMemory>);

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

/// What a node is asked for ends in this.
pub type OwnDocument<'a> = Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>>;

/// An origin's memory, as other nodes ask for it.
pub trait OwnMemory: fmt::Debug + Send + Sync {
    /// The document, if it is the same here. It is read from the disk if need be, unless `held_only`; other nodes are never
    /// asked for it.
    fn document<'a>(&'a self, wanted: SharedDocument<'a>, held_only: bool) -> OwnDocument<'a>;
}
