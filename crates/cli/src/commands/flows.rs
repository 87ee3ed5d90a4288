//! `plimsoll flows`: the connections that back-ends have, as a running front-end knows them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use plimsoll_config::{Admin, Config};
use plimsoll_report::format::bytes;
use plimsoll_report::{Align, Table};
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::error::CliError;
use crate::output;

/// How long the front-end may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an answer.
const ANSWER_BYTES: usize = 64 << 20;

/// Arguments of `flows`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Configuration of the front-end that is asked; it must run on this machine, or its admin API be reachable from here
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// Only connections of this back-end
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,

    /// Only connections of this client
    #[arg(long, value_name = "ADDRESS")]
    client: Option<IpAddr>,

    /// Show so many at most, the oldest first
    #[arg(long, value_name = "N", default_value_t = 40)]
    limit: usize,

    /// Print the answer of the admin API, one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Flows {
    count: usize,
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct Flow {
    client: String,
    address: String,
    protocol: String,
    backend: Option<String>,
    phase: String,
    age_s: f64,
    idle_s: f64,
    acknowledged_bytes: u64,
    forwarded_bytes: u64,
}

#[derive(Deserialize)]
struct Refused {
    error: String,
    remedy: String,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let path = &args.config;
    let config = Config::load(path).map_err(|errors| CliError::config(path, &errors))?;
    let admin = config.admin.as_ref().ok_or_else(|| {
        CliError::Failed(format!("{} switches the admin API off, which knows the flows", path.display()))
    })?;
    let text = ask(admin, &target(args))?;
    if args.json {
        return output::print(&text);
    }
    let flows: Flows = serde_json::from_str(&text)
        .map_err(|error| CliError::Failed(format!("{} answers in an unknown way: {error}", admin.address)))?;
    output::print(&shown(&flows))
}

fn target(args: &Args) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", &args.limit.to_string());
    if let Some(name) = &args.backend {
        query.append_pair("backend", name);
    }
    if let Some(client) = args.client {
        query.append_pair("client", &client.to_string());
    }
    format!("/flows?{}", query.finish())
}

/// What the admin API answers.
pub(super) fn ask(admin: &Admin, target: &str) -> Result<String, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failed(format!("cannot ask the front-end: {error}")))?;
    let address = reachable(admin.address);
    let asked = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, get(address, admin.token.as_deref(), target)).await
    });
    let failed = |why: &str| {
        CliError::Failed(format!(
            "cannot ask the front-end at {address}: {why}; does it run with this configuration?"
        ))
    };
    let (status, text) = match asked {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => return Err(failed(&why)),
        Err(_) => return Err(failed("it does not answer")),
    };
    if status == StatusCode::OK {
        return Ok(text);
    }
    Err(match serde_json::from_str::<Refused>(&text) {
        Ok(refused) => CliError::Failed(format!("{}: {}", refused.error, refused.remedy)),
        Err(_) => failed(&format!("it answers {status}")),
    })
}

async fn get(address: SocketAddr, token: Option<&str>, target: &str) -> Result<(StatusCode, String), String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let mut request = Request::get(target).header("Host", address.to_string());
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::select! {
        answer = answer => answer,
        // It ends only when the connection does.
        Err(error) = connection => Err(error.to_string()),
    }
}

/// Where a listener at this address is reached from its own machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn shown(flows: &Flows) -> String {
    if flows.count == 0 {
        return "No back-end has a client's connection.\n".to_owned();
    }
    let mut table = Table::new([
        ("client", Align::Left),
        ("to", Align::Left),
        ("back-end", Align::Left),
        ("state", Align::Left),
        ("age", Align::Right),
        ("silent", Align::Right),
        ("acknowledged", Align::Right),
        ("sent", Align::Right),
    ]);
    for flow in &flows.flows {
        let seconds = |s: f64| format!("{s:.1} s");
        table.row([
            flow.client.clone(),
            match &*flow.protocol {
                "tcp" => flow.address.clone(),
                other => format!("{}/{other}", flow.address),
            },
            flow.backend.clone().unwrap_or_else(|| "-".to_owned()),
            flow.phase.clone(),
            seconds(flow.age_s),
            seconds(flow.idle_s),
            bytes(flow.acknowledged_bytes as f64),
            bytes(flow.forwarded_bytes as f64),
        ]);
    }
    let more = flows.count - flows.flows.len().min(flows.count);
    let rest = if more > 0 { format!("… and {more} more; --limit shows them\n") } else { String::new() };
    table.to_text() + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_addresses() {
        let config = PathBuf::new();
        let (backend, client) = (Some("b 0&x".to_owned()), Some([10, 0, 0, 9].into()));
        let args = Args { config, backend, client, limit: 5, json: false };
        assert_eq!(target(&args), "/flows?limit=5&backend=b+0%26x&client=10.0.0.9");
        assert_eq!(reachable("0.0.0.0:9090".parse().unwrap()), "127.0.0.1:9090".parse().unwrap());
        assert_eq!(reachable("[::]:9090".parse().unwrap()), "[::1]:9090".parse().unwrap());
        assert_eq!(reachable("10.0.0.1:1".parse().unwrap()), "10.0.0.1:1".parse().unwrap());
    }
}
