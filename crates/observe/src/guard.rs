//! Access control of the admin API.
//!
//! With a token, whoever has it. Without one, programs on this machine: then a browser must not be made a tool of the
//! pages that it shows, neither by a name that resolves to the loopback address (DNS rebinding) nor by a form or script
//! of another site (cross-site request forgery).

use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::{Method, StatusCode};
use plimsoll_config::Admin;

use crate::reply::Refused;

/// Lets a request pass, or says why not. `admin` is the present configuration, `local` the address at which
/// the connection came in.
pub fn check(admin: Option<&Admin>, local: SocketAddr, request: &Parts) -> Result<(), Refused> {
    let Some(admin) = admin else {
        return Err(Refused::new(
            StatusCode::FORBIDDEN,
            "the configuration has no admin API any more",
            "restart to close its address, or configure [admin] again",
        ));
    };
    match &admin.token {
        Some(token) => authorized(token, request)?,
        None if !local.ip().to_canonical().is_loopback() => {
            return Err(Refused::new(
                StatusCode::FORBIDDEN,
                "the configuration has no token, and this is not a loopback address",
                "set `token_file` in [admin], or restart so that the configured address takes effect",
            ));
        }
        None if admin.address.port() != 0 && admin.address.port() != local.port() => {
            return Err(Refused::new(
                StatusCode::FORBIDDEN,
                "the configuration has no token, and its admin API is at another address",
                "restart so that the configured address takes effect, or set `token_file` in [admin]",
            ));
        }
        None => local_host(request)?,
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        same_origin(request)?;
    }
    Ok(())
}

fn authorized(token: &str, request: &Parts) -> Result<(), Refused> {
    let refused = |error| {
        let remedy = "send `Authorization: Bearer TOKEN` with the token of [admin]";
        Err(Refused::new(StatusCode::UNAUTHORIZED, error, remedy))
    };
    let Some(value) = request.headers.get(AUTHORIZATION) else { return refused("the token is missing") };
    // RFC 9110, section 11.1: the scheme in any case.
    match value.as_bytes().split_at_checked(7) {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
            if equal(given.trim_ascii(), token.as_bytes()) {
                Ok(())
            } else {
                refused("the token is not right")
            }
        }
        _ => refused("the authorization is not a bearer token"),
    }
}

/// Compares in a time that depends on the lengths alone.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |bits, (a, b)| std::hint::black_box(bits | (a ^ b)));
    a.len() == b.len() && differing == 0
}

/// Without a token, the request must be for this machine by a name that nobody else can give it.
fn local_host(request: &Parts) -> Result<(), Refused> {
    let host = authority(request).map(|(host, _)| host).unwrap_or_default();
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let is_local = match literal.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    };
    if is_local {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::FORBIDDEN,
        "without a token the admin API answers only requests to localhost or a loopback address",
        "use http://127.0.0.1 or http://localhost with its port, or set `token_file` in [admin]",
    ))
}

/// Host and port that the request is for.
fn authority(request: &Parts) -> Option<(&str, &str)> {
    let field = || request.headers.get(HOST)?.to_str().ok();
    let authority = request.uri.authority().map(http::uri::Authority::as_str).or_else(field)?;
    Some(match authority.rsplit_once(':') {
        // A colon within brackets belongs to the address.
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, ""),
    })
}

/// Browsers say which page makes a request that changes something: it must be one of this very API.
fn same_origin(request: &Parts) -> Result<(), Refused> {
    let Some(origin) = request.headers.get(ORIGIN) else { return Ok(()) };
    let plain = |(host, port): (&str, &str)| {
        (host.to_ascii_lowercase(), if port == "80" { String::new() } else { port.to_owned() })
    };
    let own = authority(request).map(plain);
    let other = origin.to_str().ok().and_then(|o| o.strip_prefix("http://"));
    let other = other.map(|o| match o.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => plain((host, port)),
        _ => plain((o, "")),
    });
    if own.is_some() && own == other {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::FORBIDDEN,
        "a page of another site must not change anything here",
        "leave the Origin field out, or send the request from a page of this API",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 9000);

    fn admin(token: Option<&str>) -> Admin {
        Admin { address: LOOPBACK.into(), token: token.map(str::to_owned), is_unasked: false }
    }

    fn status(token: Option<&str>, method: &str, fields: &[(&str, &str)]) -> u16 {
        status_at(token, LOOPBACK.into(), method, fields)
    }

    fn status_at(token: Option<&str>, local: SocketAddr, method: &str, fields: &[(&str, &str)]) -> u16 {
        let mut request = http::Request::builder().method(method).uri("/");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(Some(&admin(token)), local, &parts)
            .map_or_else(|refused| refused.reply().status().as_u16(), |()| 200)
    }

    #[test]
    fn only_local_names_without_a_token() {
        for good in
            ["localhost", "LOCALHOST:9000", "127.0.0.1:9000", "127.8.9.1", "[::1]:9000", "[::ffff:127.0.0.1]"]
        {
            assert_eq!(status(None, "GET", &[("host", good)]), 200, "{good}");
        }
        for bad in
            ["evil.example:9000", "localhost.evil.example", "10.0.0.1", "", "[::2]", "127.0.0.1.evil.example"]
        {
            assert_eq!(status(None, "GET", &[("host", bad)]), 403, "{bad}");
        }
        assert_eq!(status(None, "GET", &[]), 403);
        assert_eq!(status_at(None, ([10, 0, 0, 1], 9000).into(), "GET", &[("host", "localhost")]), 403);
    }

    #[test]
    fn the_token_and_nothing_but_the_token() {
        let with = |value: &str| status(Some("secret"), "GET", &[("authorization", value)]);
        assert_eq!((with("Bearer secret"), with("bearer  secret ")), (200, 200));
        for bad in
            ["Bearer secre", "Bearer secrets", "Bearer Secret", "Basic secret", "secret", "Bearer", "Bearer "]
        {
            assert_eq!(with(bad), 401, "{bad}");
        }
        assert_eq!(status(Some("secret"), "GET", &[("host", "localhost")]), 401);
    }

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let post = |origin: &str| status(None, "POST", &[("host", "localhost:9000"), ("origin", origin)]);
        assert_eq!(post("http://localhost:9000"), 200);
        for bad in [
            "http://localhost:3000",
            "http://localhost",
            "https://localhost:9000",
            "null",
            "http://evil.example",
        ] {
            assert_eq!(post(bad), 403, "{bad}");
        }
        let token = [("host", "a:1"), ("origin", "http://b:1"), ("authorization", "Bearer t")];
        assert_eq!(status(Some("t"), "PUT", &token), 403);
        assert_eq!(status(Some("t"), "GET", &token), 200);
    }

    #[test]
    fn closed_when_switched_off() {
        let (parts, ()) = http::Request::builder().header("host", "localhost").body(()).unwrap().into_parts();
        let refused = check(None, LOOPBACK.into(), &parts).unwrap_err();
        assert_eq!(refused.reply().status(), 403);
    }
}
