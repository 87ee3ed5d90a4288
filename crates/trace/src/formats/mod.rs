//! The trace formats, one decoder each, and the registry that command line and reports read.

pub(crate) mod before_stamp;
pub mod csv;
pub(crate) mod json;
pub mod json_logs;
pub mod log;
pub mod oracle;
pub mod parquet;
pub(crate) mod parquet_columns;
pub(crate) mod placed;
pub mod server_logs;
pub mod time_id_size;
pub mod w3c;
pub mod worldcup;

use crate::format_spec::FormatSpec;

/// Every format, in the order in which messages list them.
pub static FORMATS: &[&FormatSpec] = &[
    &log::COMMON_SPEC,
    &log::COMBINED_SPEC,
    &server_logs::VHOST,
    &server_logs::HAPROXY,
    &server_logs::SQUID,
    &server_logs::ENVOY,
    &server_logs::ISTIO,
    &server_logs::ALB,
    &server_logs::S3,
    &w3c::SPEC,
    &json_logs::PLIMSOLL,
    &json_logs::CADDY,
    &json_logs::TRAEFIK,
    &json_logs::CLOUDFLARE,
    &json_logs::ENVOY,
    &json_logs::NGINX,
    &json_logs::JSON,
    &worldcup::SPEC,
    &oracle::SPEC,
    &time_id_size::SPEC,
    &csv::SPEC,
    &parquet::SPEC,
];
