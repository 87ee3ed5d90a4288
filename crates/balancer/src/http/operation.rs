//! The name of a GraphQL operation in a JSON body.

/// The deepest nesting of values that is followed.
const DEEPEST: usize = 64;

/// The member `operationName` of a JSON object, as bytes; `None` if there is none, it is no text, or the body is something else. Looks
/// at each byte at most once, and never further than to the end of that member.
pub(crate) fn operation_name(body: &[u8]) -> Option<Vec<u8>> {
    let mut scan = JsonScan { rest: body };
    scan.takes(b'{')?;
    loop {
        let key = scan.text()?;
        scan.takes(b':')?;
        if key == b"operationName" {
            return scan.text().filter(|name| !name.is_empty());
        }
        scan.skip_value()?;
        scan.takes(b',')?;
    }
}

/// Walks over JSON (RFC 8259). It need not notice every error: what is no JSON has no operation that decides anything.
struct JsonScan<'a> {
    rest: &'a [u8],
}

impl JsonScan<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.rest.first() {
            self.rest = &self.rest[1..];
        }
        self.rest.first().copied()
    }

    /// The next byte after white space, which has to be this one.
    fn takes(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.next().map(drop)
    }

    /// A text without its quotes. Escapes of characters other than quote, backslash and slash do not occur in names: a text with
    /// one is none that is looked for.
    fn text(&mut self) -> Option<Vec<u8>> {
        self.takes(b'"')?;
        let mut out = Vec::new();
        loop {
            match self.next()? {
                b'"' => return Some(out),
                b'\\' => out.push(self.next()?),
                byte => out.push(byte),
            }
        }
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_text()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.next();
                    if depth > DEEPEST {
                        return None;
                    }
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.next();
                }
                b',' | b':' if depth > 0 => {
                    self.next();
                    continue;
                }
                b',' | b':' => return None,
                _ => self.skip_word(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_text(&mut self) -> Option<()> {
        self.next();
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => drop(self.next()?),
                _ => {}
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn skip_word(&mut self) {
        let ends = |byte: &u8| b",:]}\" \t\r\n".contains(byte);
        let end = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::operation_name;

    fn name(body: &str) -> Option<String> {
        operation_name(body.as_bytes()).map(|name| String::from_utf8(name).unwrap())
    }

    #[test]
    fn names_are_found_wherever_they_stand() {
        for body in [
            r#"{"operationName":"Report"}"#,
            " { \"operationName\" : \"Report\" , \"query\":\"{a}\"}",
            r#"{"query":"query A { b(c: \"}\") }","variables":{"operationName":"No","d":[1,{"e":null}]},"operationName":"Report"}"#,
            r#"{"a":-1.5e3,"b":true,"c":[],"d":{},"operationName":"Report","cut":"#,
        ] {
            assert_eq!(name(body).as_deref(), Some("Report"), "{body}");
        }
    }

    #[test]
    fn other_bodies_name_none() {
        for body in [
            "",
            "{}",
            "[]",
            r#"[{"operationName":"Report"}]"#,
            r#"{"operationName":null}"#,
            r#"{"operationName":""}"#,
            r#"{"operationName":"Rep"#,
            r#"{"variables":{"operationName":"Report"}}"#,
            r#"{"a" "operationName":"Report"}"#,
            "operationName=Report",
        ] {
            assert_eq!(name(body), None, "{body}");
        }
        let deep = format!("{{\"a\":{}1{},\"operationName\":\"Report\"}}", "[".repeat(100), "]".repeat(100));
        assert_eq!(name(&deep), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            operation_name(&body);
        }

        #[test]
        fn as_a_reader_of_json_finds_it(value in "[a-zA-Z0-9_]{1,9}", before in "[ -~]{0,30}", number in any::<i32>()) {
            let body = serde_json::json!({ "a": [before, { "b": number }], "operationName": value, "query": before });
            prop_assert_eq!(operation_name(body.to_string().as_bytes()), Some(value.into_bytes()));
        }
    }
}
