//! Logs with a JSON object in each line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::field_role::FieldRole;
use crate::line_error::LineError;
use crate::line_log::{LineSplitter, SplitLine};
use crate::options::ReadOptions;
use crate::raw_request::RawRequest;

/// Roles with the keys that may say them, the best first; a dot leads into an object.
pub(crate) type KeyRoles = &'static [(FieldRole, &'static [&'static str])];

/// A key that is looked for.
#[derive(Debug, Clone)]
struct SoughtKey {
    role: FieldRole,
    path: String,
}

/// Takes the sought keys from objects.
pub(crate) struct JsonSplitter {
    sought: Vec<SoughtKey>,
    size_bytes: Option<u64>,
}

impl JsonSplitter {
    /// Looks for the keys of a format; those that the user gives take the place of the format's.
    pub(crate) fn new(keys: KeyRoles, options: &ReadOptions) -> Self {
        let given = options.fields.as_ref();
        let own = given.map_or(&[][..], |map| map.fields());
        let size_bytes = given.and_then(|map| map.size_bytes());
        let replaced = |role: FieldRole| own.iter().any(|(own, _)| replaces(*own, role));
        let key = |role: FieldRole, path: &str| SoughtKey { role, path: path.to_owned() };
        let mut sought: Vec<SoughtKey> = own.iter().map(|(role, path)| key(*role, path)).collect();
        for (role, paths) in keys.iter().filter(|(role, _)| !replaced(*role)) {
            sought.extend(paths.iter().map(|path| key(*role, path)));
        }
        Self { sought, size_bytes }
    }
}

/// Whether a field that the user names makes one of the format needless.
fn replaces(own: FieldRole, role: FieldRole) -> bool {
    let kind = |role| match role {
        FieldRole::End => FieldRole::Time,
        FieldRole::Request | FieldRole::Url => FieldRole::Target,
        other => other,
    };
    std::mem::discriminant(&kind(own)) == std::mem::discriminant(&kind(role))
}

impl LineSplitter for JsonSplitter {
    fn split<'a>(&mut self, line: &'a [u8]) -> Result<SplitLine<'a>, LineError> {
        const NO_OBJECT: LineError = LineError::Text("line is no JSON object");
        // nginx leaves bytes that are not UTF-8 as they are.
        let text = String::from_utf8_lossy(line);
        let mut found = Found { sought: &self.sought, values: vec![None; self.sought.len()] };
        let all: Vec<(usize, usize)> = (0..self.sought.len()).map(|at| (at, 0)).collect();
        let mut json = serde_json::Deserializer::from_str(&text);
        ObjectSeed { found: &mut found, open: all }.deserialize(&mut json).map_err(|_| NO_OBJECT)?;
        json.end().map_err(|_| NO_OBJECT)?;
        let mut raw = RawRequest::default();
        // KeyRoles of one role stand together, the best first.
        let mut said = None;
        for (key, value) in self.sought.iter().zip(found.values) {
            if let Some(value) = value
                && said != Some(key.role)
                && raw.set(key.role, Cow::Owned(value.into_bytes()))
            {
                said = Some(key.role);
            }
        }
        if raw.is_no_request() {
            return Ok(SplitLine::Event);
        }
        if let Some(size_bytes) = self.size_bytes {
            raw.set(FieldRole::Size, Cow::Owned(size_bytes.to_string().into_bytes()));
        }
        Ok(SplitLine::Request(raw))
    }
}

/// The values of sought keys.
struct Found<'k> {
    sought: &'k [SoughtKey],
    values: Vec<Option<String>>,
}

/// Reads a value within which keys are open: each by its number and how much of its path has led here.
struct ObjectSeed<'f, 'k> {
    found: &'f mut Found<'k>,
    open: Vec<(usize, usize)>,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ObjectSeed<'_, '_> {
    /// Keeps a value for every key whose path ends here.
    fn keep(&mut self, value: &dyn fmt::Display) {
        for &(at, used) in &self.open {
            if used > self.found.sought[at].path.len() {
                self.found.values[at].get_or_insert_with(|| value.to_string());
            }
        }
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let within: Vec<(usize, usize)> = self
                .open
                .iter()
                .filter_map(|&(at, used)| {
                    let rest = self.found.sought[at].path.get(used..)?.strip_prefix(&*key)?;
                    (rest.is_empty() || rest.starts_with('.')).then_some((at, used + key.len() + 1))
                })
                .collect();
            if within.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(ObjectSeed { found: &mut *self.found, open: within })?;
            }
        }
        Ok(())
    }

    /// Of several values, as of headers, the first one.
    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Self { found, open } = self;
        if values.next_element_seed(ObjectSeed { found, open })?.is_some() {
            while values.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.keep(&text);
        Ok(())
    }

    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        self.keep(&number);
        Ok(())
    }

    fn visit_i64<E>(mut self, number: i64) -> Result<(), E> {
        self.keep(&number);
        Ok(())
    }

    fn visit_f64<E>(mut self, number: f64) -> Result<(), E> {
        self.keep(&number);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The keys of a JSON object that hold texts and numbers, for a message; `None` for a line that is none.
pub(crate) fn keys_of(line: &[u8]) -> Option<Vec<String>> {
    fn gather(value: &serde_json::Value, path: &str, keys: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(object) => {
                for (key, value) in object {
                    let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    gather(value, &inner, keys);
                }
            }
            serde_json::Value::String(_) | serde_json::Value::Number(_) => keys.push(path.to_owned()),
            _ => {}
        }
    }
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let mut keys = Vec::new();
    gather(&value, "", &mut keys);
    value.is_object().then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: KeyRoles = &[
        (FieldRole::Time, &["ts"]),
        (FieldRole::Target, &["request.uri", "uri"]),
        (FieldRole::Size, &["bytes"]),
        (FieldRole::Client, &["request.headers.X-Forwarded-For"]),
    ];

    fn read(line: &str, fields: Option<&str>) -> Option<(u64, String, u64, String)> {
        let options =
            ReadOptions { fields: fields.map(|text| text.parse().unwrap()), ..ReadOptions::default() };
        let mut splitter = JsonSplitter::new(KEYS, &options);
        let Ok(SplitLine::Request(raw)) = splitter.split(line.as_bytes()) else { return None };
        let request = raw.read().ok()?;
        let text = |text: Cow<'_, [u8]>| String::from_utf8(text.into_owned()).unwrap();
        let client = request.client.map(text).unwrap_or_default();
        Some((request.time_ns, text(request.target.ok()?), request.size_bytes.ok()?, client))
    }

    #[test]
    fn keys_lead_into_objects_and_arrays() {
        let line = r#"{"ts":1.5,"request":{"uri":"/a\"b","headers":{"X-Forwarded-For":["c","d"]},"n":[1,[2]]},"bytes":"7"}"#;
        assert_eq!(read(line, None), Some((1_500_000_000, "/a\"b".into(), 7, "c".into())));
        // A key may itself hold the dot; a better key wins wherever it stands.
        let flat = r#"{"uri":"/worse","request.uri":"/better","bytes":1,"ts":"2"}"#;
        assert_eq!(read(flat, None), Some((2_000_000_000, "/better".into(), 1, String::new())));
    }

    #[test]
    fn fields_of_the_user_take_the_place_of_the_formats() {
        let line = r#"{"ts":1,"when":3,"uri":"/a","bytes":5,"n":6}"#;
        assert_eq!(
            read(line, Some("time=when,size=n")),
            Some((3_000_000_000, "/a".into(), 6, String::new()))
        );
        assert_eq!(read(line, Some("size=100")).unwrap().2, 100);
    }

    #[test]
    fn other_lines_are_told_from_requests() {
        let mut splitter = JsonSplitter::new(KEYS, &ReadOptions::default());
        assert!(matches!(splitter.split(b"{\"msg\":\"started\",\"ts\":1}"), Ok(SplitLine::Event)));
        for line in ["[1]", "7", "{\"a\":", "{} {}", "x"] {
            assert!(!matches!(splitter.split(line.as_bytes()), Ok(SplitLine::Request(_))), "{line}");
        }
        assert_eq!(
            keys_of(b"{\"a\":{\"b\":1},\"c\":\"x\",\"d\":null}"),
            Some(vec!["a.b".into(), "c".into()])
        );
        assert_eq!(keys_of(b"[]"), None);
    }
}
