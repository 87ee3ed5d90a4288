//! What is to be measured.

use std::path::PathBuf;

use crate::mixed_requests::KINDS;
use crate::request_kind::mean;
use crate::{Error, ORIGINS, program};

pub(crate) struct Settings {
    /// The optimized program `plimsoll`.
    pub(crate) program: PathBuf,
    pub(crate) load: f64,
    pub(crate) seconds: f64,
    pub(crate) seeds: u64,
    pub(crate) policies: Vec<String>,
    pub(crate) round_trips_ms: Vec<f64>,
    /// Speed of the last origin beside the others.
    pub(crate) last: f64,
    /// Whether the front-end is told the speeds, as weights.
    pub(crate) told: bool,
    pub(crate) log: Option<PathBuf>,
    /// Lines for the table of the policy `csld`.
    pub(crate) csld: String,
}

impl Settings {
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> Result<Self, Error> {
        let split = |list: &str| list.split(',').map(str::to_owned).collect();
        let mut settings = Self {
            program: program(&args.next().ok_or("give the program `plimsoll`")?)?,
            load: 0.8,
            seconds: 20.0,
            seeds: 2,
            policies: split("csld,round_robin,least_connections,weighted_round_robin_host"),
            round_trips_ms: vec![0.0, 20.0, 150.0],
            last: 1.0,
            told: false,
            log: None,
            csld: String::new(),
        };
        for arg in args {
            let (key, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: give KEY=VALUE"))?;
            match key {
                "load" => settings.load = value.parse()?,
                "seconds" => settings.seconds = value.parse()?,
                "seeds" => settings.seeds = value.parse()?,
                "policies" => settings.policies = split(value),
                "round_trips" => {
                    settings.round_trips_ms = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "last" => settings.last = value.parse()?,
                "told" => settings.told = value.parse()?,
                "csld" => {
                    let line = |pair: &str| pair.replacen(':', " = ", 1) + "\n";
                    settings.csld = value.split(',').map(line).collect();
                }
                "log" => settings.log = Some(value.into()),
                _ => return Err(format!("{key}: there is no such key").into()),
            }
        }
        Ok(settings)
    }

    /// Requests per second at which the CPUs of all origins are busy for `load` of the time.
    pub(crate) fn rate_rps(&self) -> f64 {
        let needed_s = mean(&KINDS, |kind| kind.cpu_s).max(mean(&KINDS, |kind| kind.disk_s));
        let speed: f64 = (0..ORIGINS).map(|number| self.speed(number)).sum();
        self.load * speed / needed_s
    }

    /// The speed of an origin.
    pub(crate) fn speed(&self, number: usize) -> f64 {
        if number + 1 == ORIGINS { self.last } else { 1.0 }
    }
}
