//! What an origin serves: files or generated contents.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::OriginError;
use super::files::Files;
use super::found::{Found, PathRefusal};
use super::object::Object;
use super::synthetic::Synthetic;

/// What an origin serves: files or generated contents. Clones share what is remembered of files.
#[derive(Debug, Clone)]
pub struct Source(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Files(Arc<Files>),
    Synthetic(Arc<Synthetic>),
}

impl Source {
    /// The files below the directory `root`. Symbolic links that lead out of it are followed only if
    /// `follow_symlinks`.
    ///
    /// # Errors
    /// When `root` is not a directory that can be read.
    pub fn files(root: impl Into<PathBuf>, follow_symlinks: bool) -> Result<Self, OriginError> {
        let path = root.into();
        match Files::open(&path, follow_symlinks) {
            Ok(files) => Ok(Self(Kind::Files(Arc::new(files)))),
            Err(error) => Err(OriginError::Root { path, error }),
        }
    }

    /// Generated contents.
    #[must_use]
    pub fn synthetic(synthetic: Synthetic) -> Self {
        Self(Kind::Synthetic(Arc::new(synthetic)))
    }

    /// Finds what a request for `path_and_query` asks for.
    pub(crate) async fn find(&self, path_and_query: &str) -> Result<Found, PathRefusal> {
        match &self.0 {
            Kind::Files(files) => files.find(path_of(path_and_query)).await,
            Kind::Synthetic(synthetic) => {
                let document = synthetic.find(path_and_query).ok_or(PathRefusal::Missing)?;
                let object = Object::generated(path_of(path_and_query), document.number, document.size_bytes);
                Ok(Found::Object(Arc::new(object.shared_as(Some(path_and_query.to_owned())))))
            }
        }
    }

    /// Forgets what was found at a path, because the file there turned out to have changed.
    pub(crate) fn forget(&self, path_and_query: &str) {
        if let Kind::Files(files) = &self.0 {
            files.forget(path_of(path_and_query));
        }
    }
}

fn path_of(path_and_query: &str) -> &str {
    path_and_query.split('?').next().unwrap_or_default()
}
