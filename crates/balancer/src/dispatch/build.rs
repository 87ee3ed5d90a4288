//! From the configuration to a policy and an admission limit.

use plimsoll_config::{AccessLogFormat, AdmissionLimitConfig, Config, PolicyConfig};
use plimsoll_policy::{AdmissionLimit, BuildContext, Policy, Thresholds};

/// What keeps a dispatch from being built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildFailed {
    /// The policy does not take its settings.
    #[error("policy `{policy}`: {error}")]
    Policy {
        /// The policy.
        policy: &'static str,
        /// What is wrong.
        error: plimsoll_policy::params::ParamError,
    },
    /// The decision log cannot be opened.
    #[error("cannot open the decision log in {directory}: {error}")]
    DecisionLog {
        /// Where it was to be.
        directory: String,
        /// Why not.
        error: std::io::Error,
    },
}

/// A policy that has seen nothing, and the admission limit that goes with it.
pub(crate) struct BuiltPolicy {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) admission: AdmissionLimit,
}

impl BuiltPolicy {
    /// Builds what `config` says.
    pub(crate) fn from_config(config: &PolicyConfig, limit: AdmissionLimitConfig) -> Result<Self, BuildFailed> {
        let context = context(config);
        let (policy, values) = (config.spec.build)(&context, &config.settings)
            .map_err(|error| BuildFailed::Policy { policy: config.spec.name, error })?;
        let value = |name: &str| values.iter().find(|(n, _)| *n == name).and_then(|(_, v)| v.parse().ok());
        let paper = Thresholds::default();
        let admission = match limit {
            AdmissionLimitConfig::Lard => AdmissionLimit::Lard(Thresholds {
                t_low: value("t_low").unwrap_or(paper.t_low),
                t_high: value("t_high").unwrap_or(paper.t_high),
            }),
            AdmissionLimitConfig::Fixed(limit) => AdmissionLimit::Fixed(limit),
            AdmissionLimitConfig::Unlimited => AdmissionLimit::Unlimited,
        };
        Ok(Self { policy, admission })
    }
}

/// What the policy may know when it is built.
pub(super) fn context(config: &PolicyConfig) -> BuildContext {
    BuildContext {
        seed: config.seed,
        cache_bytes: config.cache_bytes,
        cache: config.cache,
        cache_object_limit_bytes: None,
    }
}

/// Whether someone reads why a back-end was chosen.
pub(super) fn wants_reasons(config: &Config) -> bool {
    config.access_log.as_ref().is_some_and(|log| log.format == AccessLogFormat::Json)
}
