//! How back-ends are watched.

use std::time::Duration;

use crate::address::{host_name, host_port};
use crate::declare::{Entries, KeyForm, KeyGroup, keys};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{self, Choice, Integer, Number, Text};
use crate::keys::{KeySpec, key};
use crate::reader::{ConfigReader, DeclaredTable, Wrong, quoted};
use crate::value::{ConfigValue, show_duration};

keys! {
    /// How back-ends are watched.
    ["health"] pub struct HealthConfig {
        {
            /// What is asked.
            probe: HealthProbe = PROBE
        }
        /// Time between checks of a healthy back-end.
        "interval" interval: Duration = Is("1s"), KeyKind::Duration;
        /// Time between checks after a bad answer, and while a back-end is down; at most `interval`.
        "fast_interval" fast_interval: Duration =
            Words("\"250ms\", or `interval` when that is shorter"), KeyKind::Duration => FastInterval;
        /// How long an answer may take.
        "timeout" timeout: Duration = Is("500ms"), KeyKind::Duration;
        /// Each interval is changed at random by at most this share of it.
        "jitter" jitter_permille: u16 = Is("0.2"), Number { min: 0.0, max: 1.0 } => Permille;
        /// Good answers in a row that bring a back-end up.
        "rise" rise: u32 = Is("2"), Integer { min: 1, max: 1000 };
        /// Bad ones in a row, failed connections of requests included, that take it down.
        "fall" fall: u32 = Is("2"), Integer { min: 1, max: 1000 };
        /// How long a back-end that comes up, comes back or joins gets less than its weight: its share grows from a tenth in even steps.
        "slow_start" slow_start: Duration = Is("0s"), KeyKind::DurationOrZero;
    }
}

/// What is asked for where nobody says so.
const GUESSED_PATH: &str = "/";
/// Good answers at a path that somebody named.
const STATUS: (u16, u16) = (200, 399);
/// Good answers at the guessed path: many servers have nothing there, or want a password.
const GUESSED_STATUS: (u16, u16) = (200, 499);

const PROBE: &[KeySpec] = &[
    key(
        "probe",
        Choice(&["http", "tcp", "none"]),
        Is("http"),
        "What is asked: `http`, a GET; `tcp`, a connection; `none`: back-ends are taken to be up.",
    ),
    key("path", Text("a path that starts with `/`"), Is("/"), "What the GET asks for; with `http` only."),
    key(
        "host",
        Text("a host name, with or without port"),
        Words("the back-end's address"),
        "The field `Host` of the GET; with `http` only.",
    ),
    key(
        "status",
        Text("a status or range of them from 100 to 599, e.g. \"200\" or \"200-399\""),
        Words(
            "\"200-399\", or \"200-499\" at the path `/`: many servers have nothing there, or want a password",
        ),
        "Good answers, both ends included; with `http` only.",
    ),
];

/// What a health check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthProbe {
    /// Nothing: back-ends are taken to be up.
    None,
    /// A TCP connection.
    Tcp,
    /// `GET path`, answered with a status in this range, both ends included.
    Http {
        /// Origin-form, starts with `/`.
        path: String,
        /// `Host` to send; by default the back-end's own address.
        host: Option<String>,
        /// Least good status.
        status_min: u16,
        /// Largest good status.
        status_max: u16,
    },
}

impl HealthProbe {
    /// Whether nobody has said what to ask for.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        let Self::Http { path, status_min, status_max, .. } = self else { return false };
        path == GUESSED_PATH && (*status_min, *status_max) == GUESSED_STATUS
    }
}

impl KeyGroup for HealthProbe {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) -> Option<Self> {
        let probe = reader.choice(section, "probe");
        let path = reader.text(section, "path", probe_path);
        let host = reader.text(section, "host", probe_host);
        let status = reader.text(section, "status", status);
        if probe != "http" {
            for name in ["path", "host", "status"] {
                if let Some(found) = section.found(name) {
                    let what = format!("has no effect with probe = \"{probe}\"");
                    reader.wrong_value(&found, (what, "remove it, or write probe = \"http\"".to_owned()));
                }
            }
        }
        Some(match probe {
            "tcp" => Self::Tcp,
            "none" => Self::None,
            _ => {
                let path = path?;
                let good = if path == GUESSED_PATH { GUESSED_STATUS } else { STATUS };
                let (status_min, status_max) = status.unwrap_or(good);
                Self::Http { path, host, status_min, status_max }
            }
        })
    }

    fn entries(&self) -> Entries {
        let text = |text: &str| ConfigValue::Text(text.to_owned());
        match self {
            Self::None => vec![("probe", text("none"))],
            Self::Tcp => vec![("probe", text("tcp"))],
            Self::Http { path, host, status_min, status_max } => {
                let mut out = vec![("probe", text("http")), ("path", text(path))];
                out.extend(host.iter().map(|host| ("host", text(host))));
                out.push(("status", ConfigValue::Text(format!("{status_min}-{status_max}"))));
                out
            }
        }
    }
}

fn probe_path(text: &str) -> Result<String, Wrong> {
    if text.starts_with('/') && text.len() <= 4096 && text.chars().all(|c| c.is_ascii_graphic() && c != '#') {
        return Ok(text.to_owned());
    }
    let remedy = "write a path such as \"/health\", other characters than ASCII as %XX".to_owned();
    Err((format!("{} is no path", quoted(text)), remedy))
}

fn probe_host(text: &str) -> Result<String, Wrong> {
    if host_name(text).is_some() || host_port(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err((format!("{} is no host name", quoted(text)), "write e.g. \"app.internal\"".to_owned()))
}

fn status(text: &str) -> Result<(u16, u16), Wrong> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let one = |t: &str| t.trim().parse::<u16>().ok().filter(|s| (100..=599).contains(s));
    match (one(min), one(max)) {
        (Some(min), Some(max)) if min <= max => Ok((min, max)),
        _ => {
            let remedy =
                "write a status or range of them from 100 to 599, e.g. \"200\" or \"200-399\"".to_owned();
            Err((format!("{} is no range of statuses", quoted(text)), remedy))
        }
    }
}

/// `fast_interval` as read, before it is known whether a shorter `interval` replaces it.
struct FastInterval;

impl KeyForm<Duration> for FastInterval {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        Some(match section.found(name) {
            Some(_) => reader.duration(section, name),
            None => Duration::from_millis(250),
        })
    }

    fn show(span: &Duration) -> Option<ConfigValue> {
        Some(ConfigValue::Text(show_duration(*span)))
    }
}

/// A share from 0 to 1, kept in per mille.
pub(super) struct Permille;

impl KeyForm<u16> for Permille {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<u16> {
        Some((reader.number(section, name) * 1000.0).round() as u16)
    }

    fn show(permille: &u16) -> Option<ConfigValue> {
        Some(ConfigValue::Number(f64::from(*permille) / 1000.0))
    }
}

impl HealthConfig {
    /// Reads the table and checks its two intervals against one another.
    pub(crate) fn read_checked<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
    ) -> Option<Self> {
        let mut config = Self::read(reader, section)?;
        if section.found("fast_interval").is_none() {
            config.fast_interval = config.fast_interval.min(config.interval);
        } else if config.fast_interval > config.interval {
            let (fast, slow) = (show_duration(config.fast_interval), show_duration(config.interval));
            let what = format!("{fast} is longer than interval ({slow})");
            let remedy = format!("write at most \"{slow}\", or a longer interval");
            reader.wrong(&section.key("fast_interval"), section.span_of("fast_interval"), (what, remedy));
        }
        Some(config)
    }
}
