//! This origin's memory, for other nodes.

use std::sync::{Arc, Weak};

use super::found::Found;
use super::peers::{OwnDocument, OwnMemory, SharedDocument};
use super::source::Source;
use super::store::Store;

/// It does not keep the origin alive.
#[derive(Debug)]
pub(crate) struct OriginMemory {
    source: Source,
    store: Weak<Store>,
}

impl OriginMemory {
    pub(crate) fn new(source: &Source, store: &Arc<Store>) -> Self {
        Self { source: source.clone(), store: Arc::downgrade(store) }
    }
}

impl OwnMemory for OriginMemory {
    fn document<'a>(&'a self, wanted: SharedDocument<'a>, held_only: bool) -> OwnDocument<'a> {
        Box::pin(async move {
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
        })
    }
}
