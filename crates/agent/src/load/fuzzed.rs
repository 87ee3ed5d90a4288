//! What servers tell of themselves, for the fuzz targets.

/// A scoreboard of Apache: no more are at work than it has places.
pub(crate) fn scoreboard(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let at_work = super::host::at_work(text);
    assert!(at_work.is_none_or(|workers| workers as usize <= text.len()));
}
