//! Looks policies up by name, and adds those of other crates.

use std::fmt;
use std::sync::OnceLock;

use crate::params::{Settings, nearest};
use crate::policies::REGISTRY;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, BuildError, PolicySpec};

static OWN: OnceLock<Vec<&'static PolicySpec>> = OnceLock::new();

/// Adds policies of other crates to those of this one, for the whole process: command line, configuration, simulator and live system
/// know them from now on by their names. To be called once, before anything else.
///
/// # Errors
/// When a name is none, or another policy's, or when it was called before. Nothing is added then.
pub fn register(own: &[&'static PolicySpec]) -> Result<(), RegisterError> {
    for (index, spec) in own.iter().enumerate() {
        for &name in std::iter::once(&spec.name).chain(spec.aliases) {
            let mut others = REGISTRY.iter().chain(&own[..index]);
            if !is_name(name) {
                return Err(RegisterError::NoName(name));
            }
            if others.any(|other| other.name == name || other.aliases.contains(&name)) {
                return Err(RegisterError::Taken(name));
            }
        }
    }
    OWN.set(own.to_vec()).map_err(|_| RegisterError::Again)
}

/// Every policy that this process knows: those of this crate, and then those that were [registered](register).
pub fn registered() -> impl Iterator<Item = &'static PolicySpec> {
    REGISTRY.iter().chain(OWN.get().into_iter().flatten()).copied()
}

/// The policy of this name or alias. Case, and `-` or `/` for `_`, do not matter.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static PolicySpec, BuildError> {
    let wanted = name.to_lowercase().replace(['-', '/', ' '], "_");
    registered().find(|s| s.name == wanted || s.aliases.contains(&wanted.as_str())).ok_or_else(|| {
        let known = registered().flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied()));
        BuildError::UnknownPolicy {
            name: name.to_owned(),
            nearest: nearest(&wanted, known),
            known: registered().map(|s| s.name).collect::<Vec<_>>().join(", "),
        }
    })
}

/// Builds the policy of this name or alias from settings in text.
///
/// # Errors
/// On an unknown name, or a setting that cannot be used.
pub fn build(name: &str, context: &BuildContext, settings: &Settings) -> Result<Box<dyn Policy>, BuildError> {
    let spec = find(name)?;
    spec.build(context, &spec.read(settings)?)
}

/// Lower case and with `_` between words, as [`find`] looks names up.
fn is_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(known)
}

/// Why policies cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterError {
    /// This is no name of a policy.
    NoName(&'static str),
    /// Another policy has this name or alias.
    Taken(&'static str),
    /// Policies were registered before.
    Again,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(name) => write!(
                f,
                "`{name}` is no name of a policy; begin with a letter, and write lower-case letters, digits and `_`"
            ),
            Self::Taken(name) => write!(f, "there is a policy `{name}` already; choose another name"),
            Self::Again => f.write_str("policies were registered before; register all of them at once"),
        }
    }
}

impl std::error::Error for RegisterError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_use::LoadUse;
    use crate::params::ParamSet;
    use crate::policies::random;
    use crate::policy_spec::Built;

    fn build(context: &BuildContext, params: &ParamSet) -> Built {
        (random::SPEC.build)(context, params)
    }

    const fn spec(name: &'static str, aliases: &'static [&'static str]) -> PolicySpec {
        PolicySpec {
            name,
            aliases,
            summary: "a test's",
            source: "none",
            capabilities: random::SPEC.capabilities,
            load_use: LoadUse::None,
            weighted: false,
            params: &[],
            build,
        }
    }

    static MINE: PolicySpec = spec("mine", &["my_own"]);
    static SAME_ALIAS: PolicySpec = spec("other", &["my_own"]);
    static TAKEN: PolicySpec = spec("p2c", &[]);
    static UPPER: PolicySpec = spec("Mine", &[]);

    #[test]
    fn finds_by_alias_and_suggests_the_nearest() {
        assert_eq!(find("wrr").unwrap().name, "weighted_round_robin");
        assert_eq!(find("LARD/R").unwrap().name, "lard_r");
        assert_eq!(find("least-connections").unwrap().name, "least_connections");
        let error = find("lrad").err().unwrap().to_string();
        assert_eq!(error, "no policy `lrad`; did you mean `lard`?");
        assert!(find("banana").err().unwrap().to_string().contains("there are random, round_robin"));
    }

    #[test]
    fn own_policies_are_found_by_name_and_refused_if_they_hide_others() {
        assert_eq!(register(&[&TAKEN]), Err(RegisterError::Taken("p2c")));
        assert_eq!(register(&[&MINE, &SAME_ALIAS]), Err(RegisterError::Taken("my_own")));
        assert_eq!(register(&[&UPPER]), Err(RegisterError::NoName("Mine")));
        assert!(registered().all(|s| s.name != "mine"));
        assert_eq!(register(&[&MINE]), Ok(()));
        assert_eq!(find("my-own").unwrap().name, "mine");
        assert_eq!(registered().last().map(|s| s.name), Some("mine"));
        assert_eq!(register(&[]), Err(RegisterError::Again));
    }
}
