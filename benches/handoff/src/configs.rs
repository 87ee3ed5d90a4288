//! What the programs are told.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

/// Where clients connect, at the virtual address.
pub const PLIMSOLL_PORT: u16 = 80;
pub const HAPROXY_PORT: u16 = 8001;
pub const NGINX_PORT: u16 = 8002;
pub const ITSELF_PORT: u16 = 8003;
/// The same for front-ends beside the one that hands everything off, in front of the same back-ends.
pub const PROXY_PORT: u16 = 8004;
pub const AUTO_PORT: u16 = 8005;
/// Where back-ends answer proxies and checks, and their agents listen.
pub const BACKEND_PORT: u16 = 80;
pub const AGENT_PORT: u16 = 7400;
/// The port of the first front-end's admin API, within its node.
const ADMIN_PORT: u16 = 9090;

/// One front-end of Plimsoll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontEnd {
    /// What agents call it.
    pub name: &'static str,
    pub port: u16,
    pub mechanism: &'static str,
    policy: &'static str,
}

/// In front of nginx.
pub const BESIDE_PROXIES: [FrontEnd; 1] =
    [FrontEnd { name: "proxy", port: PLIMSOLL_PORT, mechanism: "proxy", policy: "round_robin" }];
/// In front of agents.
pub const BEFORE_AGENTS: [FrontEnd; 3] = [
    FrontEnd { name: "front-end", port: PLIMSOLL_PORT, mechanism: "handoff", policy: "uri_hash" },
    FrontEnd { name: "proxy", port: PROXY_PORT, mechanism: "proxy", policy: "uri_hash" },
    FrontEnd { name: "auto", port: AUTO_PORT, mechanism: "auto", policy: "uri_hash" },
];

/// In front of nginx with the virtual address, each on a lab of its own.
pub const AT_LAYER_4: [FrontEnd; 2] = [
    FrontEnd { name: "direct", port: PLIMSOLL_PORT, mechanism: "direct", policy: "round_robin" },
    FrontEnd { name: "sniffed", port: PLIMSOLL_PORT, mechanism: "direct", policy: "csld" },
];

impl FrontEnd {
    /// Whether agents get connections from it.
    pub fn hands_off(&self) -> bool {
        matches!(self.mechanism, "handoff" | "auto")
    }
}

/// The admin API of the front-end with this port, within its node.
pub fn admin(port: u16) -> SocketAddr {
    let number = BEFORE_AGENTS.iter().position(|front_end| front_end.port == port).unwrap_or(0);
    (Ipv4Addr::LOCALHOST, ADMIN_PORT + number as u16).into()
}

const TEMPORARY: &str = "client_body_temp_path /run/t1; proxy_temp_path /run/t2; fastcgi_temp_path /run/t3; \
                         uwsgi_temp_path /run/t4; scgi_temp_path /run/t5;";

/// nginx as a back-end, with a Unix socket too for the shim.
pub fn nginx_backend(name: &str, own: Ipv4Addr, unix: bool) -> String {
    let unix = if unix { "listen unix:/run/nginx.sock;" } else { "" };
    format!(
        "daemon off; user root; worker_processes 1; pid /run/nginx.pid; error_log /run/nginx.err;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on; open_file_cache max=100; {TEMPORARY}
  add_header X-Backend {name};
  server {{ listen {own}:{BACKEND_PORT} backlog=4096; {unix} root /run/www; }} }}
"
    )
}

/// nginx as a proxy; at another port it answers itself.
pub fn nginx_proxy(address: Ipv4Addr, backends: &[(String, Ipv4Addr)]) -> String {
    let list: String = backends.iter().map(|(_, own)| format!("server {own}:{BACKEND_PORT}; ")).collect();
    format!(
        "daemon off; user root; worker_processes 1; pid /run/nginx.pid; error_log /run/nginx.err;
events {{ worker_connections 8192; }}
http {{ access_log off; keepalive_requests 100000000; {TEMPORARY}
  upstream b {{ keepalive 512; keepalive_requests 100000000; {list} }}
  server {{ listen {address}:{NGINX_PORT} backlog=4096;
    location / {{ proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}
  server {{ listen {address}:{ITSELF_PORT} backlog=4096; root /run/www; sendfile on; tcp_nopush on; open_file_cache max=100; }} }}
"
    )
}

/// HAProxy.
pub fn haproxy(address: Ipv4Addr, backends: &[(String, Ipv4Addr)]) -> String {
    let mut text = format!(
        "global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  http-reuse always
frontend f
  bind {address}:{HAPROXY_PORT} backlog 4096
  default_backend b
backend b
  balance roundrobin
"
    );
    for (name, own) in backends {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  server {name} {own}:{BACKEND_PORT}");
    }
    text
}

/// HAProxy in TCP mode.
pub fn haproxy_tcp(address: Ipv4Addr, backends: &[(String, Ipv4Addr)]) -> String {
    let mut text = format!(
        "global
  nbthread 1
  maxconn 4096
defaults
  mode tcp
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  option splice-auto
listen l
  bind {address}:{PLIMSOLL_PORT} backlog 4096
  balance roundrobin
"
    );
    for (name, own) in backends {
        let _ = writeln!(text, "  server {name} {own}:{BACKEND_PORT}");
    }
    text
}

/// Address translation in turn. Clients are on the same segment, so answers have to be led back by a translated source, too.
pub fn nat(address: Ipv4Addr, backends: &[(String, Ipv4Addr)]) -> String {
    let list: Vec<String> =
        backends.iter().enumerate().map(|(number, (_, own))| format!("{number} : {own}")).collect();
    format!(
        "table ip bench {{
  chain pre {{
    type nat hook prerouting priority dstnat
    ip daddr {address} tcp dport {PLIMSOLL_PORT} dnat to numgen inc mod {} map {{ {} }}
  }}
  chain post {{
    type nat hook postrouting priority srcnat
    tcp dport {BACKEND_PORT} masquerade
  }}
}}
",
        list.len(),
        list.join(", ")
    )
}

/// Plimsoll's front-end.
pub fn plimsoll(front_end: &FrontEnd, address: Ipv4Addr, backends: &[(String, Ipv4Addr)]) -> String {
    let FrontEnd { name, port, mechanism, policy } = front_end;
    let mut text = format!(
        "mechanism = \"{mechanism}\"
workers = 1
[[listener]]
address = \"{address}:{port}\"
[policy]
name = \"{policy}\"
[target]
hash_key = \"none\"
[admission]
limit = \"none\"
[health]
probe = \"tcp\"
[admin]
address = \"{}\"
",
        admin(*port)
    );
    if *mechanism == "direct" {
        text += "[direct]\ninterfaces = [\"eth0\"]\n";
    }
    if front_end.hands_off() {
        // Small responses, too, are to be handed off here, unless the front-end chooses.
        let all = if *mechanism == "handoff" { "min_size = 0\n" } else { "" };
        text +=
            &format!("[handoff]\nname = \"{name}\"\nkey_file = \"/run/key\"\ninterfaces = [\"eth0\"]\n{all}");
    }
    for (name, own) in backends {
        let _ = write!(text, "[[backend]]\nname = \"{name}\"\naddress = \"{own}:{BACKEND_PORT}\"\n");
        if front_end.hands_off() {
            let _ = writeln!(text, "agent = \"{own}:{AGENT_PORT}\"");
        }
    }
    text
}
