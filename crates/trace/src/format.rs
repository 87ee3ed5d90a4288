//! A trace format, by its name.

use std::fmt;

/// A format in which traces are stored, one of [`Format::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Format(&'static str);

impl Format {
    /// The format of a registry entry.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
