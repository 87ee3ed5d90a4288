//! A parser of HTTP/1.1 messages that shares nothing with the one under test: it takes only what RFC 9112 allows and
//! says what is wrong with the rest.

/// A complete message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The first line.
    pub(crate) start: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) chunked: bool,
}

impl Message {
    /// The values of all fields of this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        named.map(|(_, v)| v.as_str()).collect()
    }

    /// The value of a field that must not be there twice.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} is there {} times: {self:?}", all.len());
        all.first().copied()
    }

    pub(crate) fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_default()
    }
}

/// A message at the front of some bytes and its length; nothing when it is not complete.
pub(crate) type Parsed = Result<Option<(Message, usize)>, String>;

/// A request.
pub(crate) fn request(bytes: &[u8]) -> Parsed {
    let Some((mut message, head_len)) = head(bytes)? else {
        return Ok(None);
    };
    let parts: Vec<&str> = message.start.split(' ').collect();
    let [method, target, "HTTP/1.1"] = parts[..] else {
        return Err(format!("not a request line: {:?}", message.start));
    };
    if method.is_empty() || !method.bytes().all(is_token_byte) {
        return Err(format!("not a method: {method:?}"));
    }
    if !(target.starts_with('/') || target == "*")
        || target.bytes().any(|b| !b.is_ascii_graphic() || b == b'#')
    {
        return Err(format!("not a target: {target:?}"));
    }
    if message.all("host").len() != 1 {
        return Err(format!("not one Host: {message:?}"));
    }
    let length = length(&message)?;
    body(&mut message, bytes, head_len, Some(length.unwrap_or(0)))
}

/// A response; with `to_head`, to HEAD. `closed` says that the connection ended behind `bytes`.
pub(crate) fn response(bytes: &[u8], to_head: bool, closed: bool) -> Parsed {
    let Some((mut message, head_len)) = head(bytes)? else {
        return Ok(None);
    };
    let line = message.start.as_bytes();
    let good = line.starts_with(b"HTTP/1.1 ") && line.len() > 12 && line[12] == b' ';
    if !good || !(100..1000).contains(&message.status()) {
        return Err(format!("not a status line: {:?}", message.start));
    }
    let length = length(&message)?;
    if to_head || message.status() < 200 || matches!(message.status(), 204 | 304) {
        if message.status() < 200 || message.status() == 204 {
            let framed = message.chunked || length.is_some();
            return if framed {
                Err(format!("framing fields: {message:?}"))
            } else {
                Ok(Some((message, head_len)))
            };
        }
        return Ok(Some((message, head_len)));
    }
    if length.is_none() && !message.chunked {
        if !closed {
            return Ok(None);
        }
        message.body = bytes[head_len..].to_vec();
        return Ok(Some((message, bytes.len())));
    }
    body(&mut message, bytes, head_len, length)
}

/// All responses in `bytes`, which answer requests with these methods; interim ones stand beside the final ones.
pub(crate) fn responses(bytes: &[u8], methods: &[&str]) -> Result<Vec<Message>, String> {
    let (mut at, mut out) = (0, Vec::new());
    let mut methods = methods.iter();
    let mut method = methods.next();
    while at < bytes.len() {
        let to_head = method == Some(&"HEAD");
        let (message, len) = response(&bytes[at..], to_head, true)?.ok_or_else(|| {
            format!("cut off: {:?}", String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 300)]))
        })?;
        at += len;
        if message.status() >= 200 {
            method = methods.next();
        }
        out.push(message);
    }
    Ok(out)
}

fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char::from(b))
}

fn head(bytes: &[u8]) -> Result<Option<(Message, usize)>, String> {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text: String = bytes[..end].iter().copied().map(char::from).collect();
    let mut lines = text.split("\r\n");
    let start = lines.next().unwrap_or_default().to_owned();
    clean(&start)?;
    let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
    let chunked = match fields
        .iter()
        .filter(|(n, _)| n.eq_ignore_ascii_case("transfer-encoding"))
        .collect::<Vec<_>>()[..]
    {
        [] => false,
        [(_, value)] if value == "chunked" => true,
        _ => return Err(format!("transfer codings: {fields:?}")),
    };
    Ok(Some((Message { start, fields, chunked, ..Message::default() }, end + 4)))
}

fn clean(line: &str) -> Result<(), String> {
    let bad = line.chars().find(|&c| c != '\t' && c.is_control() && u32::from(c) < 0x80);
    bad.map_or(Ok(()), |c| Err(format!("{c:?} in {line:?}")))
}

fn field(line: &str) -> Result<(String, String), String> {
    clean(line)?;
    let (name, value) = line.split_once(':').ok_or_else(|| format!("no colon: {line:?}"))?;
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        return Err(format!("not a field name: {line:?}"));
    }
    Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

fn length(message: &Message) -> Result<Option<usize>, String> {
    match message.all("content-length")[..] {
        [] => Ok(None),
        [_] if message.chunked => Err(format!("two framings: {message:?}")),
        [value] if value.bytes().all(|b| b.is_ascii_digit()) && value.len() < 16 => Ok(value.parse().ok()),
        _ => Err(format!("lengths: {message:?}")),
    }
}

fn body(message: &mut Message, bytes: &[u8], head_len: usize, length: Option<usize>) -> Parsed {
    if !message.chunked {
        let end = head_len + length.unwrap_or(0);
        if bytes.len() < end {
            return Ok(None);
        }
        message.body = bytes[head_len..end].to_vec();
        return Ok(Some((std::mem::take(message), end)));
    }
    let (mut at, mut pieces) = (head_len, Vec::new());
    loop {
        let Some(line) = bytes[at..].windows(2).take(32).position(|w| w == b"\r\n") else {
            return if bytes.len() - at > 32 {
                Err("a chunk line without an end".to_owned())
            } else {
                Ok(None)
            };
        };
        let digits = String::from_utf8_lossy(&bytes[at..at + line]).into_owned();
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let size = usize::from_str_radix(&digits, 16)
            .ok()
            .filter(|_| plain)
            .ok_or(format!("chunk size {digits:?}"))?;
        at += line + 2;
        if size == 0 {
            break;
        }
        if bytes.len() < at + size + 2 {
            return Ok(None);
        }
        pieces.push(&bytes[at..at + size]);
        if &bytes[at + size..at + size + 2] != b"\r\n" {
            return Err(format!("no line end after a chunk of {size}"));
        }
        at += size + 2;
    }
    if bytes[at..].starts_with(b"\r\n") {
        at += 2;
    } else {
        let Some(end) = bytes[at..].windows(4).position(|w| w == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text: String = bytes[at..at + end].iter().copied().map(char::from).collect();
        message.trailers = text.split("\r\n").map(field).collect::<Result<_, _>>()?;
        at += end + 4;
    }
    message.body = pieces.concat();
    Ok(Some((std::mem::take(message), at)))
}
