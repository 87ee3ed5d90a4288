//! A client that reads answers as they come.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits for bytes.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A client with one connection, which reads answers as they come.
pub struct RawClient(TcpStream);

impl RawClient {
    /// Connects from the node of the calling thread.
    ///
    /// # Errors
    /// When nothing answers there.
    pub fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Sends requests for these documents together, reads all answers, and returns the first head in lower case.
    ///
    /// # Errors
    /// When the connection ends, or an answer has another status than 200.
    pub fn ask(&mut self, paths: &[&String], size_bytes: usize) -> io::Result<String> {
        let text: String =
            paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
        self.0.write_all(text.as_bytes())?;
        let (mut found, mut heads, mut from) = (Vec::new(), Vec::new(), 0);
        let mut buffer = [0; 64 * 1024];
        while heads.len() < paths.len() {
            match found[from..].windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) if found.len() >= from + at + 4 + size_bytes => {
                    heads.push(String::from_utf8_lossy(&found[from..from + at + 2]).to_lowercase());
                    from += at + 4 + size_bytes;
                }
                _ => {
                    let count = self.0.read(&mut buffer)?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    found.extend_from_slice(&buffer[..count]);
                }
            }
        }
        if found.len() != from || !heads.iter().all(|head| head.starts_with("http/1.1 200")) {
            return Err(io::Error::other(format!("a wrong answer: {heads:?}")));
        }
        Ok(heads.swap_remove(0))
    }
}
