//! How many requests are let into the cluster, and what becomes of the others.

use std::time::Duration;

use toml::de::DeValue;

use crate::declare::{KeyForm, KeyValue, keys};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{self, ChoiceOrInteger, DurationOrZero, Integer};
use crate::reader::{ConfigReader, DeclaredTable, quoted};
use crate::value::ConfigValue;

keys! {
    /// How many requests are let into the cluster at once.
    ["admission"] pub struct AdmissionConfig {
        /// `lard`: (n - 1) * t_high + t_low - 1 for n back-ends of weight 1, with the thresholds of the policy, or 25 and 65
        /// when it has none. `adaptive`: the same, and more while back-ends hold many requests without being overloaded, as
        /// with long polls and event streams.
        "limit" limit: AdmissionLimitConfig =
            Is("adaptive"), ChoiceOrInteger { words: &["adaptive", "lard", "none"], min: 1, max: 1_000_000_000_000 };
        /// Requests that may wait for room; further ones are refused.
        "queue" queue: usize = Is("16384"), Integer { min: 0, max: 1_000_000 };
        /// How long a request waits at most; with 0 none waits. While there is no back-end, and while more requests come than
        /// overloaded back-ends answer, it waits for 100 ms at most.
        "queue_timeout" queue_timeout: Duration = Is("10s"), DurationOrZero;
        /// What a refused client is told to wait, rounded up to whole seconds.
        "retry_after" retry_after_s: u32 = Is("1s"), KeyKind::Duration => WholeSeconds;
    }
}

/// The admission limit as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionLimitConfig {
    /// [`AdmissionLimitConfig::Lard`], and more while back-ends are not overloaded.
    Adaptive,
    /// LARD's S from `t_low` and `t_high` of the policy, or their defaults when it has none.
    Lard,
    /// This many.
    Fixed(u64),
    /// No limit.
    Unlimited,
}

impl KeyValue for AdmissionLimitConfig {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        let Some(found) = section.found(name) else { return Some(Self::Adaptive) };
        Some(match found.value {
            DeValue::String(text) if text == "adaptive" => Self::Adaptive,
            DeValue::String(text) if text == "lard" => Self::Lard,
            DeValue::String(text) if text == "none" => Self::Unlimited,
            DeValue::String(text) => {
                let remedy = "write \"adaptive\", \"lard\", \"none\" or a number without quotes".to_owned();
                reader.wrong_value(&found, (format!("{} is no limit", quoted(text)), remedy));
                Self::Adaptive
            }
            _ => reader.integer_of(&found).map_or(Self::Adaptive, Self::Fixed),
        })
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(match self {
            Self::Adaptive => ConfigValue::Text("adaptive".to_owned()),
            Self::Lard => ConfigValue::Text("lard".to_owned()),
            Self::Fixed(limit) => ConfigValue::Integer(*limit),
            Self::Unlimited => ConfigValue::Text("none".to_owned()),
        })
    }
}

/// A duration, rounded up.
struct WholeSeconds;

impl KeyForm<u32> for WholeSeconds {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<u32> {
        let span = reader.duration(section, name);
        Some(u32::try_from(span.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX))
    }

    fn show(seconds: &u32) -> Option<ConfigValue> {
        Some(ConfigValue::Text(format!("{seconds}s")))
    }
}
