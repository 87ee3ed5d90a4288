//! In which format an input is read, and whether `--fields` fits it.

use crate::error::TraceError;
use crate::field_role::FieldRole;
use crate::format::Format;
use crate::format_spec::Decode;
use crate::formats::{csv, json, json_logs, w3c};
use crate::json_refusal::{self, listed};
use crate::options::ReadOptions;
use crate::prefix::Prefix;
use crate::refusal;
use crate::tally::ReadReport;

/// The format that the user names, or that the content shows.
pub(crate) fn choose(options: &ReadOptions, prefix: &Prefix<'_>, path: &str) -> Result<Format, TraceError> {
    let json = json_logs::JSON.format;
    let found = options.format.or_else(|| {
        // Its lines would parse as others without a header, whose columns have an order.
        let capitals = prefix.lines().next().is_some_and(csv::is_header_in_capitals);
        if capitals { None } else { Format::detect_prefix(prefix) }
    });
    let found = found.or_else(|| {
        let map = options.fields.as_ref()?;
        let objects = json_refusal::first_object(prefix).is_some();
        let whole = map.missing().is_none();
        let known = || Format::detect_with(prefix, options);
        if whole && objects { Some(json) } else { known().or_else(|| objects.then_some(json)) }
    });
    let format = found.ok_or_else(|| refusal::error(prefix, path))?;
    let refused = |reason: String| Err(TraceError::read(path, reason));
    match &options.fields {
        Some(_) if !format.has_named_fields() => refused(format!(
            "--fields says what the fields of JSON lines and W3C logs mean, but this is read as {format}; leave it out"
        )),
        Some(map) if format == json => match map.missing() {
            Some(role) => {
                refused(format!("--fields does not say which key holds the {role}; add {role}=KEY"))
            }
            None => Ok(format),
        },
        None if format == json => Err(refusal::error(prefix, path)),
        _ => Ok(format),
    }
}

/// The fields that `--fields` names and the first lines do not have. Such a field may be rare; where every request has it, it is
/// an error.
pub(crate) fn check_fields(
    format: Format,
    options: &ReadOptions,
    prefix: &Prefix<'_>,
    path: &str,
) -> Result<Vec<String>, TraceError> {
    let Decode::Lines(log) = &format.spec().decode else { return Ok(Vec::new()) };
    let unseen = log.unseen_fields(prefix.lines(), options);
    let rare = |role: &FieldRole| {
        let (client, host, query) = (FieldRole::Client, FieldRole::Host, FieldRole::Query);
        [client, host, query].contains(role) || matches!(role, FieldRole::Service(_) | FieldRole::Total(_))
    };
    if let Some((_, name)) = unseen.iter().find(|(role, _)| !rare(role)) {
        let reason =
            format!("no line at its beginning has the field `{name}`, which --fields names{}", names(prefix));
        return Err(TraceError::read(path, reason));
    }
    Ok(unseen.into_iter().map(|(_, name)| name).collect())
}

/// The names that the first lines have, as a clause.
fn names(prefix: &Prefix<'_>) -> String {
    let keys = prefix.lines().find_map(json::keys_of).or_else(|| prefix.lines().find_map(w3c::fields_of));
    keys.map_or_else(String::new, |keys| format!("; there are {}", listed(&keys)))
}

/// The format of what is read when an input in the format `found` follows inputs in `before`.
pub(crate) fn merge(before: Option<Format>, found: Format, path: &str) -> Result<Format, TraceError> {
    let Some(before) = before else { return Ok(found) };
    before.merged_with(found).ok_or_else(|| TraceError::Mixed {
        path: path.to_owned(),
        found: found.name(),
        expected: before.name(),
    })
}

/// The format of the inputs before, if an input that is clearly of none may continue them, as a rotated log that holds other events
/// alone.
pub(crate) fn continued(
    before: Option<Format>,
    prefix: &Prefix<'_>,
    options: &ReadOptions,
) -> Option<Format> {
    before.filter(|before| match &before.spec().decode {
        Decode::Lines(log) => log.may_hold(prefix.lines(), options),
        Decode::Own { .. } => false,
    })
}

/// What the stamps are taken for.
pub(crate) fn stamp_assumption(report: &ReadReport, options: &ReadOptions) -> &'static str {
    let named = |role| {
        let mut fields = options.fields.iter().flat_map(|map| map.fields());
        fields.any(|(named, _)| *named == role)
    };
    match report.format {
        Some(_) if named(FieldRole::Time) => "arrival, as `--fields time=` says",
        Some(_) if named(FieldRole::End) => json_logs::ENDS,
        Some(format) => (format.spec().stamps)(report),
        None => "arrival",
    }
}
