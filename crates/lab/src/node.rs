//! The nodes of a lab, by name.

use std::fmt;
use std::str::FromStr;

use crate::error::LabError;

/// Which node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The bridge that joins the others: `switch`.
    Switch,
    /// `front-end`.
    FrontEnd,
    /// `client`, which may have several addresses.
    Client,
    /// A back-end, counted from 0: `b0`, `b1` and so on.
    Backend(usize),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.pad("switch"),
            Self::FrontEnd => f.pad("front-end"),
            Self::Client => f.pad("client"),
            Self::Backend(number) => f.pad(&format!("b{number}")),
        }
    }
}

impl FromStr for Node {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let backend =
            || text.strip_prefix('b')?.parse().ok().filter(|number: &usize| text == format!("b{number}"));
        match text {
            "switch" => Ok(Self::Switch),
            "front-end" => Ok(Self::FrontEnd),
            "client" => Ok(Self::Client),
            _ => backend().map(Self::Backend).ok_or_else(|| {
                LabError::Invalid(format!(
                    "no node `{text}`: there are client, front-end, switch, and b0, b1 and so on"
                ))
            }),
        }
    }
}
