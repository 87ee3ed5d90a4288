//! A client that asks for one resource again and again and counts what comes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use hyper::Uri;

use crate::error::CliError;

/// No answer within this time is a failure.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a response's head.
const MOST_HEAD_BYTES: usize = 64 << 10;

/// Where a resource is.
#[derive(Debug, Clone)]
pub(super) struct MeasuredUrl {
    url: String,
    authority: String,
    path: String,
    address: SocketAddr,
}

impl MeasuredUrl {
    /// Reads a URL and looks its host up.
    ///
    /// # Errors
    /// When it is not an `http` URL, or the host has no address.
    pub(super) fn read(url: &str) -> Result<Self, CliError> {
        let wrong =
            |why: &str| CliError::Usage(format!("`{url}`: {why}, such as http://127.0.0.1:8080/page"));
        let uri: Uri = url.parse().map_err(|_| wrong("expected a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong(
                    "only http can be measured, as TLS would count too; name the server's http address",
                ));
            }
            _ => return Err(wrong("expected a URL that begins with http://")),
        }
        let authority = uri.authority().ok_or_else(|| wrong("there is no host; expected a URL"))?;
        let host = authority.host().trim_matches(['[', ']']);
        let address = (host, authority.port_u16().unwrap_or(80))
            .to_socket_addrs()
            .ok()
            .and_then(|mut all| all.next())
            .ok_or_else(|| CliError::Failed(format!("`{host}` has no address; name a host that has one")))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { url: url.to_owned(), authority: authority.to_string(), path, address })
    }

    /// As the user wrote it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether both are on the same server.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.address == other.address
    }

    fn request(&self, keeps: bool) -> Vec<u8> {
        let connection = if keeps { "keep-alive" } else { "close" };
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: plimsoll-measure\r\nAccept: */*\r\nConnection: {connection}\r\n\r\n",
            self.path, self.authority
        )
        .into_bytes()
    }

    fn failed(&self, why: &str) -> CliError {
        CliError::Failed(format!("{}: {why}", self.url))
    }
}

/// A connection to a server, and what has been read from it.
pub(super) struct MeasuringConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl MeasuringConnection {
    /// Connects.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn open(to: &MeasuredUrl) -> Result<Self, CliError> {
        let open = || {
            let stream = TcpStream::connect_timeout(&to.address, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok::<_, std::io::Error>(stream)
        };
        let stream = open().map_err(|e| to.failed(&format!("cannot connect to {}: {e}", to.address)))?;
        Ok(Self { stream, buffer: vec![0; MOST_HEAD_BYTES] })
    }

    /// Asks for the resource and returns the bytes of its body. Without `keeps` the server closes the connection, and this waits
    /// for it.
    ///
    /// # Errors
    /// When the answer is no 200 with a length, or does not come.
    pub(super) fn get(&mut self, what: &MeasuredUrl, keeps: bool) -> Result<u64, CliError> {
        self.stream.write_all(&what.request(keeps)).map_err(|e| what.failed(&e.to_string()))?;
        let (body_bytes, read_bytes) = self.head(what, keeps)?;
        let mut left_bytes = body_bytes
            .checked_sub(read_bytes)
            .ok_or_else(|| what.failed("the server sent more than the length that it announced"))?;
        while left_bytes > 0 {
            let most = self.buffer.len().min(usize::try_from(left_bytes).unwrap_or(usize::MAX));
            left_bytes -= self.read(what, 0, most)? as u64;
        }
        if !keeps && self.stream.read(&mut self.buffer).is_ok_and(|bytes| bytes > 0) {
            return Err(what.failed("the server sent more than the length that it announced"));
        }
        Ok(body_bytes)
    }

    fn read(&mut self, what: &MeasuredUrl, from: usize, to: usize) -> Result<usize, CliError> {
        match self.stream.read(&mut self.buffer[from..to]) {
            Ok(0) => Err(what.failed("the server closed the connection before its answer was complete")),
            Ok(bytes) => Ok(bytes),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                Err(what.failed(&format!("no answer within {} s", PATIENCE.as_secs())))
            }
            Err(e) => Err(what.failed(&e.to_string())),
        }
    }

    /// Reads a head: the length of the body, and how much of it came with the head.
    fn head(&mut self, what: &MeasuredUrl, keeps: bool) -> Result<(u64, u64), CliError> {
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                return Err(what.failed("the head of the response is longer than 64 KiB"));
            }
            filled += self.read(what, filled, self.buffer.len())?;
            let mut headers = [httparse::EMPTY_HEADER; 100];
            let mut response = httparse::Response::new(&mut headers);
            match response.parse(&self.buffer[..filled]) {
                Ok(httparse::Status::Complete(head_bytes)) => {
                    let body_bytes = body_bytes(&response, keeps).map_err(|why| what.failed(&why))?;
                    return Ok((body_bytes, (filled - head_bytes) as u64));
                }
                Ok(httparse::Status::Partial) => {}
                Err(e) => return Err(what.failed(&format!("the server does not answer in HTTP: {e}"))),
            }
        }
    }
}

/// The length of a body that can be measured.
fn body_bytes(response: &httparse::Response<'_, '_>, keeps: bool) -> Result<u64, String> {
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    match response.code {
        Some(200) => {}
        Some(code @ 300..=399) => {
            let to = header("location").map_or_else(String::new, |to| format!(" to {to}"));
            return Err(format!("the server redirects with {code}{to}; measure what it answers itself"));
        }
        code => {
            let code = code.unwrap_or_default();
            return Err(format!("the server answers {code}; name a resource that it answers with 200"));
        }
    }
    if keeps && (header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))) {
        return Err(
            "the server keeps no connections, so that their cost cannot be told from that of requests; \
                    have it keep them (keep-alive) while you measure"
                .to_owned(),
        );
    }
    header("content-length").and_then(|length| length.parse().ok()).ok_or_else(|| {
        "the answer has no Content-Length; name a resource of known length, such as a file".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(head: &str) -> String {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut headers);
        assert!(response.parse(head.as_bytes()).unwrap().is_complete());
        body_bytes(&response, true).unwrap_err()
    }

    #[test]
    fn answers_that_cannot_be_measured_are_refused() {
        assert!(refused("HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n").contains("redirects with 301 to /x"));
        assert!(refused("HTTP/1.1 404 Not Found\r\n\r\n").contains("answers 404"));
        assert!(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").contains("Content-Length"));
        assert!(
            refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
                .contains("keep-alive")
        );
    }

    #[test]
    fn only_http_is_measured() {
        for (url, part) in [
            ("https://127.0.0.1/", "only http"),
            ("ftp://127.0.0.1/", "http://"),
            ("/page", "http://"),
            ("http://", "URL"),
        ] {
            let error = MeasuredUrl::read(url).unwrap_err();
            assert!(
                matches!(error, CliError::Usage(_)) && error.to_string().contains(part),
                "{url}: {error}"
            );
        }
        let good = MeasuredUrl::read("http://[::1]:81/a?b=c").unwrap();
        assert_eq!((good.address, &*good.path), ("[::1]:81".parse().unwrap(), "/a?b=c"));
        assert!(!good.is_beside(&MeasuredUrl::read("http://127.0.0.1:81").unwrap()));
    }
}
