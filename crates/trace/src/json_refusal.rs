//! Why JSON is of no known format, and what would do.

use crate::field_role::FieldRole;
use crate::first_line::quoted;
use crate::format_spec::Decode;
use crate::formats::json;
use crate::formats::json_logs::{JSON, KNOWN};
use crate::line_error::LineError;
use crate::line_log::LineSplitter as _;
use crate::options::ReadOptions;
use crate::prefix::Prefix;

/// Most keys that a message lists, and how many bytes they may take.
const LISTED: (usize, usize) = (30, 500);

/// Says which value cannot be used where the lines have all the keys of a known server; `None` of others.
pub(crate) fn unusable(prefix: &Prefix<'_>) -> Option<String> {
    let first = first_object(prefix)?;
    let keys = json::keys_of(first)?;
    KNOWN.iter().find_map(|(spec, roles)| {
        let Decode::Lines(log) = &spec.decode else { return None };
        // Without one of the keys it would be another error.
        let Err(LineError::Text(error)) = log.first_of(std::iter::once(first), &ReadOptions::default()) else {
            return None;
        };
        let is_at_fault = |role: &FieldRole| match role {
            FieldRole::Time | FieldRole::End => error.starts_with("time"),
            FieldRole::Size => error.starts_with("size"),
            FieldRole::Status => error.starts_with("status"),
            FieldRole::Target | FieldRole::Request | FieldRole::ServedPath => {
                error.starts_with("target") || error.starts_with("request")
            }
            _ => false,
        };
        let of_fault = roles.iter().filter(|(role, _)| is_at_fault(role)).flat_map(|(_, paths)| *paths);
        let key = of_fault.copied().find(|path| keys.iter().any(|key| key == path))?;
        Some(format!(
            "its lines have the keys of {}, but the value of {key} cannot be used: {error}; the first one is {}",
            spec.format,
            quoted(first)
        ))
    })
}

/// Says why a first line that is JSON, or begins or holds it, is refused; `None` for another line.
pub(crate) fn reason(first: &[u8]) -> Option<String> {
    if let Some(keys) = json::keys_of(first) {
        return Some(of_keys(&keys));
    }
    let begins = |mark: &[u8]| first.trim_ascii().strip_prefix(mark).map(<[u8]>::trim_ascii_start);
    if begins(b"[").is_some_and(|rest| rest.is_empty() || rest.starts_with(b"{")) {
        return Some(
            "it is a JSON array; put each object in a line of its own, such as with jq -c '.[]'".to_owned(),
        );
    }
    if begins(b"{").is_some_and(<[u8]>::is_empty) {
        return Some(
            "its JSON objects take several lines each; put each in one, such as with jq -c .".to_owned(),
        );
    }
    let at = memchr::memchr(b'{', first)?;
    if at > 0 {
        let held = json::keys_of(&first[at..]).is_some();
        return held.then(|| {
            format!(
                "its first line, {}, has words before a JSON object; cut them off, such as with sed 's/^[^{{]*//', or have the server \
                 write JSON alone, such as Caddy with format json",
                quoted(first)
            )
        });
    }
    let error = json::JsonSplitter::new(&[], &ReadOptions::default()).split(first).err()?;
    let (line, expected) = (quoted(first), JSON.format.expected());
    Some(format!(
        "its first line, {line}, begins as JSON, but {error}; a value that may be empty, such as nginx's \
         $upstream_response_time, needs quotes{expected}"
    ))
}

fn of_keys(keys: &[String]) -> String {
    let has = |wanted: &str| keys.iter().any(|key| key == wanted);
    if has("log") && has("stream") {
        return "its lines are a container's, which hold those of the log in the key log; take them out, such as with \
                jq -rj .log"
            .to_owned();
    }
    let needed = [
        ("time", guess(keys, &["time", "ts", "timestamp", "date"])),
        ("target", guess(keys, &["uri", "url", "path", "target", "request"])),
        ("size", guess(keys, &["bytes", "size", "length"])),
    ];
    // Without a status every request counts, so that it must not be forgotten.
    let useful = [("status", guess(keys, &["status", "code"])), ("method", guess(keys, &["method"]))];
    let fields: Vec<String> = needed
        .map(|(role, key)| format!("{role}={}", key.unwrap_or("KEY")))
        .into_iter()
        .chain(useful.into_iter().filter_map(|(role, key)| Some(format!("{role}={}", key?))))
        .collect();
    format!(
        "its lines are JSON with other keys than those of a known server ({}); say which hold time, target and size, \
         such as --fields {} (a number for size is that of every request)",
        listed(keys),
        fields.join(",")
    )
}

/// The key that is most likely to hold what has one of these names: one of that name, else one with the name in its own.
fn guess<'k>(keys: &'k [String], names: &[&str]) -> Option<&'k str> {
    let last = |key: &String| key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let same = names.iter().find_map(|name| keys.iter().find(|key| last(key) == *name));
    let alike = || names.iter().find_map(|name| keys.iter().find(|key| last(key).contains(name)));
    let inner =
        || names.iter().find_map(|name| keys.iter().find(|key| key.to_ascii_lowercase().contains(name)));
    same.or_else(alike).or_else(inner).map(String::as_str)
}

/// The first line that is an object, if most lines begin as objects do: a program may say other things before.
pub(crate) fn first_object<'a>(prefix: &Prefix<'a>) -> Option<&'a [u8]> {
    let begins = |line: &&[u8]| line.trim_ascii_start().starts_with(b"{");
    let objects = prefix.lines().filter(begins).count();
    let most = 2 * objects >= prefix.lines().count();
    prefix.lines().find(|line| most && json::keys_of(line).is_some())
}

/// Names in a message of one paragraph.
pub(crate) fn listed(names: &[String]) -> String {
    let (most, bytes) = LISTED;
    let mut text = String::new();
    for (number, name) in names.iter().enumerate() {
        if number == most || text.len() + name.len() > bytes {
            return text + ", …";
        }
        if number > 0 {
            text += ", ";
        }
        text.extend(name.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        reason(line.as_bytes()).unwrap()
    }

    #[test]
    fn json_with_other_keys_leads_to_fields() {
        let text = refused(r#"{"@t":{"timestamp":1},"req":{"url":"/a"},"n":5}"#);
        assert!(text.contains("--fields time=@t.timestamp,target=req.url,size=KEY (a number"), "{text}");
        let text = refused(
            r#"{"time":1,"req":{"method":"GET","url":"/a"},"res":{"statusCode":200,"size":["7"]},"responseTime":5}"#,
        );
        let fields =
            "--fields time=time,target=req.url,size=res.size,status=res.statusCode,method=req.method (";
        assert!(text.contains(fields), "{text}");
    }

    #[test]
    fn json_in_another_shape_leads_to_its_remedy() {
        assert!(refused("[").contains("jq -c '.[]'"));
        assert!(refused(r#"[{"a":1},"#).contains("jq -c '.[]'"));
        assert!(refused("{").contains("jq -c ."));
        assert!(refused(r#"Nov 23 21:22:10 lb nginx: {"a":1}"#).contains("sed 's/^[^{]*//'"));
        assert!(refused(r#"{"log":"x\n","stream":"stdout","time":"t"}"#).contains("jq -rj .log"));
        let text = refused(r#"{"msec":1,"upstream_response_time":}"#);
        assert!(text.contains("its byte 36") && text.contains("needs quotes"), "{text}");
        for line in ["", "x", "a {b} c", r#"h {www.example.org} "GET / HTTP/1.1""#] {
            assert_eq!(reason(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_message_lists_some_names() {
        let names: Vec<String> = (0..100).map(|i| format!("key{i}")).collect();
        assert!(listed(&names).ends_with("key29, …"));
        assert!(listed(&["a\n".into(), "x".repeat(600)]).starts_with("a , …"));
    }
}
