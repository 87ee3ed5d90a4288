//! The methods and parameters of the requests, with a bounded number of values and of combinations.

use std::collections::BTreeMap;

use crate::bounds::{QUERY_BYTES_MOST, REQUEST_PARAMETERS_MOST};
use crate::learn::bounds::{COMBINATIONS_MOST, NAMES_MOST, VALUE_BYTES_MOST, VALUES_MOST};
use crate::uri::UriDecoded;

/// The number of a value for which there was no room.
pub(crate) const OTHER_VALUE: u32 = u32::MAX;

/// The name under which the method stands.
pub(crate) const METHOD: u32 = 0;

/// A parameter's name and value by their numbers.
pub(crate) type PairNumbers = (u32, u32);

/// Values of a name.
#[derive(Debug, Default)]
pub(crate) struct SeenName {
    pub(crate) name: Vec<u8>,
    values: BTreeMap<Box<[u8]>, u32>,
    /// By their numbers.
    pub(crate) texts: Vec<Box<[u8]>>,
    /// Requests with values for which there was no room.
    pub(crate) without_room: u64,
}

/// All names, values, and combinations of them.
#[derive(Debug)]
pub(crate) struct Combinations {
    numbers: BTreeMap<Box<[u8]>, u32>,
    pub(crate) names: Vec<SeenName>,
    known: BTreeMap<Box<[PairNumbers]>, u32>,
    /// By their numbers, each in order.
    pub(crate) all: Vec<Box<[PairNumbers]>>,
    /// Requests with names for which there was no room.
    pub(crate) without_name: u64,
    /// Requests with combinations for which there was no room.
    pub(crate) without_room: u64,
    pairs: Vec<PairNumbers>,
    scratch: Vec<u8>,
}

impl Default for Combinations {
    fn default() -> Self {
        // The method has the first place and no name in `numbers`.
        Self {
            numbers: BTreeMap::new(),
            names: vec![SeenName::default()],
            known: BTreeMap::new(),
            all: Vec::new(),
            without_name: 0,
            without_room: 0,
            pairs: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

impl SeenName {
    fn value(&mut self, value: &[u8]) -> u32 {
        if let Some(&number) = self.values.get(value) {
            return number;
        }
        if self.texts.len() >= VALUES_MOST || value.len() > VALUE_BYTES_MOST {
            self.without_room += 1;
            return OTHER_VALUE;
        }
        let number = self.texts.len() as u32;
        self.texts.push(value.into());
        self.values.insert(value.into(), number);
        number
    }
}

impl Combinations {
    /// The number of a request's combination of method and parameters.
    pub(crate) fn number_of(&mut self, method: &[u8], query: &[u8]) -> u32 {
        self.pairs.clear();
        let method = self.names[METHOD as usize].value(method);
        self.pairs.push((METHOD, method));
        let mut nameless = false;
        let query = &query[..query.len().min(QUERY_BYTES_MOST)];
        let parts = query.split(|&b| b == b'&').filter(|part| !part.is_empty());
        for part in parts.take(REQUEST_PARAMETERS_MOST) {
            let (name, value) = match memchr::memchr(b'=', part) {
                Some(at) => (&part[..at], &part[at + 1..]),
                None => (part, &b""[..]),
            };
            self.scratch.clear();
            self.scratch.extend(UriDecoded::in_query(name));
            let Some(name) = self.name() else {
                nameless = true;
                continue;
            };
            self.scratch.clear();
            self.scratch.extend(UriDecoded::in_query(value));
            let value = self.names[name as usize].value(&self.scratch);
            // As a class table: of several, the least value counts.
            match self.pairs.iter_mut().find(|(known, _)| *known == name) {
                None => self.pairs.push((name, value)),
                Some((_, least)) => {
                    let text = |number: u32| self.names[name as usize].texts.get(number as usize);
                    if text(value).is_some_and(|new| text(*least).is_none_or(|old| new < old)) {
                        *least = value;
                    }
                }
            }
        }
        self.without_name += u64::from(nameless);
        self.pairs.sort_unstable();
        self.combination()
    }

    /// The number of the name in `scratch`.
    fn name(&mut self) -> Option<u32> {
        if let Some(&number) = self.numbers.get(self.scratch.as_slice()) {
            return Some(number);
        }
        if self.names.len() >= NAMES_MOST || self.scratch.len() > VALUE_BYTES_MOST {
            return None;
        }
        let number = self.names.len() as u32;
        self.names.push(SeenName { name: self.scratch.clone(), ..SeenName::default() });
        self.numbers.insert(self.scratch.as_slice().into(), number);
        Some(number)
    }

    fn combination(&mut self) -> u32 {
        if let Some(&number) = self.known.get(self.pairs.as_slice()) {
            return number;
        }
        // The last eighth is for combinations of names alone, and the last place for the method alone.
        if self.all.len() >= COMBINATIONS_MOST / 8 * 7 {
            self.without_room += 1;
            self.pairs
                .iter_mut()
                .filter(|(name, _)| *name != METHOD)
                .for_each(|(_, value)| *value = OTHER_VALUE);
            if let Some(&number) = self.known.get(self.pairs.as_slice()) {
                return number;
            }
            if self.all.len() + 1 >= COMBINATIONS_MOST {
                self.pairs.clear();
                self.pairs.push((METHOD, OTHER_VALUE));
                if let Some(&number) = self.known.get(self.pairs.as_slice()) {
                    return number;
                }
            }
        }
        let number = self.all.len() as u32;
        self.all.push(self.pairs.as_slice().into());
        self.known.insert(self.pairs.as_slice().into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_encoding_do_not_matter() {
        let mut all = Combinations::default();
        let number = all.number_of(b"GET", b"a=1&b=2");
        assert_eq!(all.number_of(b"GET", b"b=2&&%61=%31&a=1"), number);
        assert_ne!(all.number_of(b"POST", b"a=1&b=2"), number);
        assert_ne!(all.number_of(b"GET", b"a=1"), number);
        assert_eq!(all.number_of(b"GET", b"a=1&a=0"), all.number_of(b"GET", b"a=0&a=1"));
    }

    #[test]
    fn a_million_values_and_names_take_bounded_room() {
        let mut all = Combinations::default();
        for n in 0..1_000_000u64 {
            let query = format!("q={n}&p{}={}&r={}&s={}", n % 5000, n % 300, n % 251, n * 17 % 257);
            all.number_of(b"GET", query.as_bytes());
        }
        assert!(all.all.len() <= COMBINATIONS_MOST && all.names.len() <= NAMES_MOST);
        assert!(all.names.iter().all(|name| name.texts.len() <= VALUES_MOST));
        assert!(all.without_name > 0 && all.without_room > 0 && all.names[1].without_room > 0);
    }
}
