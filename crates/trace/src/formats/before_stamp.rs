//! The words before the time stamp of a common or combined log line: usually client, identity and user, but servers may put a
//! site first, and what carries the log (syslog, a container) puts its own words before all of them.

use std::net::IpAddr;

use crate::line_error::LineError;

/// How many words usually stand before the stamp.
const USUAL: usize = 3;

/// The client, `None` for `-`, and where the bracket opens that holds the time stamp.
#[inline]
pub(crate) fn client_and_stamp(line: &[u8]) -> Result<(Option<&[u8]>, usize), LineError> {
    let space = memchr::memchr(b' ', line).ok_or(LineError::Text("line is not an access log line"))?;
    let (client, rest) = line.split_at(space);
    if rest.starts_with(b" - ")
        && !matches!(client.last(), None | Some(b',' | b'-'))
        && let Some(at) = memchr::memchr(b'[', rest)
        && is_dated(line, space + at)
    {
        return Ok((Some(client), space + at));
    }
    unusual_client_and_stamp(line)
}

#[cold]
fn unusual_client_and_stamp(line: &[u8]) -> Result<(Option<&[u8]>, usize), LineError> {
    let at = stamp_at(line).ok_or(LineError::Text("line has no time stamp in brackets"))?;
    if at == 0 {
        return Err(LineError::Text("line has no client before the time stamp"));
    }
    let client = unusual_client(&line[..at]);
    // Of several (`X-Forwarded-For`), the first.
    let client = client.strip_suffix(b",").unwrap_or(client);
    Ok(((client != b"-").then_some(client), at))
}

/// Where the bracket opens that holds the time stamp: the first one that a date follows, else the first one at all.
fn stamp_at(line: &[u8]) -> Option<usize> {
    let dated = memchr::memchr_iter(b'[', line).find(|&at| is_dated(line, at));
    dated.or_else(|| memchr::memchr(b'[', line))
}

/// Whether a date follows, as in `[23/Nov/2026`.
#[inline]
fn is_dated(line: &[u8], bracket: usize) -> bool {
    line.get(bracket + 3) == Some(&b'/') && line.get(bracket + 7) == Some(&b'/')
}

/// The client among the words before the stamp.
fn unusual_client(before: &[u8]) -> &[u8] {
    let words: Vec<&[u8]> = words(before).map(|(_, word)| word).collect();
    let first = words.first().copied().unwrap_or_default();
    if words.len() <= USUAL || is_address(first) || words[1] == b"-" {
        return first;
    }
    words[words.len() - USUAL]
}

/// Where a site begins that stands before the client, as in `example.org:80 192.0.2.7 - - [`.
pub(crate) fn site_at(line: &[u8]) -> Option<usize> {
    let before = &line[..stamp_at(line)?];
    let words: Vec<(usize, &[u8])> = words(before).collect();
    let [prefix @ .., (at, site), (_, client), _, _] = &words[..] else { return None };
    let (site, client) = (*site, *client);
    let port = memchr::memrchr(b':', site).map(|at| &site[at + 1..]);
    let has_port = port.is_some_and(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit));
    // After a prefix, a word alone may be the prefix's last.
    let stands_out = prefix.is_empty() || has_port || (site.contains(&b'.') && !site.ends_with(b":"));
    let is_site = is_host(site) && stands_out && client != b"-" && (has_port || is_address(client));
    is_site.then_some(*at)
}

/// The words, each with where it begins.
/// Where the site begins in a log in which each line has one: it may be the address that a client asked.
pub(crate) fn vhost_at(line: &[u8]) -> Option<usize> {
    let words: Vec<(usize, &[u8])> = words(&line[..stamp_at(line)?]).collect();
    let [.., (at, _), _, _, _] = &words[..] else { return None };
    site_at(line).or(Some(*at))
}

fn words(before: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    let placed = before.split(|&b| b == b' ').map(move |word| {
        let at = next;
        next += word.len() + 1;
        (at, word)
    });
    placed.filter(|(_, word)| !word.is_empty())
}

/// Whether a word can be the name of a site, and is no address of a client.
fn is_host(word: &[u8]) -> bool {
    let allowed =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']' | b'*');
    word.iter().all(allowed) && word != b"-" && !is_address(word)
}

fn is_address(word: &[u8]) -> bool {
    let word = word.strip_suffix(b",").unwrap_or(word);
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: &str = "[23/Nov/2026:21:22:15 +0000]";

    #[test]
    fn the_client_is_found_among_what_others_put_before_it() {
        for (before, expected) in [
            ("192.0.2.7 - - ", "192.0.2.7"),
            ("192.0.2.7 - john doe ", "192.0.2.7"),
            ("192.0.2.7 - \"[x\" ", "192.0.2.7"),
            ("192.0.2.7 ident user ", "192.0.2.7"),
            ("192.0.2.7 ", "192.0.2.7"),
            // lighttpd has the site in place of the identity.
            ("192.0.2.7 www.example.org - ", "192.0.2.7"),
            ("<190>Nov 23 21:22:10 lb nginx: 192.0.2.7 - - ", "192.0.2.7"),
            ("Nov  3 21:22:10 lb nginx[12]: 192.0.2.7 - - ", "192.0.2.7"),
            ("2026-11-23T21:22:15.342Z stdout F 192.0.2.7 - - ", "192.0.2.7"),
            ("web-1  | 192.0.2.7 - - ", "192.0.2.7"),
            // Clients of proxies.
            ("192.0.2.7, 10.0.0.1 - - ", "192.0.2.7"),
            ("192.0.2.7, 10.0.0.1 10.0.0.2 - - ", "192.0.2.7"),
            ("192.0.2.7 10.0.0.2 - - ", "192.0.2.7"),
            ("- 192.0.2.7 - - ", "192.0.2.7"),
            ("2001:db8::1 - - ", "2001:db8::1"),
        ] {
            let line = format!("{before}{STAMP}");
            let (client, at) = client_and_stamp(line.as_bytes()).unwrap();
            assert_eq!(client, Some(expected.as_bytes()), "{before}");
            assert_eq!(&line[at..], STAMP, "{before}");
        }
        let nobody = format!("- - - {STAMP}");
        assert_eq!(client_and_stamp(nobody.as_bytes()), Ok((None, 6)));
        assert!(client_and_stamp(STAMP.as_bytes()).is_err());
    }

    #[test]
    fn a_site_is_told_from_other_words() {
        for (before, expected) in [
            ("www.example.org:80 192.0.2.7 - - ", Some("www.example.org:80")),
            ("www.example.org 192.0.2.7 - - ", Some("www.example.org")),
            ("intranet 192.0.2.7 - - ", Some("intranet")),
            ("10.0.0.1:80 192.0.2.7 - - ", Some("10.0.0.1:80")),
            ("[2001:db8::1]:80 192.0.2.7 - - ", Some("[2001:db8::1]:80")),
            ("www.example.org:80 client.example.org - - ", Some("www.example.org:80")),
            ("Nov 23 21:22:10 lb apache: www.example.org:80 192.0.2.7 - - ", Some("www.example.org:80")),
            ("192.0.2.7 - - ", None),
            ("192.0.2.7 10.0.0.1 - - ", None),
            ("\"192.0.2.7\" 10.0.0.1 - - ", None),
            ("- 10.0.0.1 - - ", None),
            ("Nov 23 21:22:10 lb nginx: 192.0.2.7 - - ", None),
            ("2026-11-23T21:22:15.342Z stdout F 192.0.2.7 - - ", None),
            ("web-1  | 192.0.2.7 - - ", None),
            ("192.0.2.7, 10.0.0.1 10.0.0.2 - - ", None),
        ] {
            let line = format!("{before}{STAMP}");
            let found = site_at(line.as_bytes()).map(|at| line[at..].split(' ').next().unwrap());
            assert_eq!(found, expected, "{before}");
        }
    }
}
