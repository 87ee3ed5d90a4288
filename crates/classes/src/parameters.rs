//! The parameters of a request that some pattern names.

use std::cmp::Ordering;

use crate::bounds::{KNOWN_PARAMETERS_MOST, REQUEST_PARAMETERS_MOST};
use crate::uri::UriDecoded;

/// The name under which the name of a GraphQL operation is a parameter.
const OPERATION: &[u8] = b"operationName";

/// The names that the patterns of a table use, in order; a name's number is its place.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ParameterNames {
    names: Vec<Box<[u8]>>,
    /// The number of [`OPERATION`].
    operation: Option<u32>,
}

impl ParameterNames {
    /// Of names that are in order and distinct.
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a Vec<u8>>) -> Self {
        let names: Vec<Box<[u8]>> = names.map(|name| name.as_slice().into()).collect();
        let mut out = Self { names, operation: None };
        out.operation = out.number(OPERATION);
        out
    }

    /// The number of a decoded name.
    pub(crate) fn number(&self, name: &[u8]) -> Option<u32> {
        self.names.binary_search_by(|known| (**known).cmp(name)).ok().map(|at| at as u32)
    }

    /// The number of a name as it stands in a query.
    #[inline]
    fn number_encoded(&self, name: &[u8]) -> Option<u32> {
        self.names
            .binary_search_by(|known| UriDecoded::in_query(name).compare(known).reverse())
            .ok()
            .map(|at| at as u32)
    }
}

/// A value as it stands in a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedValue<'a> {
    text: &'a [u8],
    /// Whether it may be encoded.
    encoded: bool,
}

impl LoggedValue<'_> {
    /// How its decoded form compares with a decoded value.
    #[inline]
    pub(crate) fn compare(self, decoded: &[u8]) -> Ordering {
        if self.encoded { UriDecoded::in_query(self.text).compare(decoded) } else { self.text.cmp(decoded) }
    }

    fn is_less_than(self, other: Self) -> bool {
        let decoded = |value: Self| (value, UriDecoded::in_query(value.text));
        let bytes = |(value, text): (Self, _)| {
            let plain = value.text.iter().copied().filter(move |_| !value.encoded);
            plain.chain(Iterator::filter(text, move |_| value.encoded))
        };
        bytes(decoded(self)).lt(bytes(decoded(other)))
    }
}

/// The parameters of one request that some pattern names.
pub(crate) struct KnownParameters<'a> {
    found: [(u32, LoggedValue<'a>); KNOWN_PARAMETERS_MOST],
    count: usize,
}

impl<'a> KnownParameters<'a> {
    /// Of a query, and of an operation that is told beside it. Of a parameter that stands there several times the least value counts,
    /// so that the order does not matter.
    #[inline]
    pub(crate) fn of(names: &ParameterNames, query: &'a [u8], operation: Option<&'a [u8]>) -> Self {
        let nothing = (u32::MAX, LoggedValue { text: b"", encoded: false });
        let mut out = Self { found: [nothing; KNOWN_PARAMETERS_MOST], count: 0 };
        let encoded = memchr::memchr2(b'%', b'+', query).is_some();
        let mut rest = query;
        for _ in 0..REQUEST_PARAMETERS_MOST {
            if rest.is_empty() {
                break;
            }
            let end = memchr::memchr(b'&', rest).unwrap_or(rest.len());
            let pair = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            let (name, text) = match memchr::memchr(b'=', pair) {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &b""[..]),
            };
            let number = if encoded { names.number_encoded(name) } else { names.number(name) };
            if let Some(number) = number {
                out.add(number, LoggedValue { text, encoded });
            }
        }
        if let (Some(number), Some(text)) = (names.operation, operation)
            && out.get(number).is_none()
        {
            out.add(number, LoggedValue { text, encoded: false });
        }
        out
    }

    fn add(&mut self, number: u32, value: LoggedValue<'a>) {
        for (known, least) in &mut self.found[..self.count] {
            if *known == number {
                if value.is_less_than(*least) {
                    *least = value;
                }
                return;
            }
        }
        if let Some(place) = self.found.get_mut(self.count) {
            *place = (number, value);
            self.count += 1;
        }
    }

    /// The value of a parameter.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<LoggedValue<'a>> {
        self.found[..self.count].iter().find(|(known, _)| *known == number).map(|(_, value)| *value)
    }

    /// The numbers of the names that are there.
    #[inline]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.found[..self.count].iter().map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> ParameterNames {
        let mut list: Vec<Vec<u8>> = list.iter().map(|name| name.as_bytes().to_vec()).collect();
        list.sort();
        ParameterNames::new(list.iter())
    }

    fn value(names: &ParameterNames, query: &str, name: &str) -> Option<String> {
        let found = KnownParameters::of(names, query.as_bytes(), None);
        let value = found.get(names.number(name.as_bytes())?)?;
        let plain = || value.text.to_vec();
        let bytes = if value.encoded { UriDecoded::in_query(value.text).collect() } else { plain() };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn values_are_found_by_name_in_any_order() {
        let names = names(&["a", "b c"]);
        for query in ["a=1&b+c=2", "b%20c=%32&&x&%61=1", "a=2&a=1&b+c=2&a=%33"] {
            assert_eq!(value(&names, query, "a").as_deref(), Some("1"), "{query}");
            assert_eq!(value(&names, query, "b c").as_deref(), Some("2"), "{query}");
        }
        assert_eq!(value(&names, "a", "a").as_deref(), Some(""));
        assert_eq!(value(&names, "x=a", "a"), None);
    }

    #[test]
    fn an_operation_counts_where_the_query_names_none() {
        let names = names(&["operationName"]);
        let number = names.number(b"operationName").unwrap();
        let get = |query: &'static str| {
            KnownParameters::of(&names, query.as_bytes(), Some(b"a+b")).get(number).unwrap().text
        };
        assert_eq!(get(""), b"a+b");
        assert_eq!(get("operationName=x"), b"x");
    }
}
