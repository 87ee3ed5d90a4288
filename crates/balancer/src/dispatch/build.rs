//! Builds policy and admission limit from the configuration.

use plimsoll_config::{AccessLogFormat, ClassesConfig, Config, LoadSource, PolicyConfig, ShadowConfig};
use plimsoll_policy::{AdmissionControl, BuildError, Inquiries, LoadUse, Nanos, Policy};

/// Why a dispatch cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildFailed {
    /// The policy does not take its parameters.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// The decision log cannot be opened.
    #[error("cannot open the decision log in {directory}: {error}")]
    DecisionLog {
        /// Where it was to be.
        directory: String,
        /// Why not.
        error: std::io::Error,
    },
}

/// A fresh policy.
pub(super) fn policy(config: &Config, table_seed: u64) -> Result<Box<dyn Policy>, BuildFailed> {
    Ok(config.policy.build(table_seed, config.class_costs())?)
}

/// A fresh shadow policy, if configured.
pub(super) fn shadow(config: &Config, table_seed: u64) -> Result<Option<Box<dyn Policy>>, BuildFailed> {
    let build = |shadow: &ShadowConfig| shadow.policy.build(table_seed, config.class_costs());
    Ok(config.shadow.as_ref().map(build).transpose()?)
}

/// The admission limit and the length of the queue.
pub(super) fn admission(config: &Config) -> AdmissionControl {
    AdmissionControl { limit: config.admission_limit(), queue: config.admission.queue }
}

/// Whether back-ends are asked before a choice: where the policy looks at loads, and does not ask by itself.
pub(super) fn inquiries(config: &Config) -> Option<Inquiries> {
    let load = &config.load_information;
    let size = u8::try_from(load.size).unwrap_or(u8::MAX);
    let asks = config.policy.spec.load_use.is_asked_for();
    (asks && load.from == LoadSource::Poll).then_some(Inquiries { size, seed: config.policy.seed })
}

/// How old a load may be that was asked for.
pub(super) fn max_age(config: &Config) -> Nanos {
    Nanos::new(crate::load_information::nanos(config.load_information.max_age))
}

/// Warns of a policy that makes nothing of the load information that is configured.
pub(super) fn warn_of_unused_loads(config: &Config) {
    if let Some(why) = unused_loads(config) {
        tracing::warn!(policy = config.policy.spec.name, "{why}");
    }
}

/// Why the load information that is configured has no effect, where that is so.
#[must_use]
pub fn unused_loads(config: &Config) -> Option<&'static str> {
    let is_unused =
        config.policy.spec.load_use == LoadUse::None && config.load_information.from != LoadSource::Own;
    is_unused.then_some("this policy uses no loads: `load_information` has no effect")
}

/// Whether requests that a policy decides about have other classes than before, so that what it has learned of them is void.
pub(super) fn other_classes(policy: &PolicyConfig, old: &Config, new: &Config) -> bool {
    let table = |config: &Config| config.classes.as_ref().map(|classes| classes.file.table.clone());
    policy.spec.capabilities.depends_on_classes() && table(old) != table(new)
}

/// Warns of what is odd about the class file.
pub(super) fn warn_of_classes(config: &Config) {
    let Some(ClassesConfig { file, .. }) = &config.classes else { return };
    for warning in &file.warnings {
        tracing::warn!("{}: {warning}", file.path.display());
    }
}

/// Whether any log needs the reason of a choice.
pub(super) fn wants_reasons(config: &Config) -> bool {
    config.access_log.as_ref().is_some_and(|log| log.format == AccessLogFormat::Json)
}
