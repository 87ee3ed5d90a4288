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

/// A sought key by its number, and how much of its path has led to where the reader is.
type OpenKey = (usize, usize);

/// Takes the sought keys from objects.
pub(crate) struct JsonSplitter {
    sought: Vec<SoughtKey>,
    /// All of them, none of whose path has been followed.
    all: Vec<OpenKey>,
    /// Which of them a line had.
    seen: Vec<bool>,
    /// How many of them the user gave; these stand first.
    given: usize,
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
        let all = (0..sought.len()).map(|at| (at, 0)).collect();
        Self { all, seen: vec![false; sought.len()], given: own.len(), sought, size_bytes }
    }
}

/// Whether a field that the user names makes one of the format needless.
fn replaces(own: FieldRole, role: FieldRole) -> bool {
    let kind = |role| match role {
        FieldRole::End => FieldRole::Time,
        FieldRole::Request | FieldRole::Url | FieldRole::ServedPath | FieldRole::ServedQuery => {
            FieldRole::Target
        }
        FieldRole::Site => FieldRole::Host,
        other => other,
    };
    std::mem::discriminant(&kind(own)) == std::mem::discriminant(&kind(role))
}

impl LineSplitter for JsonSplitter {
    fn split<'a>(&mut self, line: &'a [u8]) -> Result<SplitLine<'a>, LineError> {
        let (sought, all, seen) = (&self.sought, &self.all, &mut self.seen);
        let values = parse(line, |text| {
            let mut found = Found { sought, seen: &mut *seen, values: vec![None; sought.len()] };
            let mut json = serde_json::Deserializer::from_str(text);
            ObjectSeed { found: &mut found, open: all }.deserialize(&mut json)?;
            json.end()?;
            Ok(found.values)
        })?;
        let mut raw = RawRequest::default();
        // Keys of one role stand together, the best first.
        let mut said = None;
        for (key, value) in self.sought.iter().zip(values) {
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

    fn given_seen(&self) -> &[bool] {
        &self.seen[..self.given]
    }
}

/// Has `read` parse a line of a log as JSON, which programs do not always write as the standard says.
fn parse<T>(line: &[u8], mut read: impl FnMut(&str) -> serde_json::Result<T>) -> Result<T, LineError> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err(LineError::Text("line is no JSON object"));
    }
    let text = utf8(line);
    let result = match read(&text) {
        // nginx (without `escape=json`) and Apache write `\x22`, which JSON does not know; it stays as logged.
        Err(_) if text.contains("\\x") => read(&text.replace("\\x", "\\\\x")),
        result => result,
    };
    result.map_err(|error| LineError::NoJson { byte: error.column() })
}

/// The line as text. nginx leaves bytes that are not UTF-8 as they are; a URL has them percent-encoded.
fn utf8(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(line.len() + 16);
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(text)
}

/// The values of sought keys.
struct Found<'k> {
    sought: &'k [SoughtKey],
    /// Which keys were there, whatever they held.
    seen: &'k mut [bool],
    values: Vec<Option<String>>,
}

/// Reads a value within which keys are open.
struct ObjectSeed<'f, 'k> {
    found: &'f mut Found<'k>,
    open: &'f [OpenKey],
}

/// Reads the name of a value, and says which keys are open within that.
struct NameSeed<'f, 'k> {
    found: &'f mut Found<'k>,
    open: &'f [OpenKey],
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_, '_> {
    type Value = Vec<OpenKey>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<OpenKey>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_, '_> {
    type Value = Vec<OpenKey>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Vec<OpenKey>, E> {
        let Found { sought, seen, .. } = self.found;
        let mut within = Vec::new();
        for &(at, used) in self.open {
            let path = &sought[at].path;
            let Some(rest) = path.get(used..).and_then(|path| path.strip_prefix(name)) else { continue };
            if rest.is_empty() || rest.starts_with('.') {
                seen[at] |= rest.is_empty();
                within.push((at, used + name.len() + 1));
            }
        }
        Ok(within)
    }
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
        for &(at, used) in self.open {
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
        while let Some(within) = map.next_key_seed(NameSeed { found: &mut *self.found, open: self.open })? {
            if within.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(ObjectSeed { found: &mut *self.found, open: &within })?;
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

    /// No status is not the status 200.
    fn visit_unit<E>(self) -> Result<(), E> {
        let Self { found, open } = self;
        let sought = found.sought;
        let open: Vec<OpenKey> =
            open.iter().copied().filter(|&(at, _)| sought[at].role == FieldRole::Status).collect();
        ObjectSeed { found, open: &open }.keep(&"-");
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
            // As the splitter takes it.
            serde_json::Value::Array(values) => {
                if let Some(first) = values.first() {
                    gather(first, path, keys);
                }
            }
            serde_json::Value::String(_) | serde_json::Value::Number(_) => keys.push(path.to_owned()),
            _ => {}
        }
    }
    let value: serde_json::Value = parse(line, |text| serde_json::from_str(text)).ok()?;
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
        // A value that nginx left out.
        let reason = splitter.split(b"{\"ts\":1,\"uri\":}").unwrap_err().to_string();
        assert_eq!(reason, "line is no JSON object, as its byte 15 shows");
        assert_eq!(
            keys_of(b"{\"a\":{\"b\":[1]},\"c\":\"x\",\"d\":null,\"e\":[]}"),
            Some(vec!["a.b".into(), "c".into()])
        );
        assert_eq!(keys_of(b"[]"), None);
    }

    #[test]
    fn what_programs_write_for_json_is_read() {
        // As nginx and Apache escape.
        let escaped = r#"{"ts":1,"uri":"/a\x22b\xC3\xA9","bytes":7}"#;
        assert_eq!(read(escaped, None).unwrap().1, r"/a\x22b\xC3\xA9");
        // Two targets that differ only by a byte that is no UTF-8 stay two.
        let mut splitter = JsonSplitter::new(KEYS, &ReadOptions::default());
        for (byte, target) in [(b'\xe8', "/%E8"), (b'\xe9', "/%E9")] {
            let line = [&b"{\"ts\":1,\"bytes\":7,\"uri\":\"/"[..], &[byte], b"\"}"].concat();
            let Ok(SplitLine::Request(raw)) = splitter.split(&line) else { panic!("{target}") };
            assert_eq!(raw.read().unwrap().target.unwrap(), target.as_bytes());
        }
    }

    #[test]
    fn a_status_of_null_is_none() {
        const WITH_STATUS: KeyRoles = &[(FieldRole::Time, &["ts"]), (FieldRole::Status, &["a", "b"])];
        let mut splitter = JsonSplitter::new(WITH_STATUS, &ReadOptions::default());
        for (line, status) in [(r#"{"ts":1,"a":null,"b":404}"#, Some(404)), (r#"{"ts":1,"a":null}"#, Some(0))]
        {
            let Ok(SplitLine::Request(raw)) = splitter.split(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(raw.read().unwrap().status, status, "{line}");
        }
    }

    #[test]
    fn given_keys_are_seen_even_when_they_are_null() {
        let fields = Some("time=ts,size=a.b,status=typo".parse().unwrap());
        let mut splitter = JsonSplitter::new(KEYS, &ReadOptions { fields, ..ReadOptions::default() });
        assert!(splitter.split(br#"{"ts":1,"uri":"/","a":{"b":null}}"#).is_ok());
        assert_eq!(splitter.given_seen(), [true, true, false]);
    }
}
