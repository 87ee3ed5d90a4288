//! A client that asks for one resource again and again and counts what comes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use hyper::Uri;

use crate::error::CliError;

/// No answer within this time is a failure.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a response's head.
const MOST_HEAD_BYTES: usize = 64 << 10;

/// Where a resource is.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredUrl {
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
    pub(crate) fn read(url: &str) -> Result<Self, CliError> {
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
        let addresses: Vec<SocketAddr> = (host, authority.port_u16().unwrap_or(80))
            .to_socket_addrs()
            .map_or_else(|_| Vec::new(), Iterator::collect);
        let address = reachable(&addresses)
            .ok_or_else(|| CliError::Failed(format!("`{host}` has no address; name a host that has one")))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { url: url.to_owned(), authority: authority.to_string(), path, address })
    }

    /// As the user wrote it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Its path and query.
    pub(crate) fn path(&self) -> &str {
        &self.path
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

/// The first of several addresses that accepts a connection, such as the IPv4 one of `localhost`; else the first.
fn reachable(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, PATIENCE).is_ok();
    let several = if addresses.len() > 1 { addresses } else { &[] };
    several.iter().find(accepts).or(addresses.first()).copied()
}

/// What a server has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MeasuredAnswer {
    /// The bytes of the body.
    pub(crate) body_bytes: u64,
    /// Whether the connection ends with it.
    pub(super) is_last: bool,
}

/// A connection to a server, and what has been read from it.
pub(crate) struct MeasuringConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
    deadline: Instant,
}

impl MeasuringConnection {
    /// Connects; nothing is waited for beyond the deadline.
    ///
    /// # Errors
    /// When that fails.
    pub(crate) fn open(to: &MeasuredUrl, deadline: Instant) -> Result<Self, CliError> {
        let span = PATIENCE.min(left(deadline)?);
        let open = || {
            let stream = TcpStream::connect_timeout(&to.address, span)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(span))?;
            stream.set_write_timeout(Some(span))?;
            Ok::<_, std::io::Error>(stream)
        };
        // Where the deadline is what ended it, that is the reason.
        let failed = |e| to.failed(&format!("cannot connect to {}: {e}", to.address));
        let stream = open().map_err(|e| left(deadline).err().unwrap_or_else(|| failed(e)))?;
        Ok(Self { stream, buffer: vec![0; MOST_HEAD_BYTES], deadline })
    }

    /// Asks for the resource, of at most so many bytes. Without `keeps` the server closes the connection, and this waits for it.
    ///
    /// # Errors
    /// When the answer is no 200 with a length, or does not come.
    pub(super) fn get(
        &mut self,
        what: &MeasuredUrl,
        keeps: bool,
        most_bytes: u64,
    ) -> Result<MeasuredAnswer, CliError> {
        self.stream.write_all(&what.request(keeps)).map_err(|e| what.failed(&e.to_string()))?;
        let (answer, read_bytes) = self.head(what, answer)?;
        if answer.body_bytes > most_bytes {
            return Err(what.failed(&format!(
                "the resource has {} bytes; name one of at most {most_bytes}",
                answer.body_bytes
            )));
        }
        let too_much = || what.failed("the server sent more than the length that it announced");
        let mut left_bytes = answer.body_bytes.checked_sub(read_bytes).ok_or_else(too_much)?;
        while left_bytes > 0 {
            let most = self.buffer.len().min(usize::try_from(left_bytes).unwrap_or(usize::MAX));
            left_bytes -= self.read(what, 0, most)? as u64;
        }
        if !keeps {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => {}
                Ok(_) => return Err(too_much()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    return Err(
                        what.failed("the server does not close a connection that it was asked to close")
                    );
                }
                // Some servers reset a connection instead.
                Err(_) => {}
            }
        }
        Ok(answer)
    }

    /// Asks for the resource and reads until the server closes the connection, so that the length need not be known. It asks as HTTP/1.0 does,
    /// so that the answer does not come in chunks.
    ///
    /// # Errors
    /// When the answer is no 200, is longer than `most_bytes`, or does not come.
    pub(crate) fn get_to_end(
        &mut self,
        what: &MeasuredUrl,
        most_bytes: u64,
    ) -> Result<MeasuredAnswer, CliError> {
        let request = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nUser-Agent: plimsoll-measure\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            what.path, what.authority
        );
        self.stream.write_all(request.as_bytes()).map_err(|e| what.failed(&e.to_string()))?;
        let (announced, mut body_bytes) = self.head(what, |response| {
            status(response)?;
            Ok(length(response))
        })?;
        while announced.is_none_or(|all| body_bytes < all) {
            let most = self.buffer.len();
            match self.read_some(what, 0, most)? {
                0 if announced.is_none() => break,
                0 => {
                    return Err(
                        what.failed("the server closed the connection before its answer was complete")
                    );
                }
                bytes => body_bytes += bytes as u64,
            }
            if body_bytes > most_bytes {
                return Err(what.failed(&format!(
                    "the answer is longer than {most_bytes} bytes; name another resource"
                )));
            }
        }
        Ok(MeasuredAnswer { body_bytes, is_last: true })
    }

    fn read(&mut self, what: &MeasuredUrl, from: usize, to: usize) -> Result<usize, CliError> {
        match self.read_some(what, from, to)? {
            0 => Err(what.failed("the server closed the connection before its answer was complete")),
            bytes => Ok(bytes),
        }
    }

    /// Reads what comes; 0 at the end.
    fn read_some(&mut self, what: &MeasuredUrl, from: usize, to: usize) -> Result<usize, CliError> {
        let left = left(self.deadline)?;
        if left < PATIENCE {
            self.stream.set_read_timeout(Some(left)).map_err(|e| what.failed(&e.to_string()))?;
        }
        match self.stream.read(&mut self.buffer[from..to]) {
            Ok(bytes) => Ok(bytes),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                Err(what.failed(&format!("no answer within {:.1} s", PATIENCE.min(left).as_secs_f64())))
            }
            Err(e) => Err(what.failed(&e.to_string())),
        }
    }

    /// Reads a head: what it says, and how many bytes of the body came with it.
    fn head<T>(
        &mut self,
        what: &MeasuredUrl,
        judge: impl Fn(&httparse::Response<'_, '_>) -> Result<T, String>,
    ) -> Result<(T, u64), CliError> {
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
                    let answer = judge(&response).map_err(|why| what.failed(&why))?;
                    return Ok((answer, (filled - head_bytes) as u64));
                }
                Ok(httparse::Status::Partial) => {}
                Err(e) => return Err(what.failed(&format!("the server does not answer in HTTP: {e}"))),
            }
        }
    }
}

/// The time left until the deadline.
///
/// # Errors
/// When there is none.
fn left(deadline: Instant) -> Result<Duration, CliError> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or_else(|| {
        CliError::Failed(
            "the measurement takes longer than --limit-s allows; give fewer --requests or more time"
                .to_owned(),
        )
    })
}

/// The text of a header.
fn header<'a>(response: &'a httparse::Response<'_, '_>, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(found.value).ok().map(str::trim)
}

/// The length that the answer announces.
fn length(response: &httparse::Response<'_, '_>) -> Option<u64> {
    header(response, "content-length").and_then(|length| length.parse().ok())
}

/// Refuses an answer that is no 200.
fn status(response: &httparse::Response<'_, '_>) -> Result<(), String> {
    match response.code {
        Some(200) => Ok(()),
        Some(code @ 300..=399) => {
            let to = header(response, "location").map_or_else(String::new, |to| format!(" to {to}"));
            Err(format!("the server redirects with {code}{to}; measure what it answers itself"))
        }
        code => {
            let code = code.unwrap_or_default();
            Err(format!("the server answers {code}; name a resource that it answers with 200"))
        }
    }
}

/// An answer that can be measured.
fn answer(response: &httparse::Response<'_, '_>) -> Result<MeasuredAnswer, String> {
    status(response)?;
    let body_bytes = length(response).ok_or_else(|| {
        "the answer has no Content-Length; name a resource of known length, such as a file".to_owned()
    })?;
    let says =
        |word: &str| header(response, "connection").is_some_and(|value| value.eq_ignore_ascii_case(word));
    let is_last = says("close") || (response.version == Some(0) && !says("keep-alive"));
    Ok(MeasuredAnswer { body_bytes, is_last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(head: &str) -> String {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut headers);
        assert!(response.parse(head.as_bytes()).unwrap().is_complete());
        answer(&response).unwrap_err()
    }

    fn is_last(head: &str) -> bool {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut headers);
        assert!(response.parse(head.as_bytes()).unwrap().is_complete());
        answer(&response).unwrap().is_last
    }

    #[test]
    fn a_server_says_whether_it_keeps_a_connection() {
        assert!(is_last("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"));
        assert!(!is_last("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
        assert!(is_last("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"));
        assert!(!is_last("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn answers_that_cannot_be_measured_are_refused() {
        assert!(refused("HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n").contains("redirects with 301 to /x"));
        assert!(refused("HTTP/1.1 404 Not Found\r\n\r\n").contains("answers 404"));
        assert!(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").contains("Content-Length"));
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
