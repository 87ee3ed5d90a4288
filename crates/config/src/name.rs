//! Names that users give: of back-ends, pools and routes.

use crate::message::{Wrong, quoted};

/// The text, if it is a name.
pub(crate) fn name(text: &str) -> Result<&str, Wrong> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        let what = format!("{} is no name", quoted(text));
        return Err((what, "write 1 to 64 letters, digits, `-`, `_` and `.`".to_owned()));
    }
    Ok(text)
}
