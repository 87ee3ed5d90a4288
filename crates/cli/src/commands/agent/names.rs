//! Names of agents.

pub(super) fn agent_name(text: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if text.is_empty() || !text.chars().all(is_good) {
        return Err("give letters, digits, - and _".to_owned());
    }
    Ok(text.to_owned())
}
