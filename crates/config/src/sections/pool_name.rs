//! Names of pools.

use std::sync::Arc;

use crate::declare::KeyForm;
use crate::keys::Default::Words;
use crate::name::name;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::value::ConfigValue;

/// Name of a pool: what routes, metrics and the admin API call it.
pub type PoolName = Arc<str>;

/// The name of the pool of the back-ends that name none.
pub const DEFAULT_POOL: &str = "default";

/// A pool; none is the one of the back-ends that name none.
pub(super) struct PoolOrDefault;

impl KeyForm<Option<PoolName>> for PoolOrDefault {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<PoolName>> {
        if section.found(key).is_none() {
            return Some(None);
        }
        let name = reader.text(section, key, |text| name(text).map(Arc::<str>::from))?;
        Some(Some(name).filter(|name| **name != *DEFAULT_POOL))
    }

    fn show(name: &Option<PoolName>) -> Option<ConfigValue> {
        name.as_ref().map(|name| ConfigValue::Text(name.to_string()))
    }
}

/// The default of keys that name a pool.
pub(super) const NO_POOL: crate::keys::Default = Words("the pool `default`");
