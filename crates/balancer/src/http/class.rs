//! The class of a request.

use plimsoll_config::ClassesConfig;

use super::operation::operation_name;

/// What is known of a request's class from its head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeadClass {
    /// Its number; 0 for none.
    pub(crate) number: u16,
    /// Whether a body may still name the GraphQL operation that decides.
    pub(crate) asks_body: bool,
}

/// The class of a request by its head.
pub(crate) fn of_head(
    classes: Option<&ClassesConfig>,
    method: &[u8],
    path_query: &[u8],
    fields: &[httparse::Header<'_>],
) -> HeadClass {
    match classes {
        None => HeadClass::default(),
        Some(classes) => by_table(classes, method, path_query, fields),
    }
}

#[inline(never)]
fn by_table(
    classes: &ClassesConfig,
    method: &[u8],
    path_query: &[u8],
    fields: &[httparse::Header<'_>],
) -> HeadClass {
    let mut named = None;
    if classes.file.names_operations
        && let Some(header) = &classes.operation_header
    {
        named = fields.iter().find(|f| f.name.eq_ignore_ascii_case(header)).map(|f| f.value);
    }
    HeadClass {
        number: classes.file.table.class_of_named(method, path_query, named),
        asks_body: classes.file.names_operations && named.is_none() && method == b"POST",
    }
}

/// Of larger bodies no operation is looked for: all other requests of the worker wait meanwhile.
const MOST_BODY_BYTES: usize = 64 << 10;

/// The class of a request whose body is here; `line` has method and target. `None` if the body names no operation, or is too long to be
/// looked into.
pub(crate) fn of_body(classes: &ClassesConfig, line: &[u8], body: &[u8]) -> Option<u16> {
    if body.len() > MOST_BODY_BYTES {
        return None;
    }
    let operation = operation_name(body)?;
    let (method, rest) = line.split_at(memchr::memchr(b' ', line)?);
    Some(classes.file.table.class_of_named(method, rest.get(1..)?, Some(&operation)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(operation_header: Option<&str>) -> ClassesConfig {
        let class = |name: &str| format!("[[class]]\nname = \"{name}\"\ncpu_s = 0.001\n");
        let text = [
            class("any"),
            class("report"),
            "[[pattern]]\nclass = \"any\"\npath = \"/graphql\"\n".to_owned(),
            "[[pattern]]\nclass = \"report\"\npath = \"/graphql\"\nparameters = { operationName = \"Report\" }\n"
                .to_owned(),
        ]
        .concat();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("classes.toml"), text).unwrap();
        let header = operation_header.unwrap_or("none");
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
             [classes]\nfile = \"classes.toml\"\noperation_header = \"{header}\"\n"
        );
        let name = directory.path().join("plimsoll.toml").display().to_string();
        plimsoll_config::Config::parse(&text, &name).unwrap().classes.unwrap()
    }

    #[test]
    fn an_operation_is_named_by_query_field_or_body() {
        let classes = classes(Some("X-Operation"));
        let field = [httparse::Header { name: "x-operation", value: b"Report" }];
        let of = |method: &[u8], target: &[u8], fields: &[httparse::Header<'_>]| {
            let HeadClass { number, asks_body } = of_head(Some(&classes), method, target, fields);
            (number, asks_body)
        };
        assert_eq!(of(b"GET", b"/graphql?operationName=Report", &[]), (2, false));
        assert_eq!(of(b"POST", b"/graphql", &field), (2, false));
        assert_eq!(
            of(b"POST", b"/graphql?operationName=Other", &field),
            (1, false),
            "the query counts first"
        );
        assert_eq!(of(b"POST", b"/graphql", &[]), (1, true));
        assert_eq!(of(b"POST", b"/other", &[]), (0, true));
        let body = br#"{"operationName":"Report","query":"query Report { a }"}"#;
        assert_eq!(of_body(&classes, b"POST /graphql", body), Some(2));
        assert_eq!(of_body(&classes, b"POST /graphql", b"{}"), None);
    }

    #[test]
    fn without_table_or_field() {
        assert_eq!(of_head(None, b"POST", b"/graphql?operationName=Report", &[]), HeadClass::default());
        let field = [httparse::Header { name: "x-operation", value: b"Report" }];
        let head = of_head(Some(&classes(None)), b"POST", b"/graphql", &field);
        assert_eq!((head.number, head.asks_body), (1, true));
    }
}
