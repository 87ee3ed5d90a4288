//! Integration tests of the trace crate.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod helpers;
#[cfg(test)]
mod log_formats;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod odd_logs;
#[cfg(test)]
mod parquet_types;
#[cfg(test)]
mod real_traces;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod round_trips;
