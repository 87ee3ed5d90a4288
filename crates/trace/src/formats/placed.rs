//! Logs whose fields have a place in the line: tokens between spaces, in quotes, or in brackets.

use std::borrow::Cow;

use crate::field_role::FieldRole;
use crate::line_error::LineError;
use crate::line_log::{LineSplitter, SplitLine};
use crate::raw_request::RawRequest;

/// What of a token is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCut {
    /// All of it; it must not be in quotes.
    Whole,
    /// What stands before the last colon.
    BeforePort,
    /// This part of it, between slashes, from 0.
    Part(usize),
    /// The content of the quotes, after any tokens without them.
    Quoted,
}

/// A token and its role; `None` for one that is passed over.
pub(crate) type Place = (Option<FieldRole>, TokenCut);

/// A token that is passed over.
pub(crate) const SKIP: Place = (None, TokenCut::Whole);

/// A token in quotes that is passed over.
pub(crate) const SKIP_QUOTED: Place = (None, TokenCut::Quoted);

/// A whole token.
pub(crate) const fn whole(role: FieldRole) -> Place {
    (Some(role), TokenCut::Whole)
}

/// An address without its port.
pub(crate) const fn before_port(role: FieldRole) -> Place {
    (Some(role), TokenCut::BeforePort)
}

/// A part between slashes.
pub(crate) const fn part(role: FieldRole, number: usize) -> Place {
    (Some(role), TokenCut::Part(number))
}

/// The next token in quotes.
pub(crate) const fn quoted(role: FieldRole) -> Place {
    (Some(role), TokenCut::Quoted)
}

/// The form of a line.
pub(crate) struct Layout {
    /// Finds where the tokens begin; `None` for a line of another form.
    pub(crate) begin: fn(&[u8]) -> Option<&[u8]>,
    /// The tokens that must be there; further ones are ignored.
    pub(crate) places: &'static [Place],
    /// The tokens that follow where they are there.
    pub(crate) optional: &'static [Place],
}

const STILL_GROWING: LineError = LineError::Text(
    "the plus sign says that the size was still growing: HAProxy logs so with `option logasap`, and only without it log sizes",
);

/// Splits lines of one layout.
pub(crate) struct PlacedSplitter(pub(crate) &'static Layout);

impl LineSplitter for PlacedSplitter {
    fn split<'a>(&mut self, line: &'a [u8]) -> Result<SplitLine<'a>, LineError> {
        let layout = self.0;
        let mut rest =
            (layout.begin)(line).ok_or(LineError::Text("line does not begin as this format does"))?;
        let mut raw = RawRequest::default();
        for place in layout.places {
            fill(&mut raw, *place, &mut rest)?;
        }
        for place in layout.optional {
            if fill(&mut raw, *place, &mut rest).is_err() {
                break;
            }
        }
        Ok(SplitLine::Request(raw))
    }
}

fn fill<'a>(raw: &mut RawRequest<'a>, (role, cut): Place, rest: &mut &'a [u8]) -> Result<(), LineError> {
    let mut token = next_token(rest)?;
    while cut == TokenCut::Quoted && !token.in_quotes {
        token = next_token(rest)?;
    }
    if cut != TokenCut::Quoted && token.in_quotes {
        return Err(LineError::Text("a field is in quotes that has none in this format"));
    }
    let value = match cut {
        TokenCut::Whole | TokenCut::Quoted => token.text,
        TokenCut::BeforePort => &token.text[..memchr::memrchr(b':', token.text).unwrap_or(token.text.len())],
        TokenCut::Part(number) => token
            .text
            .split(|&b| b == b'/')
            .nth(number)
            .ok_or(LineError::Text("a field has fewer parts between slashes than in this format"))?,
    };
    let Some(role) = role else { return Ok(()) };
    let value = match role {
        FieldRole::Size | FieldRole::Status => {
            if value.first() == Some(&b'+') {
                return Err(STILL_GROWING);
            }
            let number = value.strip_prefix(b"-").unwrap_or(value);
            if !number.iter().all(u8::is_ascii_digit) {
                return Err(LineError::Text("status or size is not a number"));
            }
            value
        }
        _ => value,
    };
    raw.set(role, Cow::Borrowed(value));
    Ok(())
}

struct Token<'a> {
    text: &'a [u8],
    in_quotes: bool,
}

/// Takes the next token from `rest`.
fn next_token<'a>(rest: &mut &'a [u8]) -> Result<Token<'a>, LineError> {
    let text = rest.trim_ascii_start();
    let (token, after) = match text.first() {
        None => return Err(LineError::Text("line ends early")),
        Some(b'"') => {
            let end = closing_quote(&text[1..]).ok_or(LineError::Text("a quote is not closed"))?;
            (Token { text: &text[1..=end], in_quotes: true }, &text[end + 2..])
        }
        Some(first) => match closing_bracket(text).filter(|_| *first == b'[') {
            Some(end) => (Token { text: &text[1..end], in_quotes: false }, &text[end + 1..]),
            None => {
                let end = memchr::memchr(b' ', text).unwrap_or(text.len());
                (Token { text: &text[..end], in_quotes: false }, &text[end..])
            }
        },
    };
    *rest = after;
    Ok(token)
}

/// The bracket that closes a token, if the token ends with it; the one in `[2001:db8::1]:80` does not.
fn closing_bracket(text: &[u8]) -> Option<usize> {
    memchr::memchr(b']', text).filter(|&at| text.get(at + 1).is_none_or(|&next| next == b' '))
}

/// The quote that closes: one that a space or the end follows, because some programs escape no quotes.
fn closing_quote(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', text).find(|&at| {
        let escapes = text[..at].iter().rev().take_while(|&&b| b == b'\\').count();
        escapes % 2 == 0 && text.get(at + 1).is_none_or(|&next| next == b' ')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_quotes_and_brackets() {
        let mut rest: &[u8] = br#"a  [b c] "d \" e" "f"g" h [::1]:80 [x"#;
        let mut tokens = Vec::new();
        while let Ok(token) = next_token(&mut rest) {
            tokens.push((String::from_utf8_lossy(token.text).into_owned(), token.in_quotes));
        }
        let expected = [
            ("a", false),
            ("b c", false),
            ("d \\\" e", true),
            ("f\"g", true),
            ("h", false),
            ("[::1]:80", false),
            ("[x", false),
        ];
        assert_eq!(tokens, expected.map(|(text, quotes)| (text.to_owned(), quotes)));
        for mut broken in [&b"\"x"[..], b""] {
            assert!(next_token(&mut broken).is_err());
        }
    }
}
