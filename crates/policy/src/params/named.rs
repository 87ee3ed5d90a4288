//! A name with parameters, as users write it: a policy, a model.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::set::ParamSet;
use super::value::GivenValue;

/// A name with parameters as a user gave them, before the name is looked up.
///
/// In text it is `NAME` or `NAME:KEY=VALUE,KEY=VALUE`, in a file that text or a table `{ name, params }`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The parameters, in order.
    pub params: Vec<(String, GivenValue)>,
}

impl Named {
    /// This name with the parameters that are given in the set.
    #[must_use]
    pub fn with(name: &str, params: &ParamSet) -> Self {
        let params = params.given().map(|(key, value)| (key.to_owned(), value.into())).collect();
        Self { name: name.to_owned(), params }
    }
}

/// The text is not `NAME` or `NAME:KEY=VALUE,…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotNamed(String);

impl fmt::Display for NotNamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected NAME or NAME:KEY=VALUE,KEY=VALUE, not `{}`", self.0)
    }
}

impl std::error::Error for NotNamed {}

impl FromStr for Named {
    type Err = NotNamed;

    fn from_str(text: &str) -> Result<Self, NotNamed> {
        let Some((name, rest)) = text.split_once(':') else {
            return Ok(Self { name: text.to_owned(), params: Vec::new() });
        };
        let mut params = Vec::new();
        for part in rest.split(',') {
            match part.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    params.push((key.trim().to_owned(), value.trim().into()));
                }
                _ => return Err(NotNamed(text.to_owned())),
            }
        }
        Ok(Self { name: name.to_owned(), params })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (key, value)) in self.params.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// The table form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedTable {
    name: String,
    #[serde(default)]
    params: BTreeMap<String, GivenValue>,
}

/// Writes the name alone when no parameter is given, else the table.
impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.params.is_empty() {
            return serializer.serialize_str(&self.name);
        }
        NamedTable { name: self.name.clone(), params: self.params.iter().cloned().collect() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Named;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, NAME:KEY=VALUE,…, or a table with `name` and `params`")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Named, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Named, A::Error> {
                let table =
                    NamedTable::deserialize(MapAccessDeserializer::new(map)).map_err(A::Error::custom)?;
                Ok(Named { name: table.name, params: table.params.into_iter().collect() })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back() {
        for text in ["lard", "lard:t_low=10", "lard_r:t_low=10,k_s=2.5"] {
            assert_eq!(text.parse::<Named>().unwrap().to_string(), text);
        }
        for bad in ["lard:", "lard:t_low", "lard:=5", "lard:t_low=5,"] {
            let error = bad.parse::<Named>().unwrap_err().to_string();
            assert!(error.contains("NAME:KEY=VALUE") && error.contains(bad), "{error}");
        }
    }

    #[test]
    fn both_forms_of_a_file_are_the_same() {
        let read = |json: &str| serde_json::from_str::<Named>(json).map_err(|e| e.to_string());
        let short = read(r#""lard:t_low=10""#).unwrap();
        assert_eq!(short.params, [("t_low".to_owned(), GivenValue::Text("10".into()))]);
        let full = read(r#"{"name": "lard", "params": {"t_low": 10, "x": -1}}"#).unwrap();
        assert_eq!(full.params[0].1, GivenValue::Integer(10));
        assert_eq!(full.params[1].1, GivenValue::Number(-1.0));
        assert_eq!(read(&serde_json::to_string(&full).unwrap()), Ok(full));
        assert_eq!(serde_json::to_string(&read(r#"{"name": "wrr"}"#).unwrap()).unwrap(), r#""wrr""#);
        assert!(read(r#"{"name": "lard", "parms": {}}"#).unwrap_err().contains("parms"));
        assert!(
            read(r#"{"name": "lard", "params": {"a": true}}"#).unwrap_err().contains("expected a number")
        );
        assert!(read("5").unwrap_err().contains("a name"));
    }
}
