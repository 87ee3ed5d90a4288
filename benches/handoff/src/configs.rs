//! What the programs are told.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Where clients connect, at the virtual address.
pub const PLIMSOLL_PORT: u16 = 80;
pub const HAPROXY_PORT: u16 = 8001;
pub const NGINX_PORT: u16 = 8002;
pub const ITSELF_PORT: u16 = 8003;
/// Where back-ends answer proxies and checks, and their agents listen.
pub const BACKEND_PORT: u16 = 80;
pub const AGENT_PORT: u16 = 7400;
/// The admin API of the front-end, within its node.
pub const ADMIN: &str = "127.0.0.1:9090";

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

/// Plimsoll's front-end.
pub fn plimsoll(address: Ipv4Addr, backends: &[(String, Ipv4Addr)], handoff: bool) -> String {
    let (mechanism, policy) = if handoff { ("handoff", "uri_hash") } else { ("proxy", "round_robin") };
    let mut text = format!(
        "mechanism = \"{mechanism}\"
workers = 1
[[listener]]
address = \"{address}:{PLIMSOLL_PORT}\"
[policy]
name = \"{policy}\"
[admission]
limit = \"none\"
[health]
probe = \"tcp\"
[admin]
address = \"{ADMIN}\"
"
    );
    if handoff {
        // Small responses, too, are to be handed off here.
        text += "[handoff]\nkey_file = \"/run/key\"\ninterfaces = [\"eth0\"]\nmin_size = 0\n";
    }
    for (name, own) in backends {
        let _ = write!(text, "[[backend]]\nname = \"{name}\"\naddress = \"{own}:{BACKEND_PORT}\"\n");
        if handoff {
            let _ = writeln!(text, "agent = \"{own}:{AGENT_PORT}\"");
        }
    }
    text
}
