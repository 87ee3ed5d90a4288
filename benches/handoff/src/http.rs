//! The least of an HTTP client, for checks and for single requests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

const PATIENCE: Duration = Duration::from_secs(3);
const MOST_HEAD_BYTES: usize = 16 << 10;
const MOST_BODY_BYTES: usize = 16 << 20;

/// A connection with one request at a time.
pub struct Client(TcpStream);

/// A response with status 200.
pub struct Answer {
    /// Value of the header `X-Backend`, if there is one.
    pub backend: String,
    /// Its content.
    pub body: Vec<u8>,
}

impl Client {
    /// Connects within some seconds.
    pub fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&to, PATIENCE).with_context(|| format!("connect to {to}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// One request and its response, whose length must be told.
    pub fn get(&mut self, path: &str) -> Result<Answer> {
        write!(self.0, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n")?;
        let (head, body) = self.head()?;
        if !head.starts_with("HTTP/1.1 200 ") {
            bail!("{path}: {}", head.lines().next().unwrap_or("no answer"));
        }
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        let length: usize = header("content-length").context("no Content-Length")?.parse()?;
        self.body(body, length).map(|body| Answer { backend: header("x-backend").unwrap_or_default(), body })
    }

    fn head(&mut self) -> Result<(String, Vec<u8>)> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 16 << 10];
        while bytes.len() < MOST_HEAD_BYTES {
            match self.0.read(&mut chunk)? {
                0 => bail!("the connection ended before a response"),
                n => bytes.extend_from_slice(&chunk[..n]),
            }
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let body = bytes.split_off(end + 4);
                return Ok((String::from_utf8_lossy(&bytes).into_owned(), body));
            }
        }
        bail!("a head without an end")
    }

    fn body(&mut self, mut body: Vec<u8>, length: usize) -> Result<Vec<u8>> {
        if length > MOST_BODY_BYTES || body.len() > length {
            bail!("a response of {length} bytes, {} of them at once", body.len());
        }
        let received = body.len();
        body.resize(length, 0);
        self.0.read_exact(&mut body[received..])?;
        Ok(body)
    }
}

/// The page of counters of a front-end, as its admin API gives it.
pub fn metrics(admin: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.take(4 << 20).read_to_string(&mut page)?;
    if !page.starts_with("HTTP/1.1 200 ") {
        bail!("/metrics: {}", page.lines().next().unwrap_or("no answer"));
    }
    Ok(page)
}

/// Sum of a metric over its labels, of those lines that contain `label`; 0 without any.
pub fn sum(page: &str, name: &str, label: &str) -> f64 {
    let lines = page.lines().filter(|line| line.contains(label));
    let ours = lines.filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
    ours.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
