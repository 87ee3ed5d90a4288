//! The client library for C. `include/plimsoll.h` is made from this file, and a test compares both.
//!
//! Pointers that a function takes may be NULL: then it does nothing, or says that its arguments are wrong. No panic leaves a
//! function. What a function allocates has its own function that frees it.

mod status;

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use plimsoll_client::{AccessEnd, ChooseError, ChosenBackend, ServiceAccess, ServiceClient, read_services};
use safer_ffi::prelude::*;
use tokio::runtime::Runtime;

pub use status::PlimsollStatus;

/// Clients of the services of a configuration. It may be used by several threads at once.
#[derive_ReprC]
#[repr(opaque)]
pub struct PlimsollClients {
    clients: Vec<ServiceClient>,
    runtime: Option<Runtime>,
}

/// An access to a back-end that was chosen. It counts as the back-end's load until it is finished.
#[derive_ReprC]
#[repr(opaque)]
pub struct PlimsollAccess {
    chosen: ChosenBackend,
    host: char_p::Box,
    name: char_p::Box,
}

/// Work that must not panic beyond the border.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Text of C, which need not be UTF-8.
fn text_of<'t>(text: Option<char_p::Ref<'t>>) -> Option<&'t str> {
    std::str::from_utf8(text?.to_bytes()).ok()
}

/// `None` for text with a NUL in it, which C cannot hold.
fn text_for_c(text: &str) -> Option<char_p::Box> {
    char_p::Box::try_from(text.to_owned()).ok()
}

/// Makes clients from a configuration in TOML. NULL if that cannot be done; if `message` is not NULL, it then gets a text
/// that says why, to be freed with `plimsoll_text_free`, and NULL otherwise. Free what it returns with `plimsoll_clients_free`.
#[ffi_export]
pub fn plimsoll_clients_new(
    configuration: Option<char_p::Ref<'_>>,
    message: Option<Out<'_, Option<char_p::Box>>>,
) -> Option<repr_c::Box<PlimsollClients>> {
    let made = guarded(Err("the library has failed; this is an error in it".to_owned()), || {
        let text = text_of(configuration).ok_or("the configuration is NULL or not UTF-8")?;
        clients_of(text)
    });
    let (clients, error) = match made {
        Ok(clients) => (Some(Box::new(clients).into()), None),
        Err(error) => (None, text_for_c(&error)),
    };
    if let Some(message) = message {
        message.write(error);
    }
    clients
}

fn clients_of(text: &str) -> Result<PlimsollClients, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start a thread: {error}"))?;
    let entered = runtime.enter();
    let clients = read_services(text).map_err(|error| error.to_string())?;
    drop(entered);
    Ok(PlimsollClients { clients, runtime: Some(runtime) })
}

impl Drop for PlimsollClients {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Frees clients. Accesses that were chosen stay, and have to be finished. NULL is allowed.
#[ffi_export]
pub fn plimsoll_clients_free(clients: Option<repr_c::Box<PlimsollClients>>) {
    guarded((), || drop(clients));
}

/// Frees a text that was returned. NULL is allowed.
#[ffi_export]
pub fn plimsoll_text_free(text: Option<char_p::Box>) {
    guarded((), || drop(text));
}

/// Chooses a back-end for an access to a partition of a service; `""` or NULL for a service without partitions. It waits for
/// `timeout_ms` at most. `key` says what is asked for, to policies that go by it; NULL for none. With `PLIMSOLL_STATUS_OK`, `access`
/// gets what is to be ended with `plimsoll_finish`, else NULL.
#[ffi_export]
pub fn plimsoll_choose(
    clients: Option<&PlimsollClients>,
    service: Option<char_p::Ref<'_>>,
    partition: Option<char_p::Ref<'_>>,
    key: Option<char_p::Ref<'_>>,
    timeout_ms: u32,
    access: Option<Out<'_, Option<repr_c::Box<PlimsollAccess>>>>,
) -> PlimsollStatus {
    let Some(access) = access else { return PlimsollStatus::WrongArgument };
    let chosen = guarded(Err(PlimsollStatus::Internal), || {
        let service = text_of(service).ok_or(PlimsollStatus::WrongArgument)?;
        let partition = match partition {
            Some(_) => text_of(partition).ok_or(PlimsollStatus::WrongArgument)?,
            None => "",
        };
        let mut asked = ServiceAccess::to(partition);
        if let Some(key) = key {
            asked = asked.key(key.to_bytes());
        }
        let clients = clients.ok_or(PlimsollStatus::WrongArgument)?;
        choose(clients, service, asked, Duration::from_millis(timeout_ms.into()))
    });
    let (status, chosen) = match chosen {
        Ok(chosen) => (PlimsollStatus::Ok, Some(Box::new(chosen).into())),
        Err(status) => (status, None),
    };
    access.write(chosen);
    status
}

fn choose(
    clients: &PlimsollClients,
    service: &str,
    access: ServiceAccess<'_>,
    timeout: Duration,
) -> Result<PlimsollAccess, PlimsollStatus> {
    let client = clients.clients.iter().find(|client| client.service() == service);
    let client = client.ok_or(PlimsollStatus::UnknownService)?;
    let runtime = clients.runtime.as_ref().ok_or(PlimsollStatus::Internal)?;
    let chosen = runtime.block_on(async { tokio::time::timeout(timeout, client.choose(access)).await });
    let chosen = chosen.map_err(|_| PlimsollStatus::TimedOut)?.map_err(|error| match error {
        ChooseError::UnknownPartition => PlimsollStatus::UnknownPartition,
        ChooseError::NoBackend | ChooseError::QueueFull => PlimsollStatus::NoBackend,
        ChooseError::WaitedTooLong => PlimsollStatus::TimedOut,
    })?;
    let host = text_for_c(&chosen.endpoint().address().ip().to_string()).ok_or(PlimsollStatus::Internal)?;
    let name = text_for_c(&chosen.endpoint().name().replace('\0', "")).ok_or(PlimsollStatus::Internal)?;
    Ok(PlimsollAccess { chosen, host, name })
}

/// The IP address of the back-end, as text; it lives as long as the access. NULL for NULL.
#[ffi_export]
pub fn plimsoll_access_host(access: Option<&PlimsollAccess>) -> Option<char_p::Ref<'_>> {
    access.map(|access| access.host.as_ref())
}

/// The name of the back-end; it lives as long as the access. NULL for NULL.
#[ffi_export]
pub fn plimsoll_access_name(access: Option<&PlimsollAccess>) -> Option<char_p::Ref<'_>> {
    access.map(|access| access.name.as_ref())
}

/// The port of the back-end; 0 for NULL.
#[ffi_export]
pub fn plimsoll_access_port(access: Option<&PlimsollAccess>) -> u16 {
    access.map_or(0, |access| SocketAddr::port(&access.chosen.endpoint().address()))
}

/// The back-end has told its load, such as in its response. NULL is allowed.
#[ffi_export]
pub fn plimsoll_tell_load(access: Option<&PlimsollAccess>, load: u32) {
    guarded((), || {
        if let Some(access) = access {
            access.chosen.tell_load(load);
        }
    });
}

/// Ends an access, and frees it. `outcome` is 0 for answered, 1 for a back-end that failed, 2 for one that refused because it has too
/// much to do, 3 for an access that was abandoned. Any other outcome counts as abandoned, and the status says so.
#[ffi_export]
pub fn plimsoll_finish(access: Option<repr_c::Box<PlimsollAccess>>, outcome: i32) -> PlimsollStatus {
    let Some(access) = access else { return PlimsollStatus::WrongArgument };
    guarded(PlimsollStatus::Internal, || {
        let (end, status) = match outcome {
            0 => (AccessEnd::Answered { size_bytes: None }, PlimsollStatus::Ok),
            1 => (AccessEnd::Failed, PlimsollStatus::Ok),
            2 => (AccessEnd::Refused, PlimsollStatus::Ok),
            3 => (AccessEnd::Abandoned, PlimsollStatus::Ok),
            _ => (AccessEnd::Abandoned, PlimsollStatus::WrongArgument),
        };
        let access: Box<PlimsollAccess> = access.into();
        access.chosen.finish(end);
        status
    })
}

#[cfg(test)]
mod tests {
    /// The header is as this file says. `UPDATE_GOLDEN=1` writes it anew.
    #[test]
    fn the_header_is_that_of_the_functions() {
        let mut made = Vec::new();
        safer_ffi::headers::builder()
            .with_guard("PLIMSOLL_H")
            .with_banner("/* The client library of Plimsoll for C; see docs/client.md. Made from crates/client-c/src/lib.rs. */\n\n")
            .to_writer(&mut made)
            .generate()
            .unwrap();
        let made = String::from_utf8(made).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/include/plimsoll.h");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == made,
            "include/plimsoll.h is out of date; run with UPDATE_GOLDEN=1 and look at the difference"
        );
    }
}
