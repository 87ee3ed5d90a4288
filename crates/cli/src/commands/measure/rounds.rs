//! The requests of a measurement, in rounds.

use std::thread;
use std::time::{Duration, Instant};

use super::client::{MeasuredUrl, MeasuringConnection};
use super::estimate::{MeasuredSizes, RoundCosts};
use super::server_cpu::ServerCpu;
use crate::error::CliError;

/// How often everything is measured.
pub(super) const ROUNDS: usize = 5;
/// The most bytes of large answers in one round.
const MOST_LARGE_BYTES: u64 = 64 << 20;
/// The fewest large answers in one round.
const FEWEST_LARGE: u64 = 8;
/// The most bytes of either resource.
pub(super) const MOST_BYTES: u64 = 16 << 20;
/// A kept connection takes at least so many requests, as nginx's takes 1,000.
const FEWEST_KEPT: u64 = 50;
/// After the last answer a server may still write a line of its log, or end a connection.
const AFTERMATH: Duration = Duration::from_millis(20);

/// What is measured, and how much of it.
pub(super) struct MeasurePlan {
    pub(super) small: MeasuredUrl,
    pub(super) large: Option<MeasuredUrl>,
    pub(super) sizes: MeasuredSizes,
    /// Requests of a kind in one round.
    pub(super) requests: u64,
    /// The measurement ends at this time.
    pub(super) deadline: Instant,
    /// The server's processes, where they are known.
    pub(super) server: Option<ServerCpu>,
}

/// The costs of one kind of request.
struct KindCosts {
    /// Mean response time.
    response_us: f64,
    /// CPU time of the server for one request.
    cpu_us: Option<f64>,
}

impl MeasurePlan {
    /// All rounds with so many requests at once: CPU time where the server's processes are known, else response time.
    ///
    /// # Errors
    /// When a request fails, or time is over.
    pub(super) fn rounds(&self, at_once: u64) -> Result<Vec<RoundCosts>, CliError> {
        (0..ROUNDS).map(|_| self.round(at_once)).collect()
    }

    fn round(&self, at_once: u64) -> Result<RoundCosts, CliError> {
        let cost = |what, requests, keeps| {
            let costs = self.kind(what, requests, keeps, at_once)?;
            Ok::<_, CliError>(costs.cpu_us.unwrap_or(costs.response_us))
        };
        let large_us = match (&self.large, self.sizes.large_bytes) {
            (Some(large), Some(large_bytes)) => {
                let most = (MOST_LARGE_BYTES / large_bytes.max(1)).max(FEWEST_LARGE);
                Some(cost(large, self.requests.min(most), true)?)
            }
            _ => None,
        };
        Ok(RoundCosts {
            on_new_us: cost(&self.small, self.requests, false)?,
            on_kept_us: cost(&self.small, self.requests, true)?,
            large_us,
        })
    }

    /// `requests` of one kind.
    fn kind(
        &self,
        what: &MeasuredUrl,
        requests: u64,
        keeps: bool,
        at_once: u64,
    ) -> Result<KindCosts, CliError> {
        let each = requests.div_ceil(at_once);
        let before_ns = self.used_ns()?;
        let spans: Result<Vec<Duration>, CliError> = thread::scope(|scope| {
            let clients: Vec<_> =
                (0..at_once).map(|_| scope.spawn(|| self.client(what, each, keeps))).collect();
            clients
                .into_iter()
                .map(|client| {
                    client
                        .join()
                        .unwrap_or_else(|_| Err(CliError::Failed("a client has panicked".to_owned())))
                })
                .collect()
        });
        let count = (each * at_once) as f64;
        let response_us = spans?.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e6 / count;
        let cpu_us = match before_ns {
            None => None,
            Some(before_ns) => {
                thread::sleep(AFTERMATH);
                let used_ns = self.used_ns()?.unwrap_or(before_ns).saturating_sub(before_ns);
                if used_ns == 0 {
                    return Err(CliError::Failed(format!(
                        "the process of --pid used no CPU time while {} was asked for; name the process that serves it",
                        what.url()
                    )));
                }
                Some(used_ns as f64 / 1e3 / count)
            }
        };
        Ok(KindCosts { response_us, cpu_us })
    }

    fn used_ns(&self) -> Result<Option<u64>, CliError> {
        let used = self.server.as_ref().map(ServerCpu::used_ns).transpose();
        used.map_err(|e| {
            CliError::Failed(format!(
                "a process of the server has ended while it was measured ({e}); measure once it runs undisturbed"
            ))
        })
    }

    /// One client's requests, one after the other; how long all took.
    fn client(&self, what: &MeasuredUrl, requests: u64, keeps: bool) -> Result<Duration, CliError> {
        let open = || MeasuringConnection::open(what, self.deadline);
        let mut kept = keeps.then(open).transpose()?;
        let (mut sum, mut on_this) = (Duration::ZERO, 0);
        for _ in 0..requests {
            let began = Instant::now();
            let Some(connection) = &mut kept else {
                open()?.get(what, false, MOST_BYTES)?;
                sum += began.elapsed();
                continue;
            };
            let answer = connection.get(what, true, MOST_BYTES)?;
            sum += began.elapsed();
            on_this += 1;
            if answer.is_last {
                if on_this < FEWEST_KEPT.min(requests) {
                    return Err(CliError::Failed(format!(
                        "{} ends a connection after {on_this} of its requests, so that the two costs cannot be told apart; \
                         have it keep them (keep-alive) while you measure",
                        what.url()
                    )));
                }
                // A new connection among so many requests hardly counts.
                (kept, on_this) = (Some(open()?), 0);
            }
        }
        Ok(sum)
    }
}
