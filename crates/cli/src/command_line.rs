//! The command line before and after clap reads it: negative values are values, whose options say what they accept.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// These arguments, with each negative value joined to the option before it (`--seed=-1`): clap takes what begins with a dash for a flag, and
/// tells nothing of what the option accepts. No option of ours begins with a digit.
pub(crate) fn joined(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut only_values = false;
    for arg in args {
        let before = out.last_mut().filter(|before| !only_values && takes_value(before));
        match before {
            Some(option) if is_negative(&arg) => {
                option.push("=");
                option.push(arg);
            }
            _ => {
                only_values |= arg == "--";
                out.push(arg);
            }
        }
    }
    out
}

/// Whether this may be an option whose value follows.
fn takes_value(arg: &OsString) -> bool {
    arg.to_str().is_some_and(|arg| {
        let name = arg.trim_start_matches('-');
        let is_short = !arg.starts_with("--") && name.len() == 1;
        arg.starts_with('-')
            && !arg.contains('=')
            && (is_short || arg.starts_with("--"))
            && name.starts_with(char::is_alphabetic)
    })
}

/// Whether this is a number below zero, perhaps with a unit, such as `-1`, `-.5` or `-5MB`.
fn is_negative(arg: &OsString) -> bool {
    let digits = arg.to_str().and_then(|arg| arg.strip_prefix('-'));
    digits.is_some_and(|digits| digits.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit()))
}

/// An error of clap's, which says of a whole number what it may be.
pub(crate) fn explained(error: clap::Error, command: &clap::Command) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let is_no_number = error.to_string().contains("invalid digit found in string");
    match (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue)) {
        (Some(option), Some(value)) if is_no_number && error.kind() == ErrorKind::ValueValidation => {
            let why = format!("invalid value '{value}' for '{option}': expected a whole number, 0 or more\n");
            clap::Error::raw(ErrorKind::ValueValidation, why).with_cmd(command)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let joined = joined(line.split(' ').map(OsString::from));
        joined.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn negative_values_go_to_the_option_before_them() {
        assert_eq!(of("x --seed -1 -b -2 --cache -5MB"), "x --seed=-1 -b=-2 --cache=-5MB");
        assert_eq!(of("x --share -.5 --seed -1 -2"), "x --share=-.5 --seed=-1 -2");
        for same in ["x - -1", "x --json -b 3 -", "x --seed=3 -1", "x -- --seed -1", "x --set a=-1 --out -x"]
        {
            assert_eq!(of(same), same);
        }
    }
}
