//! Encoders: a trace into a file of another format.

pub(crate) mod csv;
pub(crate) mod oracle;
pub(crate) mod parquet;
mod requests;
mod sink;
mod text;
pub(crate) mod time_id_size;

pub(crate) use requests::Requests;
pub(crate) use sink::Sink;
