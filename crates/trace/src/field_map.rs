//! Which named field of a log says what: what `--fields` gives.

use std::fmt;
use std::str::FromStr;

use crate::field_role::{FieldRole, SpanUnit};

/// The names by which a user speaks of roles.
const ROLES: &[(&str, FieldRole)] = &[
    ("time", FieldRole::Time),
    ("end", FieldRole::End),
    ("date", FieldRole::Date),
    ("target", FieldRole::Target),
    ("query", FieldRole::Query),
    ("request", FieldRole::Request),
    ("size", FieldRole::Size),
    ("status", FieldRole::Status),
    ("method", FieldRole::Method),
    ("client", FieldRole::Client),
    ("host", FieldRole::Host),
    ("service_s", FieldRole::Service(SpanUnit::S)),
    ("service_ms", FieldRole::Service(SpanUnit::Ms)),
    ("service_us", FieldRole::Service(SpanUnit::Us)),
    ("service_ns", FieldRole::Service(SpanUnit::Ns)),
    ("total_s", FieldRole::Total(SpanUnit::S)),
    ("total_ms", FieldRole::Total(SpanUnit::Ms)),
    ("total_us", FieldRole::Total(SpanUnit::Us)),
    ("total_ns", FieldRole::Total(SpanUnit::Ns)),
    ("backend", FieldRole::Backend),
];

/// Names of fields by what they say, as `time=ts,target=request.uri,size=bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMap {
    text: String,
    fields: Vec<(FieldRole, String)>,
    size_bytes: Option<u64>,
}

impl FieldMap {
    /// Roles with the names of their fields, in the order given.
    pub(crate) fn fields(&self) -> &[(FieldRole, String)] {
        &self.fields
    }

    /// What every request has and this does not say, where no known format says it.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let has = |roles: &[FieldRole]| self.fields.iter().any(|(role, _)| roles.contains(role));
        [
            ("time", has(&[FieldRole::Time, FieldRole::End])),
            ("target", has(&[FieldRole::Target, FieldRole::Request])),
            ("size", self.size_bytes.is_some() || has(&[FieldRole::Size])),
        ]
        .into_iter()
        .find_map(|(name, said)| (!said).then_some(name))
    }

    /// The size of every request, where a number stands in place of a field's name.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        self.size_bytes
    }
}

impl FromStr for FieldMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut map = Self { text: text.to_owned(), fields: Vec::new(), size_bytes: None };
        for part in text.split(',') {
            let known = || ROLES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            let (name, field) = part
                .split_once('=')
                .map(|(name, field)| (name.trim(), field.trim()))
                .filter(|(_, field)| !field.is_empty())
                .ok_or_else(|| {
                    format!("`{part}` does not say which field it means; write WHAT=FIELD, such as time=ts")
                })?;
            let role = ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role);
            let role = role.ok_or_else(|| format!("a log has no `{name}`; known are {}", known()))?;
            let said = |other: &FieldRole| std::mem::discriminant(other) == std::mem::discriminant(&role);
            if map.fields.iter().any(|(other, _)| said(other))
                || map.size_bytes.is_some_and(|_| said(&FieldRole::Size))
            {
                return Err(format!("`{name}` is named twice; give one field for it, in one unit"));
            }
            match field.parse() {
                Ok(number) if role == FieldRole::Size => map.size_bytes = Some(number),
                _ => map.fields.push((role, field.to_owned())),
            }
        }
        Ok(map)
    }
}

impl serde::Serialize for FieldMap {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl fmt::Display for FieldMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_request_has_must_be_named() {
        let missing = |text: &str| text.parse::<FieldMap>().unwrap().missing();
        assert_eq!(missing("end=a,request=b,size=1"), None);
        assert_eq!(missing("target=b,size=c"), Some("time"));
        assert_eq!(missing("time=a,size=c"), Some("target"));
        assert_eq!(missing("time=a,target=b"), Some("size"));
    }

    #[test]
    fn fields_are_read_or_refused_with_a_remedy() {
        let map: FieldMap = "time=ts, target=request.uri,size=8192,service_ms=took".parse().unwrap();
        assert_eq!(map.size_bytes(), Some(8192));
        let names: Vec<&str> = map.fields().iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["ts", "request.uri", "took"]);
        assert_eq!(map.fields()[2].0, FieldRole::Service(SpanUnit::Ms));
        let refused = |text: &str| text.parse::<FieldMap>().unwrap_err();
        assert!(refused("time").contains("WHAT=FIELD"));
        assert!(refused("time=").contains("WHAT=FIELD"));
        assert!(refused("tme=ts").contains("known are time, end,"));
        for twice in ["size=a,size=b", "size=8192,size=b", "service_ms=a,service_s=b"] {
            assert!(refused(twice).contains("named twice"), "{twice}");
        }
    }
}
