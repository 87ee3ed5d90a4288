//! Serde forms of a scenario's values: each is a number or the command line's text; lists may also be one
//! value or a text with commas.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::Nanos;
use plimsoll_policy::params::GivenValue;
use plimsoll_sim::hardware::{HardwareSpec, find_hardware};
use plimsoll_sim::{Arrivals, Dealing, Fault, HotSpot, PartitionPlan, TimeDistribution};
use plimsoll_trace::{FieldMap, Format};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::choice::{LoadInformationChoice, StrategyChoice};
use super::values;
use crate::scenario::{Admission, Tables};

/// Declares a module for `serde(with)` from a function that reads the value and one that writes it.
macro_rules! form {
    (optional $name:ident: $type:ty = $read:expr) => {
        pub(super) mod $name {
            use super::*;

            pub(in crate::spec) fn deserialize<'de, D: Deserializer<'de>>(
                d: D,
            ) -> Result<Option<$type>, D::Error> {
                let read: fn(&GivenValue) -> Result<$type, String> = $read;
                let given = Option::<GivenValue>::deserialize(d)?;
                given.as_ref().map(read).transpose().map_err(D::Error::custom)
            }

            pub(in crate::spec) fn serialize<S: Serializer>(
                value: &Option<$type>,
                s: S,
            ) -> Result<S::Ok, S::Error> {
                value.serialize(s)
            }
        }
    };
    ($name:ident: $type:ty = $read:expr, $show:expr) => {
        pub(super) mod $name {
            use super::*;

            pub(in crate::spec) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<$type, D::Error> {
                let read: fn(&GivenValue) -> Result<$type, String> = $read;
                read(&GivenValue::deserialize(d)?).map_err(D::Error::custom)
            }

            pub(in crate::spec) fn serialize<S: Serializer>(value: &$type, s: S) -> Result<S::Ok, S::Error> {
                ($show)(value).serialize(s)
            }
        }
    };
}

form!(cache_size: values::CacheSize = values::cache_size, |v: &values::CacheSize| v.to_string());
form!(optional optional_size: u64 = values::size);
form!(optional optional_positive: f64 = values::positive);
form!(optional optional_count: u64 = first);
form!(optional optional_format: Format = format);
form!(optional optional_fields: FieldMap = |given| given.to_string().parse());
form!(share: f64 = values::share, |v: &f64| *v);
form!(count: u64 = values::count, |v: &u64| *v);
form!(arrivals: Arrivals = values::arrivals, values::show_arrivals);
form!(front_ends: u16 = values::front_ends, |v: &u16| *v);
form!(dealing: Dealing = values::dealing, values::show_dealing);
form!(tables: Tables = Tables::read, |v: &Tables| v.name());
form!(partitions: PartitionPlan = values::partitions, values::show_partitions);
form!(time: Nanos = values::time, values::show_time);
form!(admission: Admission = values::admission, values::show_admission);
form!(cache: &'static CacheSpec = cache_spec, |v: &&'static CacheSpec| v.name);
form!(hardware: &'static HardwareSpec = |given| find_hardware(&given.to_string()), |v: &&'static HardwareSpec| v.name);

fn first(given: &GivenValue) -> Result<u64, String> {
    let n = values::count(given)?;
    if n == 0 { Err("expected a whole number above 0, not `0`".to_owned()) } else { Ok(n) }
}

fn format(given: &GivenValue) -> Result<Format, String> {
    given.to_string().parse().map_err(|error: plimsoll_trace::TraceError| error.to_string())
}

fn cache_spec(given: &GivenValue) -> Result<&'static CacheSpec, String> {
    plimsoll_cache::find(&given.to_string()).map_err(|error| error.to_string())
}

/// The entries of a list: one value, a text that `split` takes apart, or an array of such.
struct List<T, F>(F, PhantomData<T>);

impl<'de, T, F: Fn(&GivenValue) -> Result<Vec<T>, String>> Visitor<'de> for List<T, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, or an array of these")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        (self.0)(&text.into()).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Vec<T>, E> {
        (self.0)(&n.into()).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Vec<T>, E> {
        let given = GivenValue::deserialize(IntoDeserializer::<E>::into_deserializer(n))?;
        (self.0)(&given).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<T>, A::Error> {
        let mut out = Vec::new();
        while let Some(given) = all.next_element::<GivenValue>()? {
            out.extend((self.0)(&given).map_err(A::Error::custom)?);
        }
        Ok(out)
    }
}

fn list<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl Fn(&GivenValue) -> Result<Vec<T>, String>,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(List(read, PhantomData))
}

/// A list of texts without splitting at commas.
pub(super) fn texts<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    list(d, |given| Ok(vec![given.to_string()]))
}

/// Numbers of back-ends.
pub(super) fn backends<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<usize>, D::Error> {
    list(d, |given| match given {
        GivenValue::Text(text) => text.split(',').map(|one| values::backends(&one.into())).collect(),
        given => values::backends(given).map(|n| vec![n]),
    })
}

/// Kinds of load information: a text with commas, or an array of texts and tables.
pub(super) fn load_information<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Vec<LoadInformationChoice>, D::Error> {
    list(d, |given| LoadInformationChoice::list(&given.to_string()).map_err(|error| error.to_string()))
}

/// Hot spots.
pub(super) fn hot_spots<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<HotSpot>, D::Error> {
    list(d, |given| values::hot_spot(given).map(|spot| vec![spot]))
}

/// Writes what [`hot_spots`] reads.
pub(super) fn show_hot_spots<S: Serializer>(spots: &[HotSpot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(spots.iter().map(values::show_hot_spot))
}

/// Faults.
pub(super) fn faults<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Fault>, D::Error> {
    list(d, |given| values::fault(given).map(|fault| vec![fault]))
}

/// Writes what [`faults`] reads.
pub(super) fn show_faults<S: Serializer>(faults: &[Fault], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(faults.iter().map(values::show_fault))
}

/// Strategies: a text with commas, a table, or an array of these.
pub(super) fn strategies<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<StrategyChoice>, D::Error> {
    struct Strategies;
    impl<'de> Visitor<'de> for Strategies {
        type Value = Vec<StrategyChoice>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("names of policies, or tables with `name` and `params`")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            StrategyChoice::list(text).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            StrategyChoice::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, all: A) -> Result<Self::Value, A::Error> {
            let all = Vec::<StrategiesEntry>::deserialize(SeqAccessDeserializer::new(all))?;
            Ok(all.into_iter().flat_map(|entry| entry.0).collect())
        }
    }

    /// An entry of the array.
    struct StrategiesEntry(Vec<StrategyChoice>);
    impl<'de> Deserialize<'de> for StrategiesEntry {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            strategies(deserializer).map(Self)
        }
    }
    d.deserialize_any(Strategies)
}

/// Settings: `"lard.t_low" = 25` and `lard.t_low = 25`, which TOML reads as a table in the table, are the same.
pub(super) mod settings {
    use super::*;

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number, a text, or a table of these")]
    enum OverrideEntry {
        Value(GivenValue),
        Owner(BTreeMap<String, GivenValue>),
    }

    pub(in crate::spec) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, GivenValue)>, D::Error> {
        let mut out = Vec::new();
        for (key, entry) in BTreeMap::<String, OverrideEntry>::deserialize(deserializer)? {
            match entry {
                OverrideEntry::Value(value) => out.push((key, value)),
                OverrideEntry::Owner(table) => {
                    out.extend(table.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
                }
            }
        }
        Ok(out)
    }

    pub(in crate::spec) fn serialize<S: Serializer>(
        settings: &[(String, GivenValue)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // The last of several values for one key counts.
        settings.iter().cloned().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

/// A distribution of service times.
pub(super) mod optional_service {
    use super::*;

    pub(in crate::spec) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<TimeDistribution>, D::Error> {
        let given = Option::<GivenValue>::deserialize(d)?;
        given.as_ref().map(values::service).transpose().map_err(D::Error::custom)
    }

    pub(in crate::spec) fn serialize<S: Serializer>(
        value: &Option<TimeDistribution>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(values::show_service).serialize(s)
    }
}
