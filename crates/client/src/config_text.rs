//! Clients by a configuration text, for programs that do not build them by code.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_policy::Weight;
use plimsoll_wire::Key;
use serde::Deserialize;

use crate::asker::LoadPolling;
use crate::budget::RetryBudget;
use crate::client::{CallRules, ServiceClient};
use crate::endpoint::Endpoint;
use crate::error::ClientError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServicesText {
    services: Vec<ServiceText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceText {
    name: String,
    policy: Option<String>,
    load_polling: Option<PollingText>,
    retry_budget: Option<BudgetText>,
    attempts: Option<u32>,
    eject_after: Option<u32>,
    endpoints: Vec<EndpointText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PollingText {
    key_file: PathBuf,
    discard_after_ms: Option<u64>,
    size: Option<u8>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetText {
    share: Option<f64>,
    least_per_s: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointText {
    name: String,
    address: SocketAddr,
    load_address: Option<SocketAddr>,
    weight: Option<f64>,
    #[serde(default)]
    partitions: Vec<String>,
}

/// The clients that a configuration in TOML describes; `docs/client.md` has the keys. Has to be called inside a tokio runtime if a
/// service asks for loads.
///
/// # Errors
/// When the text cannot be read, a value cannot be used, or a key file cannot be read.
pub fn read_services(text: &str) -> Result<Vec<ServiceClient>, ClientError> {
    let read: ServicesText =
        toml::from_str(text).map_err(|error| ClientError::Text(error.to_string().trim_end().to_owned()))?;
    if let Some((at, service)) =
        read.services.iter().enumerate().find(|(at, s)| read.services[..*at].iter().any(|o| o.name == s.name))
    {
        let what = format!("it is `services` number {}, too; name each service once", at + 1);
        return Err(ClientError::Setting { service: service.name.clone(), what });
    }
    read.services.into_iter().map(client_of).collect()
}

fn client_of(text: ServiceText) -> Result<ServiceClient, ClientError> {
    let service = text.name;
    let endpoints = text.endpoints.into_iter().map(|endpoint| endpoint_of(&service, endpoint));
    let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
    let mut builder = ServiceClient::builder().service(service).endpoints(endpoints);
    if let Some(policy) = text.policy {
        builder = builder.policy(policy);
    }
    if let Some(BudgetText { share, least_per_s }) = text.retry_budget {
        let default = RetryBudget::default();
        let (share, least_per_s) =
            (share.unwrap_or(default.share), least_per_s.unwrap_or(default.least_per_s));
        builder = builder.budget(RetryBudget { share, least_per_s });
    }
    if let Some(attempts) = text.attempts {
        builder = builder.rules(CallRules { attempts, ..CallRules::default() });
    }
    if let Some(failures) = text.eject_after {
        builder = builder.eject_after(failures);
    }
    if let Some(PollingText { key_file, discard_after_ms, size }) = text.load_polling {
        let mut polling = LoadPolling::new(Key::load(&key_file)?);
        polling.size = size;
        if let Some(ms) = discard_after_ms {
            polling.discard_after = Duration::from_millis(ms);
        }
        builder = builder.load_polling(polling);
    }
    builder.build()
}

fn endpoint_of(service: &str, text: EndpointText) -> Result<Endpoint, ClientError> {
    let mut endpoint = Endpoint::new(text.name, text.address).with_partitions(text.partitions);
    if let Some(address) = text.load_address {
        endpoint = endpoint.with_load_address(address);
    }
    if let Some(number) = text.weight {
        let weight = Weight::new(number).ok_or_else(|| ClientError::Setting {
            service: service.to_owned(),
            what: format!("the weight of `{}` is {number}; give 0 to 65,536", endpoint.name()),
        })?;
        endpoint = endpoint.with_weight(weight);
    }
    Ok(endpoint)
}
