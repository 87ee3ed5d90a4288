//! The front-end's page `/metrics`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The admin API of the front-end, within its node.
pub(super) const ADMIN: &str = "127.0.0.1:9090";

/// The page, read within the front-end's node.
pub(super) fn page() -> std::io::Result<String> {
    let mut connection = TcpStream::connect(ADMIN)?;
    connection.set_read_timeout(Some(Duration::from_secs(2)))?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    connection.take(4 << 20).read_to_string(&mut page)?;
    Ok(page)
}

/// The sum of a metric over its labels. Lines are `name value` or `name{labels} value`.
pub(super) fn sum_of(page: &str, name: &str) -> Option<f64> {
    let values: Vec<f64> = page
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix([' ', '{']).and(line.rsplit(' ').next()))
        .filter_map(|value| value.trim().parse().ok())
        .collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_summed_over_labels() {
        let page = "# HELP plimsoll_x x\nplimsoll_x_total{a=\"b c\"} 3\nplimsoll_x_total{a=\"d\"} 4\nplimsoll_y 1.5\n";
        assert_eq!(sum_of(page, "plimsoll_x_total"), Some(7.0));
        assert_eq!(sum_of(page, "plimsoll_x_total{a=\"d\"}"), Some(4.0));
        assert_eq!(sum_of(page, "plimsoll_y"), Some(1.5));
        assert_eq!(sum_of(page, "plimsoll_x"), None);
    }
}
