//! An advice as configuration: of Plimsoll, and where hashing or turns are as good, of HAProxy and nginx.

use std::fmt::Write as _;

use plimsoll_report::format::{bytes, number};

use super::advice::Advice;
use super::contestants::{CONTESTANTS, PolicyKind};
use super::notes::back_ends;

/// Networks for documentation (RFC 5737): their addresses belong to nobody.
const NETWORKS: [&str; 3] = ["192.0.2", "198.51.100", "203.0.113"];
/// Hosts of each.
const HOSTS: usize = 254;

fn address(number: usize) -> String {
    format!("{}.{}:80", NETWORKS[number / HOSTS % NETWORKS.len()], number % HOSTS + 1)
}

/// A configuration of `plimsoll balance` with the advised policy. Only addresses remain to be written.
#[must_use]
pub fn plimsoll_toml(advice: &Advice, command: &str) -> String {
    let mut out = String::new();
    // A name may have line feeds, behind which there would be no comment.
    let command: String = command
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect();
    let carry = if advice.carries() { "carries" } else { "falls short of" };
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "# Advised by `{command}`:\n# {} with {} of memory for documents each: that {carry} {} requests/s at the peak.\n\
         # Copy this file before you change it: the next report in its directory replaces it.\n# Then write the addresses of your servers, \
         and check it with `plimsoll check --config FILE`.\n\n[[listener]]\naddress = \"0.0.0.0:8080\"\n",
        back_ends(advice.backends),
        bytes(advice.memory_bytes as f64),
        number(advice.target.peak_rps)
    );
    for number in 0..advice.backends {
        let _ = write!(out, "\n[[backend]]\nname = \"b{number}\"\naddress = \"{}\"\n", address(number));
    }
    if advice.strips_query {
        out += "\n# Requests that differ in their query alone are for one document, as in the log that was read.\n[target]\nkey = \"path\"\n";
    }
    let _ = write!(
        out,
        "\n[policy]\nname = \"{}\"\n\n# As many requests at once as in the simulation; the others wait.\n[admission]\nlimit = \"lard\"\n\n\
         [health]\nprobe = \"tcp\"\n",
        advice.verdict.policy
    );
    out
}

/// Whether the advised policy knows where targets are, which other balancers do not.
fn is_aware(advice: &Advice) -> bool {
    CONTESTANTS.iter().any(|of| of.policy == advice.verdict.policy && of.kind == PolicyKind::Aware)
}

fn servers(advice: &Advice, line: impl Fn(usize, String) -> String) -> String {
    (0..advice.backends).map(|number| line(number, address(number))).collect()
}

/// The lines by which HAProxy does what is advised; `None` where it cannot.
#[must_use]
pub fn haproxy_lines(advice: &Advice) -> Option<String> {
    if is_aware(advice) {
        return None;
    }
    // What is behind the question mark counts with `whole` alone.
    let uri = if advice.strips_query { "uri" } else { "uri whole" };
    let balance = match advice.verdict.policy {
        "uri_hash" => format!("    balance {uri}\n    hash-type consistent\n"),
        "bounded_load_hash" => {
            format!("    balance {uri}\n    hash-type consistent\n    hash-balance-factor 125\n")
        }
        "least_connections" => "    balance leastconn\n".to_owned(),
        _ => "    balance roundrobin\n".to_owned(),
    };
    let servers = servers(advice, |number, address| format!("    server b{number} {address} check\n"));
    // Without this mode HAProxy knows nothing of requests, and takes turns.
    Some(format!("backend site\n    mode http\n{balance}{servers}"))
}

/// The lines by which nginx does what is advised; `None` where it cannot: it has no bound on the load of a server, and knows no locality.
#[must_use]
pub fn nginx_lines(advice: &Advice) -> Option<String> {
    if is_aware(advice) || advice.verdict.policy == "bounded_load_hash" {
        return None;
    }
    let uri = if advice.strips_query { "$uri" } else { "$request_uri" };
    let method = match advice.verdict.policy {
        "uri_hash" => format!("    hash {uri} consistent;\n"),
        "least_connections" => "    least_conn;\n".to_owned(),
        _ => String::new(),
    };
    let servers = servers(advice, |_, address| format!("    server {address};\n"));
    Some(format!("upstream site {{\n{method}{servers}}}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_back_end_has_an_address_of_its_own_that_exists() {
        let all: std::collections::BTreeSet<String> = (0..600).map(address).collect();
        assert_eq!(all.len(), 600);
        assert_eq!((address(253), address(254)), ("192.0.2.254:80".into(), "198.51.100.1:80".into()));
        for address in all {
            assert!(address.parse::<std::net::SocketAddrV4>().is_ok(), "{address}");
        }
    }
}
