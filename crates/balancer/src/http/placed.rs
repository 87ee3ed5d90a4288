//! The mark of a request that a front-end with others beside it has placed.

use super::fields::push;

/// The field that says which back-end a front-end with others beside it was on the machine of when it placed a request.
const PLACED: &str = "Plimsoll-Placed-By";

/// Marks a rewritten head as that of a request which has been placed; false, and nothing done, when it is marked already.
pub(crate) fn mark_placed(local: &str, head: &mut Vec<u8>) -> bool {
    let is_mark = |line: &[u8]| {
        let name = line.get(..PLACED.len() + 1).and_then(|start| start.split_last());
        name.is_some_and(|(&colon, name)| colon == b':' && name.eq_ignore_ascii_case(PLACED.as_bytes()))
    };
    if !head.ends_with(b"\r\n\r\n") || head.split(|&b| b == b'\n').any(is_mark) {
        return false;
    }
    head.truncate(head.len() - 2);
    push(head, PLACED.as_bytes(), local.as_bytes());
    head.extend_from_slice(b"\r\n");
    true
}
