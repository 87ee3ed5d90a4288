//! Active health checks.

use std::io;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_config::{HealthConfig, HealthProbe};
use plimsoll_policy::{Health, Rng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::http::mended::in_highest_version;
use crate::http2::{Http2Connections, is_reset_for_request};
use crate::net::halves::BackendIo as _;
use crate::net::is_local;
use crate::net::to_backend::ToBackend;

/// Bytes of an answer in which its status has to be.
const MOST_ANSWER_BYTES: usize = 16 << 10;

/// Bytes behind that which are read for the server's sake, and for how long.
const MOST_REST_BYTES: u64 = 1 << 20;
const REST: Duration = Duration::from_secs(1);

/// The most time-outs in a row that are ignored while the back-end answers clients, where the operator has named a path: that
/// may still hang.
const MOST_EXCUSED: u32 = 8;

/// How long the answer to a check is waited for after it has timed out. A back-end that does one thing after the other has the check wait
/// behind a long request; further checks beside it would only wait there, too.
const LATE: Duration = Duration::from_secs(5);

/// A check that is answered so soon after a kept connection was closed for it has got that one's place: there may be a pause between two
/// checks, and the first answer is one that came too late.
const SOON_FOR_CHECKS: Duration = Duration::from_secs(1);

/// A check under way.
type CheckUnderWay = Pin<Box<dyn Future<Output = Result<(), BadCheck>> + Send>>;

/// Checks a back-end until the task is aborted.
pub(crate) async fn watch(pool: Arc<BackendPool>, backend: Arc<Backend>) {
    let mut rng = Rng::new(seed(&backend), 0);
    let mut settled = true;
    let mut excused = 0;
    let mut late = None;
    let mut starving = None;
    // The first checks of many back-ends do not all happen at once.
    let first = pool.config.load().health.interval.mul_f64(rng.unit());
    tokio::time::sleep(first).await;
    loop {
        let config = pool.config.load_full();
        let up = backend.health() != Health::Down && !backend.is_doubtful();
        let probe = match &config.health.probe {
            // Without probes, only a back-end that refused connections is checked, so that it can come back.
            HealthProbe::None if up => None,
            HealthProbe::None => Some(&HealthProbe::Tcp),
            probe => Some(probe),
        };
        if let Some(probe) = probe {
            let answers = backend.answers();
            let result = checked(probe, &backend, config.health.timeout, &mut late).await;
            let failed = &backend.counts[backend.counts.len() - 1].checks_failed;
            let local = matches!(&result, Err(BadCheck::Failed(error)) if is_local(error));
            failed.add(u64::from(result.is_err() && !local));
            match &result {
                Ok(()) => {
                    excused = 0;
                    backend.set_blocked(false);
                    pool.good_sign(&backend);
                    if let Some(starving) = starving.take() {
                        backend.starves_no_more(starving, SOON_FOR_CHECKS);
                    }
                }
                Err(error) if local => {
                    starving = None;
                    tracing::warn!(backend = &*backend.name, %error, "cannot check");
                }
                // A busy back-end may queue the check while it answers others; that is no failure.
                Err(BadCheck::TimedOut(_))
                    if answers != backend.answers() && (probe.is_guess() || excused < MOST_EXCUSED) =>
                {
                    excused += 1;
                    starving = None;
                    backend.set_blocked(false);
                }
                Err(why) => {
                    excused = 0;
                    let blocked = matches!(why, BadCheck::TimedOut(_));
                    backend.set_blocked(blocked);
                    let wait_ms = u64::try_from(config.health.timeout.as_millis()).unwrap_or(u64::MAX);
                    let waited = || starving.or_else(|| backend.kept_places.waited(wait_ms));
                    starving = blocked.then(waited).flatten();
                    pool.bad_sign(&backend, why, why.is_doubtful(probe));
                }
            }
            // One that is down is looked at often: clients wait for it when it was the last one.
            let is_up = backend.health() != Health::Down && !backend.stands_in();
            settled = local || result.is_ok() && is_up;
        } else {
            starving = None;
        }
        let wait = pause(&config.health, settled, &mut rng);
        // A failed connection of a request is a reason to look at once.
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = pool.suspected.notified() => {
                tokio::time::sleep(config.health.fast_interval.min(wait)).await;
            }
        }
    }
}

/// Checks once, for at most this long. Where an earlier check is still under way, that one is waited for instead; its answer, which came too
/// late, is followed by another check.
async fn checked(
    probe: &HealthProbe,
    backend: &Arc<Backend>,
    timeout: Duration,
    late: &mut Option<(Instant, CheckUnderWay)>,
) -> Result<(), BadCheck> {
    if let Some((since, mut check)) = late.take()
        && tokio::time::timeout(timeout, &mut check).await.is_err()
    {
        if since.elapsed() < LATE {
            *late = Some((since, check));
        }
        return Err(BadCheck::TimedOut(timeout));
    }
    let begun = Instant::now();
    let mut check: CheckUnderWay = Box::pin(check(probe.clone(), Arc::clone(backend)));
    tokio::time::timeout(timeout, &mut check).await.unwrap_or_else(|_| {
        *late = Some((begun, check));
        Err(BadCheck::TimedOut(timeout))
    })
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

/// Why a check was bad.
#[derive(Debug, thiserror::Error)]
enum BadCheck {
    #[error("its name leads to no address")]
    Unresolved,
    #[error("its health check failed: {0}")]
    Failed(#[from] io::Error),
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("the answer has status {0}")]
    Status(u16),
    #[error("the answer is not HTTP")]
    NotHttp,
    #[error("the connection was closed before an answer")]
    Closed,
}

impl BadCheck {
    /// Whether requests may still be answered there.
    fn is_doubtful(&self, probe: &HealthProbe) -> bool {
        match self {
            Self::TimedOut(_) => true,
            // What fails may be this one page.
            Self::Status(_) => probe.is_guess(),
            Self::Unresolved | Self::Failed(_) | Self::NotHttp | Self::Closed => false,
        }
    }
}

async fn check(probe: HealthProbe, backend: Arc<Backend>) -> Result<(), BadCheck> {
    let Ok(address) = &backend.address else { return Err(BadCheck::Unresolved) };
    let mut stream = ToBackend::open(&backend, address, None, &Http2Connections::default()).await?;
    let HealthProbe::Http { path, host, status_min, status_max } = &probe else {
        return Ok(());
    };
    let host = host.as_deref().unwrap_or(&backend.authority);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: plimsoll-health\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 2048];
        let n = match stream.read(&mut piece).await {
            // A server of gRPC has no pages, and may answer so when nobody has said what to ask it for.
            Err(error) if probe.is_guess() && is_reset_for_request(&error) => return Ok(()),
            read => read?,
        };
        answer.extend_from_slice(&piece[..n]);
        if let Some(result) = judge(&answer, n == 0, *status_min..=*status_max) {
            // Over a Unix socket a server that is still writing would hear at once that nobody reads, and complain about each check.
            if n > 0 && address.is_unix() {
                tokio::spawn(read_rest(stream));
            }
            return result;
        }
    }
}

/// Reads what follows of an answer, as far as that comes soon.
async fn read_rest(stream: ToBackend) {
    let read = async { tokio::io::copy(&mut stream.take(MOST_REST_BYTES), &mut tokio::io::sink()).await };
    // Whatever comes of it, the check has its result.
    let _ = tokio::time::timeout(REST, read).await;
}

/// What the answer so far says; `None` where more of it has to come.
fn judge(answer: &[u8], ended: bool, good: RangeInclusive<u16>) -> Option<Result<(), BadCheck>> {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head.parse(answer);
    Some(match (parsed, head.code) {
        (Err(httparse::Error::Status), _) => Err(BadCheck::NotHttp),
        // Whatever is wrong behind the status line, it is an answer.
        (_, Some(code)) if good.contains(&code) => Ok(()),
        (_, Some(code)) => Err(BadCheck::Status(code)),
        (Ok(_), None) if ended => Err(BadCheck::Closed),
        (Ok(_), None) if answer.len() < MOST_ANSWER_BYTES => return None,
        // What follows the version has not come.
        (Err(httparse::Error::Version), None) if !ended && answer.len() <= b"HTTP/1.2".len() => return None,
        (Err(httparse::Error::Version), None) if let Some(answer) = in_highest_version(answer) => {
            return judge(&answer, ended, good);
        }
        _ => Err(BadCheck::NotHttp),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_check_says_why() {
        let says =
            |answer: &[u8], ended| judge(answer, ended, 200..=499).map(|r| r.map_err(|e| e.to_string()));
        assert_eq!(says(b"HTTP/1.1 404 Not Found\r\n", false), Some(Ok(())));
        assert_eq!(says(b"HTTP/1.1 200 OK\r\nA: \x01\r\n B\r\n\r\n", false), Some(Ok(())));
        assert_eq!(says(b"HTTP/1.3 200 OK\nA: b\n\n", false), Some(Ok(())));
        assert_eq!(says(b"HTTP/1.3", false), None);
        for bad in [&b"HTTP/1.1 200OK\r\n"[..], b"HTTP/1.1 200 \x01\r\n", b"HTTP/2.0 200 OK\r\n"] {
            assert!(matches!(says(bad, false), Some(Err(_))), "{}", bad.escape_ascii());
        }
        assert_eq!(says(b"HTTP/1.1 4", false), None);
        let bad = |answer: &[u8], ended| says(answer, ended).unwrap().unwrap_err();
        assert_eq!(bad(b"HTTP/1.1 503 Busy\r\n\r\n", false), "the answer has status 503");
        assert_eq!(bad(b"HTTP/1.1 2", true), "the connection was closed before an answer");
        assert_eq!(bad(b"SSH-2.0-OpenSSH_9.2\r\n", false), "the answer is not HTTP");
    }
}
