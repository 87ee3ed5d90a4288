//! Pools: back-ends apart from the others.

use std::sync::Arc;

use super::backends::BackendConfig;
use super::pool_name::{DEFAULT_POOL, PoolName};
use super::{AdmissionConfig, EjectionConfig, HealthConfig, Limits, PolicyConfig, TargetConfig, Timeouts};
use super::{CompressionConfig, RetryBudgetConfig, StickyConfig};
use crate::declare::{KeyForm, keys};
use crate::keys::Default::Required;
use crate::keys::KeyKind::Text;
use crate::name::name;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::value::ConfigValue;

/// The most pools beside that one.
pub(crate) const POOLS_MAX: usize = 256;

keys! {
    /// Back-ends with a policy of their own, apart from those of the pool `default`, which has all back-ends that name no other one; at
    /// most 256. The tables `policy`, `sticky`, `target`, `admission`, `health`, `ejection`, `retry_budget`, `timeouts`, `limits` and `compression` can stand below it, e.g. as
    /// `[pool.policy]`, each in place of that of the file as a whole. Requests come to it by a `[[route]]`. See [routing](routing.md).
    ["pool", many] pub(crate) struct PoolTable {
        /// What back-ends, routes, metrics and the admin API call it; unique.
        "name" name: PoolName = Required, Text("1 to 64 letters, digits, `-`, `_` and `.`") => NameOfPool;
    }
}

/// The tables that can stand below `[[pool]]`.
pub(crate) const POOL_TABLES: &[&str] = &[
    "policy",
    "sticky",
    "target",
    "admission",
    "health",
    "ejection",
    "retry_budget",
    "timeouts",
    "limits",
    "compression",
];

/// Back-ends apart from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolConfig {
    /// Its name, which is not [`DEFAULT_POOL`].
    pub name: PoolName,
    /// Who answers; at least one.
    pub backends: Vec<BackendConfig>,
    /// How a back-end is chosen.
    pub policy: PolicyConfig,
    /// Sticky sessions, which the policy then has around it.
    pub sticky: Option<StickyConfig>,
    /// What the policy takes for the target.
    pub target: TargetConfig,
    /// Admission limit and queue.
    pub admission: AdmissionConfig,
    /// Active health checks.
    pub health: HealthConfig,
    /// When a back-end that fails requests is left out.
    pub ejection: EjectionConfig,
    /// How many retries there may be.
    pub retry_budget: RetryBudgetConfig,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Bounds on what clients and back-ends may send.
    pub limits: Limits,
    /// Compression of responses; `None` where there is none.
    pub compression: Option<CompressionConfig>,
}

struct NameOfPool;

impl KeyForm<PoolName> for NameOfPool {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, key: &str) -> Option<PoolName> {
        reader.text(section, key, |text| match name(text)? {
            DEFAULT_POOL => {
                let what = "is the pool of the back-ends that name none".to_owned();
                Err((what, "choose another name, or write its tables at the top of the file".to_owned()))
            }
            name => Ok(Arc::from(name)),
        })
    }

    fn show(name: &PoolName) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.to_string()))
    }
}
