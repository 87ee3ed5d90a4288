//! Looks policies up by name, and adds those of other crates.

use std::fmt;
use std::sync::OnceLock;

use crate::params::{ParamSet, ParamSpec, Params as _, Settings, nearest};
use crate::policies::REGISTRY;
use crate::policies::sticky::{self, StickyParams};
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, BuildError, Built, PolicySpec};

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
            // Those are derived.
            if !is_name(name) || name.starts_with(STICKY) {
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
    if let Some(spec) = sticky_specs().iter().find(|spec| spec.name == wanted && wanted != TWICE) {
        return Ok(spec);
    }
    registered().find(|s| s.name == wanted || s.aliases.contains(&wanted.as_str())).ok_or_else(|| {
        let known = registered().flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied()));
        BuildError::UnknownPolicy {
            name: name.to_owned(),
            nearest: nearest(&wanted, known),
            known: registered().map(|s| s.name).collect::<Vec<_>>().join(", "),
        }
    })
}

/// The policy with sticky sessions around it; itself if it has them.
#[must_use]
pub fn sticky_around(spec: &'static PolicySpec) -> &'static PolicySpec {
    if spec.name == sticky::SPEC.name || spec.name.starts_with(STICKY) {
        return spec;
    }
    let inner = registered().position(|other| std::ptr::eq(other, spec));
    inner.and_then(|inner| sticky_specs().get(inner)).unwrap_or(&sticky::SPEC)
}

/// What the names of policies with sticky sessions around them begin with.
const STICKY: &str = "sticky_";

/// Sessions around sessions, which nobody needs.
const TWICE: &str = "sticky_sticky";

/// For each registered policy, in their order, the one with sticky sessions around it.
fn sticky_specs() -> &'static [PolicySpec] {
    static SPECS: OnceLock<Vec<PolicySpec>> = OnceLock::new();
    SPECS.get_or_init(|| registered().zip(AROUND).map(|(inner, build)| sticky_spec(inner, *build)).collect())
}

fn sticky_spec(inner: &'static PolicySpec, build: fn(&BuildContext, &ParamSet) -> Built) -> PolicySpec {
    let params: Vec<ParamSpec> = inner.params.iter().chain(StickyParams::SPECS).copied().collect();
    // Made once, and there until the process ends, as those of the registry are.
    PolicySpec {
        name: Box::leak(format!("{STICKY}{}", inner.name).into_boxed_str()),
        aliases: &[],
        summary: inner.summary,
        source: inner.source,
        capabilities: inner.capabilities,
        load_use: inner.load_use,
        weighted: inner.weighted,
        params: Box::leak(params.into_boxed_slice()),
        build,
    }
}

/// Builds sticky sessions around the registered policy number `N`.
fn around<const N: usize>(context: &BuildContext, params: &ParamSet) -> Built {
    sticky::build_around(registered().nth(N).unwrap_or(&sticky::SPEC), context, params)
}

macro_rules! arounds {
    ($($n:literal)*) => { &[$(around::<$n>),*] };
}

/// For more policies than there are.
const AROUND: &[fn(&BuildContext, &ParamSet) -> Built] = arounds!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
);

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
    use crate::policies::random;

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
