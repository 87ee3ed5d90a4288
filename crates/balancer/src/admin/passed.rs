//! `/passed`: requests that the switch has seen to pass, for `plimsoll record`.

use http::StatusCode;

use crate::mechanism::registry::MechanismSystems;
use plimsoll_observe::reply::{Refused, Reply, json_line};

/// Answers the query of a request to `/passed`.
pub(super) fn answer(systems: &MechanismSystems, query: Option<&str>) -> Result<Reply, Refused> {
    let Some(direct) = systems.direct() else {
        let what = "only the mechanism `direct` reads what passes";
        return Err(Refused::new(
            StatusCode::NOT_FOUND,
            what,
            "record with --observe, or use the access log as a trace",
        ));
    };
    let after = after(query.unwrap_or_default()).ok_or_else(|| {
        Refused::new(StatusCode::BAD_REQUEST, "`after` is no number", "give after=NUMBER, or nothing for all")
    })?;
    Ok(json_line(StatusCode::OK, &direct.passed_since(after)))
}

pub(super) fn after(query: &str) -> Option<u64> {
    let mut after = 0;
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        after = value.parse().ok().filter(|_| key == "after")?;
    }
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        assert_eq!((after(""), after("after=7")), (Some(0), Some(7)));
        assert_eq!((after("after=x"), after("before=1")), (None, None));
    }
}
