//! An object that is served, a file or a generated document: what is known of it, and how its bytes are read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::HeaderValue;

use super::numbers::numbers_of;
use super::peers::SharedDocument;
use super::synthetic;

/// Tells apart versions of one object, and different objects that happen to have the same number in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    check: u64,
    size_bytes: u64,
    modified_ns: i128,
}

/// An object as it was when last looked at.
#[derive(Debug)]
pub(crate) struct Object {
    /// Number in the cache.
    pub(crate) id: u64,
    pub(crate) version: Version,
    pub(crate) size_bytes: u64,
    /// Entity tag without its quotes. Always strong.
    pub(crate) tag: String,
    /// When it was last modified, in whole seconds since 1970; `None` for times that HTTP cannot express.
    pub(crate) modified_s: Option<u64>,
    pub(crate) content_type: HeaderValue,
    /// Its path as in a URL, by which other nodes know it; `None` if they do not.
    pub(crate) shared_name: Option<Box<str>>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Generated { number: u64 },
}

/// Why the bytes of an object could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ContentError {
    /// The file was changed, replaced or removed after it was looked at.
    #[error("the file changed while it was being read")]
    Changed,
    /// The system failed to read it.
    #[error("{0}")]
    Io(Arc<io::Error>),
}

impl From<io::Error> for ContentError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Self::Changed,
            _ => Self::Io(Arc::new(error)),
        }
    }
}

/// Last second that has a four-digit year, as HTTP dates do: the end of 9999.
const LAST_HTTP_SECOND: u64 = 253_402_300_799;

/// When generated contents were last modified: 1 October 1998, so that all origins agree.
const GENERATED_MODIFIED_S: u64 = 907_200_000;

impl Object {
    /// The file at `path`, without symbolic links, as `metadata` describes it.
    pub(crate) fn file(path: PathBuf, metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let (id, check) = numbers_of(path.as_os_str().as_bytes());
        let modified_ns = modified_ns(metadata);
        let size_bytes = metadata.len();
        let modified_s = u64::try_from(modified_ns.div_euclid(1_000_000_000)).ok();
        Self {
            id,
            version: Version { check, size_bytes, modified_ns },
            size_bytes,
            tag: format!("{size_bytes:x}-{modified_ns:x}"),
            modified_s: modified_s.filter(|&s| s <= LAST_HTTP_SECOND),
            content_type: content_type(&path),
            shared_name: None,
            place: Place::File(path),
        }
    }

    /// The generated document `number` of `size_bytes`, asked for by `path`.
    pub(crate) fn generated(path: &str, number: u64, size_bytes: u64) -> Self {
        Self {
            id: number,
            version: Version { check: number, size_bytes, modified_ns: 0 },
            size_bytes,
            tag: format!("{number:x}-{size_bytes:x}"),
            modified_s: Some(GENERATED_MODIFIED_S),
            content_type: content_type(Path::new(path)),
            shared_name: Some(path.into()),
            place: Place::Generated { number },
        }
    }

    /// Other nodes know it by this path, which is written as in a URL.
    pub(crate) fn shared_as(self, name: Option<String>) -> Self {
        Self { shared_name: name.map(String::into_boxed_str), ..self }
    }

    /// What other nodes are asked for, if they know it.
    pub(crate) fn shared(&self) -> Option<SharedDocument<'_>> {
        let name = self.shared_name.as_deref()?;
        Some(SharedDocument { name, size_bytes: self.size_bytes, modified_ns: self.version.modified_ns })
    }

    /// Opens the object for reading. This blocks.
    pub(crate) fn open(self: &Arc<Self>) -> Result<Reader, ContentError> {
        let file = match &self.place {
            Place::File(path) => Some(File::open(path)?),
            Place::Generated { .. } => None,
        };
        let reader = Reader { object: Arc::clone(self), file };
        reader.check()?;
        Ok(reader)
    }

    /// Reads all of it. This blocks.
    pub(crate) fn read_whole(self: &Arc<Self>) -> Result<Bytes, ContentError> {
        self.open()?.read(0, self.size_bytes)
    }
}

/// An object opened for reading.
#[derive(Debug)]
pub(crate) struct Reader {
    object: Arc<Object>,
    /// `None` for generated contents.
    file: Option<File>,
}

impl Reader {
    /// Whether reading may block, as it may for files.
    pub(crate) fn blocks(&self) -> bool {
        self.file.is_some()
    }

    /// Reads `length_bytes` from `offset_bytes` on. For a file this blocks. The caller asks only for bytes that the object
    /// has, and for no more than fit into memory.
    pub(crate) fn read(&self, offset_bytes: u64, length_bytes: u64) -> Result<Bytes, ContentError> {
        let length = usize::try_from(length_bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::OutOfMemory, "the file does not fit into memory"))?;
        let mut buffer = vec![0; length];
        match (&self.file, &self.object.place) {
            (Some(file), _) => file.read_exact_at(&mut buffer, offset_bytes)?,
            (None, &Place::Generated { number }) => synthetic::fill(number, offset_bytes, &mut buffer),
            (None, Place::File(_)) => return Err(ContentError::Changed),
        }
        // If someone wrote to the file meanwhile, the buffer may hold a mixture of old and new.
        self.check()?;
        Ok(Bytes::from(buffer))
    }

    /// Checks that the file has the same size and time of modification as when it was looked at.
    fn check(&self) -> Result<(), ContentError> {
        let Some(file) = &self.file else { return Ok(()) };
        let metadata = file.metadata()?;
        let version = &self.object.version;
        let same = metadata.is_file()
            && metadata.len() == version.size_bytes
            && modified_ns(&metadata) == version.modified_ns;
        if same { Ok(()) } else { Err(ContentError::Changed) }
    }
}

fn modified_ns(metadata: &std::fs::Metadata) -> i128 {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    // A duration's nanoseconds are far below the limit of i128.
    let signed = |d: std::time::Duration| i128::try_from(d.as_nanos()).unwrap_or(i128::MAX);
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => signed(after),
        Err(before) => -signed(before.duration()),
    }
}

fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream");
    HeaderValue::from_static(guess)
}

/// Now, in whole seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
