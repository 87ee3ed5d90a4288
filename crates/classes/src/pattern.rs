//! Which requests belong to a class.

use std::collections::BTreeMap;

use crate::path_pattern::PathPattern;

/// Which requests belong to a class: those for which everything here holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPattern {
    /// The class, by its number from 1.
    pub class: u16,
    /// The paths.
    pub path: PathPattern,
    /// The last segment of the path, where the pattern's path ends with `/**`; `None` for any.
    pub application: Option<ApplicationPattern>,
    /// The method, as `GET`; `None` for any.
    pub method: Option<Vec<u8>>,
    /// Names of parameters, percent-decoded, and their values; `None` for any value. At most [`crate::PARAMETERS_MOST`].
    pub parameters: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// The last segment of a path: in CSLD's words, the name of the application.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationPattern {
    /// This one, percent-decoded.
    Named(Vec<u8>),
    /// Any that ends with a dot and these bytes, percent-decoded: `*.gif` is `gif`.
    Ending(Vec<u8>),
}

impl ClassPattern {
    /// A pattern of a path alone.
    #[must_use]
    pub fn of_path(class: u16, path: PathPattern) -> Self {
        Self { class, path, application: None, method: None, parameters: BTreeMap::new() }
    }

    /// Whether it matches every request with such a path.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.application.is_none() && self.method.is_none() && self.parameters.is_empty()
    }

    /// What tells it from other patterns.
    pub(crate) fn conditions(&self) -> PatternConditions<'_> {
        (&self.path, &self.application, &self.method, &self.parameters)
    }
}

/// All of a pattern but its class.
pub(crate) type PatternConditions<'a> = (
    &'a PathPattern,
    &'a Option<ApplicationPattern>,
    &'a Option<Vec<u8>>,
    &'a BTreeMap<Vec<u8>, Option<Vec<u8>>>,
);
