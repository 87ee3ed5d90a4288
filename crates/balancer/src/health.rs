//! Active health checks.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_config::{HealthConfig, HealthProbe};
use plimsoll_policy::{Health, Rng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::net::is_local;
use crate::shared::FrontEndShared;

/// Bytes of an answer in which its status has to be.
const MOST_ANSWER_BYTES: usize = 16 << 10;

/// The most time-outs in a row that are ignored while the back-end answers clients.
const MOST_EXCUSED: u32 = 8;

/// Checks a back-end until the task is aborted.
pub(crate) async fn watch(shared: Arc<FrontEndShared>, backend: Arc<Backend>) {
    let mut rng = Rng::new(seed(&backend), 0);
    let mut settled = true;
    let mut excused = 0;
    // The first checks of many back-ends do not all happen at once.
    let first = shared.config.load().health.interval.mul_f64(rng.unit());
    tokio::time::sleep(first).await;
    loop {
        let config = shared.config.load_full();
        let up = backend.health() != Health::Down;
        let probe = match &config.health.probe {
            // Without probes, only a back-end that refused connections is checked, so that it can come back.
            HealthProbe::None if up => None,
            HealthProbe::None => Some(&HealthProbe::Tcp),
            probe => Some(probe),
        };
        if let Some(probe) = probe {
            let answers = backend.answers();
            let failed = &backend.counts[backend.counts.len() - 1].checks_failed;
            let good = match tokio::time::timeout(config.health.timeout, check(probe, &backend)).await {
                Ok(Err(error)) if is_local(&error) => {
                    tracing::warn!(backend = &*backend.name, %error, "cannot check");
                    tokio::time::sleep(pause(&config.health, true, &mut rng)).await;
                    continue;
                }
                Ok(result) => matches!(result, Ok(true)),
                // A busy back-end may queue the check while it answers others; that is no failure. The
                // probe's path may still hang, so this is limited.
                Err(_) if answers != backend.answers() && excused < MOST_EXCUSED => {
                    excused += 1;
                    failed.add(1);
                    tokio::time::sleep(pause(&config.health, false, &mut rng)).await;
                    continue;
                }
                Err(_) => false,
            };
            excused = 0;
            failed.add(u64::from(!good));
            shared.sign(&backend, good);
            // One that is down is looked at often: clients wait for it when it was the last one.
            settled = good && backend.health() != Health::Down;
        }
        let wait = pause(&config.health, settled, &mut rng);
        // A failed connection of a request is a reason to look at once.
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.suspected.notified() => {
                tokio::time::sleep(config.health.fast_interval.min(wait)).await;
            }
        }
    }
}

fn pause(config: &HealthConfig, settled: bool, rng: &mut Rng) -> Duration {
    let base = if settled { config.interval } else { config.fast_interval };
    let jitter = f64::from(config.jitter_permille) / 1000.0;
    base.mul_f64((1.0 + jitter * (2.0 * rng.unit() - 1.0)).max(0.0))
}

/// Differs from back-end to back-end and from start to start: front-ends must not check in step.
pub(crate) fn seed(backend: &Backend) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) << 16 | u64::from(backend.id.0)
}

async fn check(probe: &HealthProbe, backend: &Backend) -> io::Result<bool> {
    let Ok(address) = backend.address else { return Ok(false) };
    let mut stream = TcpStream::connect(address).await?;
    let HealthProbe::Http { path, host, status_min, status_max } = probe else {
        return Ok(true);
    };
    let host = host.as_deref().unwrap_or(&backend.authority);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: plimsoll-health\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 2048];
        let n = stream.read(&mut piece).await?;
        answer.extend_from_slice(&piece[..n]);
        let mut fields = [httparse::EMPTY_HEADER; 128];
        let mut head = httparse::Response::new(&mut fields);
        match head.parse(&answer) {
            Ok(_) if head.code.is_some() => {
                return Ok(head.code.is_some_and(|code| (*status_min..=*status_max).contains(&code)));
            }
            Ok(_) if n > 0 && answer.len() < MOST_ANSWER_BYTES => {}
            _ => return Ok(false),
        }
    }
}
