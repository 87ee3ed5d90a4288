//! The chunked transfer coding (RFC 9112, section 7.1), followed, or decoded in place; strictly, unless a back-end sends it.

use plimsoll_config::FieldEdit;

use super::fields::{Field, classify, is_replaced, is_token_byte, push, replaces_alike, trim};

/// Bytes of the line before a chunk, extensions included.
const MOST_LINE_BYTES: usize = 256;
/// Bytes of all chunk extensions of one message: they are dropped, so nobody needs many.
const MOST_EXTENSION_BYTES: usize = 16 << 10;

/// Why a chunked body is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadChunk(pub(crate) &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the line that gives a chunk's size.
    Size,
    /// This many bytes of the chunk are to come.
    Data(u64),
    /// The line end after a chunk; holds how many of its two bytes have been seen.
    DataEnd(u8),
    /// In the trailer section.
    Trailers,
    Done,
}

/// What [`Decoder::decode`] made of some bytes, or [`Decoder::scan`] found in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Bytes used up.
    pub(crate) consumed: usize,
    /// Bytes of content: now at the front, if they were decoded.
    pub(crate) content: usize,
    /// Whether the body is complete.
    pub(crate) done: bool,
}

/// Decodes one body that arrives piece by piece.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    line: Vec<u8>,
    extension_bytes: usize,
    most_trailer_bytes: usize,
    most_fields: usize,
    of_response: bool,
}

impl Decoder {
    /// A decoder that takes trailers of at most this size and number.
    pub(crate) fn new(most_trailer_bytes: usize, most_fields: usize) -> Self {
        let (state, line) = (State::Size, Vec::new());
        Self { state, line, extension_bytes: 0, most_trailer_bytes, most_fields, of_response: false }
    }

    /// The same for a response, which goes on in chunks of our own: lines may end in a line feed alone, and blanks may follow a size.
    pub(crate) fn of_response(most_trailer_bytes: usize, most_fields: usize) -> Self {
        Self { of_response: true, ..Self::new(most_trailer_bytes, most_fields) }
    }

    /// Decodes what is in `bytes`: the content moves to the front. Stops after the body's last byte.
    pub(crate) fn decode(&mut self, bytes: &mut [u8]) -> Result<Decoded, BadChunk> {
        let (mut at, mut content) = (0, 0);
        while at < bytes.len() && self.state != State::Done {
            if let State::Data(left) = self.state {
                let n = self.pass_content(left, bytes.len() - at);
                if at != content {
                    bytes.copy_within(at..at + n, content);
                }
                at += n;
                content += n;
            } else {
                at += self.pass_frame(&bytes[at..])?;
            }
        }
        Ok(Decoded { consumed: at, content, done: self.state == State::Done })
    }

    /// The same for one who only wants to know how far the body goes: everything stays where it is.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Result<Decoded, BadChunk> {
        let (mut at, mut content) = (0, 0);
        while at < bytes.len() && self.state != State::Done {
            if let State::Data(left) = self.state {
                let n = self.pass_content(left, bytes.len() - at);
                at += n;
                content += n;
            } else {
                at += self.pass_frame(&bytes[at..])?;
            }
        }
        Ok(Decoded { consumed: at, content, done: self.state == State::Done })
    }

    /// Passes the content of a chunk, of which `left` bytes are to come and `there` have; how many it is.
    fn pass_content(&mut self, left: u64, there: usize) -> usize {
        let n = there.min(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left - n as u64;
        self.state = if left == 0 { State::DataEnd(0) } else { State::Data(left) };
        n
    }

    /// Passes what stands around content, up to the next content or the body's end; how many bytes it is.
    fn pass_frame(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        for (at, &byte) in bytes.iter().enumerate() {
            match self.state {
                State::Data(_) | State::Done => return Ok(at),
                State::DataEnd(0) if self.of_response && byte == b'\n' => self.state = State::Size,
                State::DataEnd(seen) => {
                    if byte != b"\r\n"[usize::from(seen)] {
                        return Err(BadChunk("a chunk is longer than its size says"));
                    }
                    self.state = if seen == 0 { State::DataEnd(1) } else { State::Size };
                }
                State::Size => self.line_byte(byte, MOST_LINE_BYTES, Self::size_line)?,
                State::Trailers => self.line_byte(byte, self.most_trailer_bytes, Self::trailer_line)?,
            }
        }
        Ok(bytes.len())
    }

    /// The trailer fields of a complete body that may be passed on, as field lines: without those that a route sets or removes.
    ///
    /// # Errors
    /// When the trailer section is no list of fields, or holds a field that must not be in one.
    pub(crate) fn trailers(&self, edits: &[FieldEdit]) -> Result<Vec<u8>, BadChunk> {
        let mut out = Vec::new();
        if self.line.len() <= 2 {
            return Ok(out);
        }
        let mut fields = vec![httparse::EMPTY_HEADER; self.most_fields];
        let parsed = match httparse::parse_headers(&self.line, &mut fields) {
            Ok(httparse::Status::Complete((used, parsed))) if used == self.line.len() => parsed,
            _ => return Err(BadChunk("the trailer section is not a list of fields")),
        };
        let is_edited = if self.of_response { is_replaced } else { replaces_alike };
        for field in parsed {
            match classify(field.name) {
                // They would change what has been decided from the head (RFC 9110, section 6.5.1).
                Field::ContentLength | Field::TransferEncoding | Field::Host => {
                    return Err(BadChunk("a trailer field that changes framing or routing"));
                }
                Field::Other if is_edited(edits, field.name) => {}
                Field::Other => push(&mut out, field.name.as_bytes(), field.value),
                // Neither forwarding nor connection fields mean anything in a trailer section.
                _ => {}
            }
        }
        Ok(out)
    }

    /// Takes one byte of a line; calls `end` with a line once it is complete.
    #[inline]
    fn line_byte(
        &mut self,
        byte: u8,
        most: usize,
        end: fn(&mut Self) -> Result<(), BadChunk>,
    ) -> Result<(), BadChunk> {
        let after_return = self.line.last() == Some(&b'\r');
        match byte {
            b'\n' if !after_return && self.of_response => self.line.push(b'\r'),
            b'\n' if !after_return => return Err(BadChunk("a line feed without a carriage return")),
            b'\n' => {}
            _ if after_return => return Err(BadChunk("a carriage return without a line feed")),
            b'\r' | b'\t' | b' '..=b'~' | 0x80.. => {}
            _ => return Err(BadChunk("a control character")),
        }
        if self.line.len() >= most {
            return Err(BadChunk("a chunk header or trailer section that is too long"));
        }
        self.line.push(byte);
        if byte == b'\n' { end(self) } else { Ok(()) }
    }

    fn size_line(&mut self) -> Result<(), BadChunk> {
        let line = &self.line[..self.line.len() - 2];
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if digits == 0 || digits > 16 {
            return Err(BadChunk("a chunk size that is not 1 to 16 hexadecimal digits"));
        }
        let size = line[..digits].iter().fold(0u64, |n, &b| n << 4 | u64::from(hex_digit(b)));
        let extensions = if self.of_response { trim_end(&line[digits..]) } else { &line[digits..] };
        if !extensions.is_empty() && !extensions_are_valid(extensions) {
            return Err(BadChunk("a chunk extension that is not one"));
        }
        self.extension_bytes += extensions.len();
        if self.extension_bytes > MOST_EXTENSION_BYTES {
            return Err(BadChunk("too many chunk extensions"));
        }
        self.line.clear();
        self.state = if size == 0 { State::Trailers } else { State::Data(size) };
        Ok(())
    }

    fn trailer_line(&mut self) -> Result<(), BadChunk> {
        // The section ends with an empty line: either its first, or one right after another.
        if self.line == b"\r\n" || self.line.ends_with(b"\r\n\r\n") {
            self.state = State::Done;
        }
        Ok(())
    }
}

fn hex_digit(b: u8) -> u8 {
    match b {
        b'0'..=b'9' => b - b'0',
        _ => (b | 0x20) - b'a' + 10,
    }
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`, RFC 9112, section 7.1.1.
fn extensions_are_valid(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(after) = trim_start(rest).strip_prefix(b";") else {
            return false;
        };
        let after = trim_start(after);
        let name = token_len(after);
        if name == 0 {
            return false;
        }
        rest = &after[name..];
        if let Some(value) = trim_start(rest).strip_prefix(b"=") {
            let value = trim_start(value);
            let len = if value.first() == Some(&b'"') { quoted_len(value) } else { token_len(value) };
            if len == 0 {
                return false;
            }
            rest = &value[len..];
        }
    }
    // White space at the very end belongs to no extension.
    trim(bytes).len() == trim_start(bytes).len()
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let n = bytes.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    &bytes[n..]
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let n = bytes.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    &bytes[..bytes.len() - n]
}

fn token_len(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&b| is_token_byte(b)).count()
}

/// Length of the quoted string at the front, 0 when it does not end.
fn quoted_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    0
}

/// The line before a chunk of this size.
pub(crate) fn chunk_line(size_bytes: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 16];
    let mut at = digits.len();
    let mut rest = size_bytes;
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[rest & 15];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
