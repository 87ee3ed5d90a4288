//! The key that front-end and agents share.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// 32 secret bytes. Whoever has them can hand connections to agents and take over connections. The debug form
/// does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// Why a key cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits and nothing else; {what}")]
    Form {
        /// What is wrong. Nothing of the key is in it.
        what: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read the key file {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Others can access the file, or the group can write it.
    #[error(
        "the key file {} has mode {mode:03o}, so that others could read or replace it; `chmod 600` it, or 640 for a group",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file does not hold a key.
    #[error("the key file {} holds no key: {error}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: Box<KeyError>,
    },
}

/// Most bytes of a key file: the digits and some space around them.
const MOST_FILE_BYTES: u64 = 256;

/// Permissions that a key file must not give: any to others, writing to the group.
const EXPOSED: u32 = 0o027;

impl Key {
    /// The key with these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A new key from the system's random numbers.
    ///
    /// # Errors
    /// When the system provides none.
    pub fn generate() -> io::Result<Self> {
        random().map(Self)
    }

    /// Parses 64 hexadecimal digits, ignoring white space around them.
    ///
    /// # Errors
    /// When it is not.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim_ascii().as_bytes();
        if digits.len() != 64 {
            let what =
                if digits.len() < 64 { "there are fewer characters" } else { "there are more characters" };
            return Err(KeyError::Form { what });
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(KeyError::Form { what: "one of the characters is no such digit" });
            };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }

    /// Reads the key from a file, which only its owner, and at most its group, may read.
    ///
    /// # Errors
    /// When the file cannot be read, others can access it, or it holds no key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| KeyError::File { path: path.to_owned(), error };
        let file = File::open(path).map_err(failed)?;
        // Of the open file, because the path may lead elsewhere meanwhile.
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & EXPOSED != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(MOST_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        Self::parse(&text)
            .map_err(|error| KeyError::Contents { path: path.to_owned(), error: Box::new(error) })
    }

    /// The key as [`Key::parse`] reads it, for a file.
    #[must_use]
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// Derives a key for one purpose, from which neither this key nor that for another purpose can be
    /// computed.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Random bytes from the system, for keys, nonces and instance ids.
///
/// # Errors
/// When the system provides none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    // Small requests are answered completely; the loop handles an interrupting signal.
    for _ in 0..1000 {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if filled >= N {
            return Ok(bytes);
        }
    }
    Err(io::Error::other("the system gave no random numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_back() {
        let key = Key::generate().unwrap();
        assert_ne!(key, Key::generate().unwrap());
        let text = key.to_hex();
        assert_eq!(text.len(), 64);
        assert_eq!(Key::parse(&text).unwrap(), key);
        assert_eq!(Key::parse(&format!(" {}\n", text.to_uppercase())).unwrap(), key);
        for bad in
            ["", &text[1..], &format!("{text}0"), &format!("{}g", &text[1..]), &format!("{}é", &text[2..])]
        {
            let error = Key::parse(bad).unwrap_err();
            assert!(error.to_string().contains("64 hexadecimal digits"), "{error}");
        }
        assert_eq!(format!("{key:?}"), "Key(…)");
    }

    #[test]
    fn files_that_others_could_read_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let key = Key::generate().unwrap();
        std::fs::write(&path, format!("{}\n", key.to_hex())).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        for good in [0o600, 0o400, 0o640] {
            mode(good);
            assert_eq!(Key::load(&path).unwrap(), key);
        }
        for bad in [0o644, 0o660, 0o602, 0o601] {
            mode(bad);
            let error = Key::load(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:03o}")) && error.contains("chmod 600"), "{error}");
        }
        mode(0o600);
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(Key::load(&path), Err(KeyError::Contents { .. })));
        assert!(matches!(Key::load(&directory.path().join("none")), Err(KeyError::File { .. })));
    }
}
