//! A strategy: a policy, and whether back-ends have a global memory.

use plimsoll_policy::params::nearest;
use plimsoll_policy::{BuildError, PolicySpec, REGISTRY, find, registered};
use plimsoll_report::SeriesLook;
use plimsoll_sim::ModelSpec;
use plimsoll_sim::models::lard;

/// A strategy, as studies compare them: a registered policy, or the paper's WRR/GMS, which is WRR on
/// back-ends with a global memory.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Name in results.
    pub name: &'static str,
    /// The policy.
    pub policy: &'static PolicySpec,
    /// Whether `lard_gms` replaces the model `lard`.
    pub global_memory: bool,
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// WRR on back-ends with a global memory.
const GMS: &str = "wrr_gms";

impl Strategy {
    /// The strategy of this name or alias.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self, BuildError> {
        if name.to_lowercase().replace(['/', '-'], "_") == GMS {
            let policy = find("weighted_round_robin")?;
            return Ok(Self { name: GMS, policy, global_memory: true });
        }
        find(name).map(|policy| Self { name: policy.name, policy, global_memory: false }).map_err(|error| {
            match error {
                BuildError::UnknownPolicy { name, nearest: None, known } => {
                    let nearest = nearest(&name, [GMS]);
                    BuildError::UnknownPolicy { name, nearest: nearest.map(|_| GMS), known }
                }
                error => error,
            }
        })
    }

    /// The model to run when `model` is asked for: `lard_gms` for WRR/GMS on `lard`.
    pub(crate) fn model_on(&self, model: &'static ModelSpec) -> &'static ModelSpec {
        if self.global_memory && model.name == lard::SPEC.name { &lard::GLOBAL_MEMORY_SPEC } else { model }
    }
}

/// The names of all strategies. Their places in this order give their colours and markers in every report: first the policies of
/// this project and WRR/GMS, then those of other crates.
#[must_use]
pub fn strategy_names() -> Vec<String> {
    let own = registered().skip(REGISTRY.len()).map(|spec| spec.name);
    REGISTRY.iter().map(|spec| spec.name).chain([GMS]).chain(own).map(str::to_owned).collect()
}

/// The look of a strategy in plots, by its name in results.
pub(crate) fn strategy_look(name: &str) -> SeriesLook {
    let names = strategy_names();
    SeriesLook::of_place(names.iter().position(|known| known == name).unwrap_or(names.len()))
}
