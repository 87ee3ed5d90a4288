//! Files below a directory, found by the path of a URL.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use plimsoll_cache::{Cache, Lru};
use tokio::time::Instant;

use super::found::{Found, PathRefusal};
use super::numbers::numbers_of;
use super::object::Object;

/// How long the result of a look at a file is used again; the next request after that looks anew.
const FRESH: Duration = Duration::from_secs(1);

/// Most paths that are remembered.
const MOST_KNOWN: u64 = 32_768;
/// Longest path that is remembered, in bytes. So the paths take at most 16 MiB.
const LONGEST_KNOWN_BYTES: usize = 512;

/// What is escaped in a path: all but the unreserved characters (RFC 3986, section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The files below a directory.
#[derive(Debug)]
pub(crate) struct Files {
    /// The directory, with symbolic links resolved.
    root: PathBuf,
    follow_symlinks: bool,
    known: Mutex<Known>,
}

/// The files found lately. Each is kept under a hash of its path, as the path stands in the URL.
struct Known {
    /// Decides which paths to forget. Each path counts as one byte, so the capacity is a number of paths.
    order: Lru,
    /// Looked up only, never iterated.
    files: HashMap<u64, KnownFile, FixedState>,
    evicted: Vec<u64>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct KnownFile {
    path: Box<str>,
    object: Arc<Object>,
    looked_at: Instant,
}

impl Files {
    /// The files below `root`, which must be a directory that can be listed.
    pub(crate) fn open(root: &Path, follow_symlinks: bool) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        fs::read_dir(&root)?;
        let known =
            Known { order: Lru::new(MOST_KNOWN, None), files: HashMap::default(), evicted: Vec::new() };
        Ok(Self { root, follow_symlinks, known: Mutex::new(known) })
    }

    /// Finds the file at `path`, which is written as in a URL.
    pub(crate) async fn find(self: &Arc<Self>, path: &str) -> Result<Found, PathRefusal> {
        if let Some(object) = self.known().get(path) {
            return Ok(Found::Object(object));
        }
        let (files, owned) = (Arc::clone(self), path.to_owned());
        let looked = tokio::task::spawn_blocking(move || files.look(&owned)).await;
        let found = looked.unwrap_or_else(|error| Err(PathRefusal::Failed(io::Error::other(error))))?;
        if let Found::Object(object) = &found {
            self.known().put(path, object);
        }
        Ok(found)
    }

    /// Forgets what was found at the path, so that the next request looks again.
    pub(crate) fn forget(&self, path: &str) {
        self.known().remove(path);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for the file in the file system. This blocks.
    fn look(&self, path: &str) -> Result<Found, PathRefusal> {
        let wanted = Wanted::parse(path)?;
        let mut place = self.root.clone();
        place.extend(wanted.segments.iter().map(|segment| OsStr::from_bytes(segment)));
        let (mut place, mut metadata) = self.real(&place)?;
        if metadata.is_dir() {
            if !wanted.directory {
                return Ok(Found::Redirect(wanted.as_directory()));
            }
            (place, metadata) = self.real(&place.join("index.html"))?;
        } else if wanted.directory {
            return Err(PathRefusal::Missing);
        }
        // Opening anything else, such as a pipe, could wait for ever.
        if !metadata.is_file() {
            return Err(PathRefusal::Missing);
        }
        let name = self.shared_name(&place);
        Ok(Found::Object(Arc::new(Object::file(place, &metadata).shared_as(name))))
    }

    /// The path by which other nodes know the file: below the root, without links. None for what lies outside.
    fn shared_name(&self, place: &Path) -> Option<String> {
        let below = place.strip_prefix(&self.root).ok()?;
        let mut name = String::new();
        for part in below {
            name.push('/');
            name.extend(percent_encode(part.as_bytes(), ESCAPED));
        }
        Some(name)
    }

    /// Resolves the symbolic links in a path. Returns the result with the metadata of what lies there, unless that is
    /// outside of the root and must not be served.
    ///
    /// Between this check and the opening of the file, someone who may write below the root could put a link in place
    /// of a directory. Whoever may write there is trusted.
    fn real(&self, place: &Path) -> Result<(PathBuf, fs::Metadata), PathRefusal> {
        let place = fs::canonicalize(place).map_err(refusal)?;
        if !self.follow_symlinks && !place.starts_with(&self.root) {
            return Err(PathRefusal::Missing);
        }
        let metadata = fs::symlink_metadata(&place).map_err(refusal)?;
        Ok((place, metadata))
    }
}

fn refusal(error: io::Error) -> PathRefusal {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::InvalidFilename | Kind::InvalidInput => {
            PathRefusal::Missing
        }
        Kind::PermissionDenied => PathRefusal::Forbidden,
        // A loop of symbolic links has no kind that is stable.
        _ if error.raw_os_error() == Some(ELOOP) => PathRefusal::Missing,
        _ => PathRefusal::Failed(error),
    }
}

/// The error "too many symbolic links" of Linux.
const ELOOP: i32 = 40;

/// The path of a request, divided into decoded segments.
#[derive(Debug)]
struct Wanted {
    segments: Vec<Vec<u8>>,
    /// Whether it names a directory: it ends with a slash or with `/.`.
    directory: bool,
}

impl Wanted {
    /// Divides the path before it decodes the segments, so that an escaped slash divides nothing. Skips empty segments
    /// and `.`; refuses `..`.
    fn parse(path: &str) -> Result<Self, PathRefusal> {
        let rest = path.strip_prefix('/').ok_or(PathRefusal::BadPath)?;
        let mut segments = Vec::new();
        let mut directory = true;
        for raw in rest.split('/') {
            let segment = decode(raw)?;
            directory = matches!(segment.as_slice(), b"" | b".");
            match segment.as_slice() {
                b"" | b"." => {}
                b".." => return Err(PathRefusal::BadPath),
                name if name.contains(&0) => return Err(PathRefusal::BadPath),
                // No file name has a slash in it.
                name if name.contains(&b'/') => return Err(PathRefusal::Missing),
                _ => segments.push(segment),
            }
        }
        Ok(Self { segments, directory })
    }

    /// The path with a slash at its end, escaped as in a URL. It begins with one slash even if the request had two: two
    /// would name another host.
    fn as_directory(&self) -> String {
        let mut path = String::from("/");
        for segment in &self.segments {
            path.extend(percent_encode(segment, ESCAPED));
            path.push('/');
        }
        path
    }
}

fn decode(raw: &str) -> Result<Vec<u8>, PathRefusal> {
    let bytes = raw.as_bytes();
    let escapes_are_whole = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !escapes_are_whole {
        return Err(PathRefusal::BadPath);
    }
    Ok(percent_decode(bytes).collect())
}

impl Known {
    fn get(&mut self, path: &str) -> Option<Arc<Object>> {
        let id = numbers_of(path.as_bytes()).0;
        let file = self.files.get(&id)?;
        if &*file.path != path || file.looked_at.elapsed() >= FRESH {
            return None;
        }
        self.order.access(id);
        Some(Arc::clone(&file.object))
    }

    fn put(&mut self, path: &str, object: &Arc<Object>) {
        if path.len() > LONGEST_KNOWN_BYTES {
            return;
        }
        let id = numbers_of(path.as_bytes()).0;
        self.order.request(id, 1, &mut self.evicted);
        for old in self.evicted.drain(..) {
            self.files.remove(&old);
        }
        let file = KnownFile { path: path.into(), object: Arc::clone(object), looked_at: Instant::now() };
        self.files.insert(id, file);
    }

    fn remove(&mut self, path: &str) {
        let id = numbers_of(path.as_bytes()).0;
        self.order.remove(id);
        self.files.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Result<(Vec<String>, bool), String> {
        match Wanted::parse(path) {
            Ok(wanted) => {
                let texts = wanted.segments.into_iter().map(|s| String::from_utf8_lossy(&s).into_owned());
                Ok((texts.collect(), wanted.directory))
            }
            Err(refusal) => Err(format!("{refusal:?}")),
        }
    }

    #[test]
    fn paths_are_divided_before_they_are_decoded() {
        let parts =
            |list: &[&str], directory| Ok((list.iter().map(|s| (*s).to_owned()).collect(), directory));
        assert_eq!(segments("/"), parts(&[], true));
        assert_eq!(segments("/a/b.html"), parts(&["a", "b.html"], false));
        assert_eq!(segments("//a/./b/"), parts(&["a", "b"], true));
        assert_eq!(segments("/a%20b/%C3%A4"), parts(&["a b", "ä"], false));
        assert_eq!(segments("/..."), parts(&["..."], false));
        for bad in ["", "a", "*", "/..", "/a/../b", "/%2e%2E/x", "/%00", "/a%0", "/a%zz", "/%"] {
            assert_eq!(segments(bad), Err("BadPath".into()), "{bad}");
        }
        for missing in ["/a%2fb", "/..%2F..%2Fetc"] {
            assert_eq!(segments(missing), Err("Missing".into()), "{missing}");
        }
    }

    #[test]
    fn the_redirect_names_this_host() {
        let path = |path| Wanted::parse(path).unwrap().as_directory();
        assert_eq!(path("//elsewhere.example"), "/elsewhere.example/");
        assert_eq!(path("/a%20b/c%0D%0A"), "/a%20b/c%0D%0A/");
    }

    #[tokio::test]
    async fn what_is_known_is_bounded() {
        let mut known = Known { order: Lru::new(3, None), files: HashMap::default(), evicted: Vec::new() };
        let object = Arc::new(Object::generated("/", 0, 0));
        for n in 0..10 {
            known.put(&format!("/{n}"), &object);
            known.put(&format!("/{n}"), &object);
        }
        assert_eq!((known.order.len(), known.files.len()), (3, 3));
        assert!(known.get("/9").is_some());
        assert!(known.get("/6").is_none());
        known.remove("/9");
        assert!(known.get("/9").is_none());
        known.put(&"/x".repeat(1000), &object);
        assert_eq!(known.files.len(), 2);
    }
}
