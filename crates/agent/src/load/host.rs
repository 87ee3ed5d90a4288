//! The host metrics: what is measured at this machine.
//!
//! | Figure | From |
//! | --- | --- |
//! | connections that wait to be accepted | the kernel's listening sockets of the server's port |
//! | processes that wait for the disk | `procs_blocked` of `/proc/stat` |
//! | requests that are being answered | the load that is told otherwise, or Apache's scoreboard |
//! | those of them that are computed | at most `procs_running` of `/proc/stat`, without the process that reads it |

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_wire::load::{HostFigures, LoadGauge};

use super::config::{HostConfig, LoadError, system};

/// How long what was measured holds, whoever asks.
const HOLDS: Duration = Duration::from_millis(5);
/// How often the scoreboard is read.
const PERIOD: Duration = Duration::from_millis(200);
/// How long its server may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest answer with a scoreboard.
const MOST_BYTES: u64 = 256 << 10;
/// No scoreboard has been read.
const UNKNOWN: u32 = u32::MAX;

/// Measures.
#[derive(Debug)]
pub(super) struct HostMeter {
    port: u16,
    gauge: LoadGauge,
    /// Workers that Apache's scoreboard shows at work.
    at_work: Option<Arc<AtomicU32>>,
    measured: Option<(Instant, HostFigures)>,
}

impl HostMeter {
    /// Measures at once, or returns what was measured just before.
    pub(super) fn read(&mut self) -> HostFigures {
        if let Some((at, figures)) = self.measured
            && at.elapsed() < HOLDS
        {
            return figures;
        }
        let figures = self.measure();
        self.measured = Some((Instant::now(), figures));
        figures
    }

    fn measure(&self) -> HostFigures {
        let pending = plimsoll_datapath::accept_queue(self.port).unwrap_or_else(|error| {
            tracing::debug!(%error, "the accept queue is not known");
            None
        });
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let told = self.at_work.as_ref().map(|at_work| at_work.load(Ordering::Relaxed));
        let serving = told.filter(|&told| told != UNKNOWN).unwrap_or_else(|| self.gauge.load());
        figures(pending.unwrap_or(0), &stat, serving)
    }
}

/// From the parts.
fn figures(pending: u32, stat: &str, serving: u32) -> HostFigures {
    let number = |name: &str| {
        let value = stat.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u32>().ok()
    };
    let at_disk = number("procs_blocked ").unwrap_or(0);
    let computing = number("procs_running ").unwrap_or(0).saturating_sub(1).min(serving);
    let short = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    HostFigures {
        pending: short(pending),
        at_disk: short(at_disk),
        serving_static: short((serving - computing).saturating_sub(at_disk)),
        serving_dynamic: short(computing),
    }
}

/// The meter, and the thread that reads the scoreboard, if there is one.
pub(super) fn start(
    config: &HostConfig,
    gauge: LoadGauge,
    stopping: Arc<AtomicBool>,
) -> Result<(HostMeter, Option<JoinHandle<()>>), LoadError> {
    let mut meter = HostMeter { port: config.server_port, gauge, at_work: None, measured: None };
    let Some((address, path)) = config.scoreboard.clone() else { return Ok((meter, None)) };
    let at_work = Arc::new(AtomicU32::new(UNKNOWN));
    meter.at_work = Some(Arc::clone(&at_work));
    let follow = move || {
        let mut warned = false;
        while !stopping.load(Ordering::Relaxed) {
            let read = read_scoreboard(address, &path);
            if let (Err(why), false) = (&read, warned) {
                tracing::warn!("the scoreboard at http://{address}{path} is not known: {why}");
            }
            warned = read.is_err();
            // The worker that answers this request is not counted.
            at_work.store(read.map_or(UNKNOWN, |n| n.saturating_sub(1)), Ordering::Relaxed);
            std::thread::sleep(PERIOD);
        }
    };
    let thread = std::thread::Builder::new().name("scoreboard".to_owned()).spawn(follow);
    Ok((meter, Some(thread.map_err(system("cannot start a thread"))?)))
}

/// Asks Apache for its scoreboard.
fn read_scoreboard(address: SocketAddr, path: &str) -> Result<u32, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(text)?;
    // At once: a server may answer, and close, when it has the first line.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut answer = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut answer).map_err(text)?;
    at_work(&answer)
        .ok_or_else(|| "it has no line `Scoreboard:`; the path of mod_status ends in ?auto".to_owned())
}

/// Workers that read a request, compute or send an answer, or look a name up.
pub(super) fn at_work(answer: &str) -> Option<u32> {
    let board = answer.lines().find_map(|line| line.strip_prefix("Scoreboard:"))?;
    u32::try_from(board.bytes().filter(|state| matches!(state, b'R' | b'W' | b'D')).count()).ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const STAT: &str = "cpu  1 2 3\nprocesses 99\nprocs_running 4\nprocs_blocked 2\n";

    #[test]
    fn parts_make_figures() {
        let wanted = HostFigures { pending: 7, at_disk: 2, serving_static: 5, serving_dynamic: 3 };
        assert_eq!(figures(7, STAT, 10), wanted);
        // More wait for the disk, and more run, than serve.
        let wanted = HostFigures { pending: 65_535, at_disk: 2, serving_static: 0, serving_dynamic: 1 };
        assert_eq!(figures(100_000, STAT, 1), wanted);
        assert_eq!(figures(0, "", 3), HostFigures { serving_static: 3, ..HostFigures::default() });
    }

    #[test]
    fn a_scoreboard_is_read() {
        let answer = "HTTP/1.1 200 OK\r\n\r\nBusyWorkers: 3\nScoreboard: __W_RKDLCG.SI....\n";
        assert_eq!(at_work(answer), Some(3));
        assert_eq!(at_work("HTTP/1.1 404 Not Found\r\n\r\n"), None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 256];
            let bytes = stream.read(&mut asked).unwrap();
            assert!(asked[..bytes].starts_with(b"GET /server-status?auto HTTP/1.0\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        assert_eq!(read_scoreboard(address, "/server-status?auto"), Ok(3));
    }

    #[test]
    fn what_was_just_measured_holds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = HostConfig { server_port: address.port(), scoreboard: None };
        let (mut meter, thread) = start(&config, LoadGauge::new(), Arc::default()).unwrap();
        assert!(thread.is_none());
        let _waiting = TcpStream::connect(address).unwrap();
        assert_eq!(meter.read().pending, 1);
        let at = meter.measured.unwrap().0;
        meter.measured = Some((at, HostFigures { pending: 9, ..HostFigures::default() }));
        let again = meter.read().pending;
        assert!(again == 9 || at.elapsed() >= HOLDS);
    }
}
