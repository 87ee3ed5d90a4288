//! Costs from an idle server: one request at a time, a bounded number of them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_classes::learn::{ClassLearner, ObservedRequest};

use crate::commands::measure::client::{MeasuredUrl, MeasuringConnection};
use crate::error::CliError;

/// The most URLs.
const URLS_MOST: usize = 10_000;
/// The longest measurement in seconds.
const TIME_MOST_S: f64 = 3600.0;
/// The most bytes of a response.
const BYTES_MOST: u64 = 16 << 20;
/// The longest pause between two requests.
const PAUSE_MOST: Duration = Duration::from_millis(100);

/// What is asked for.
pub(super) struct LivePlan {
    urls: Vec<MeasuredUrl>,
    requests: u32,
    deadline: Instant,
}

impl LivePlan {
    /// Reads the URLs, and those of a file.
    pub(super) fn read(
        urls: &[String],
        file: Option<&Path>,
        requests: u32,
        limit_s: f64,
    ) -> Result<Self, CliError> {
        if limit_s > TIME_MOST_S {
            return Err(CliError::Usage(format!(
                "--limit-s takes up to {TIME_MOST_S} seconds, not {limit_s}"
            )));
        }
        let urls = match (file, urls) {
            (None, urls) => urls.to_vec(),
            (Some(file), [base]) => uris(file, base)?,
            (Some(_), _) => {
                return Err(CliError::Usage(
                    "with --uris, give --live one URL: the server of all of them".to_owned(),
                ));
            }
        };
        if urls.len() > URLS_MOST {
            return Err(CliError::Usage(format!(
                "{} URLs are too many; give at most {URLS_MOST}",
                urls.len()
            )));
        }
        let urls = urls.iter().map(|url| MeasuredUrl::read(url)).collect::<Result<Vec<_>, _>>()?;
        let deadline = Instant::now() + Duration::from_secs_f64(limit_s);
        Ok(Self { urls, requests, deadline })
    }

    /// Asks for each URL once, so that the server has what it needs, and then in rounds. Between requests there is a pause as long as the
    /// request took, so that the server is busy for at most half of the time.
    pub(super) fn measure(&self, learner: &mut ClassLearner) -> Result<(), CliError> {
        let start = Instant::now();
        for round in 0..=self.requests {
            for url in &self.urls {
                let mut connection = MeasuringConnection::open(url, self.deadline)?;
                let begins = Instant::now();
                let answer = connection.get_to_end(url, BYTES_MOST)?;
                let takes = begins.elapsed();
                if round > 0 {
                    let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
                    learner.observe(&ObservedRequest {
                        begins_ns: ns(begins - start),
                        takes_ns: ns(takes),
                        method: b"GET",
                        path_and_query: url.path().as_bytes(),
                        size_bytes: answer.body_bytes,
                        backend: None,
                        with_client: false,
                        counts: true,
                    });
                }
                thread::sleep(takes.min(PAUSE_MOST));
            }
        }
        Ok(())
    }
}

/// The URLs of a file with one path and query a line. `GET` may stand before it; other methods may change something and are refused.
fn uris(file: &Path, base: &str) -> Result<Vec<String>, CliError> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| {
        CliError::Failed(format!("cannot read {name}: {error}; name a text file with one URI a line"))
    })?;
    let base = base.trim_end_matches('/');
    let mut out = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let number: usize = number;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let uri = match line.split_once(' ') {
            Some(("GET", uri)) => uri.trim(),
            Some((method, _)) => {
                return Err(CliError::Usage(format!(
                    "{name} line {number}: `{method}` is not asked for, as it may change something at the server; name URIs for GET alone"
                )));
            }
            None => line,
        };
        if !uri.starts_with('/') {
            return Err(CliError::Usage(format!(
                "{name} line {number}: `{uri}` does not begin with `/`; write path and query, such as /search?q=tea"
            )));
        }
        out.push(format!("{base}{uri}"));
    }
    if out.is_empty() {
        return Err(CliError::Usage(format!("{name} has no URI; write one a line, such as /search?q=tea")));
    }
    Ok(out)
}
