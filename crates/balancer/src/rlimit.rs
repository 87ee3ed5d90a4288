//! How many files this process may have open; each connection is one.

use plimsoll_config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files for logs, listeners, the admin API, health checks and what else there is.
const FILES_FOR_OTHERS: usize = 128;

/// Raises the number of files that this process may have open at once to the most that the system lets it have (the
/// soft `RLIMIT_NOFILE` to the hard one, `getrlimit(2)`). Returns what is in force afterwards, in files; `None` is
/// without limit. Where the system refuses, the limit stays as it is.
#[must_use]
pub fn raise_open_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // A refusal shows in what is in force afterwards.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

/// Connections of clients that there is room for once the limit is raised: see [`connections`].
pub(crate) fn most_connections(config: &Config) -> usize {
    connections(config, raise_open_file_limit())
}

/// Connections of clients that there is room for: what is configured, or fewer where the system does not allow as many
/// open files. Connections to back-ends, as many as there may be, keep up to half of these.
fn connections(config: &Config, allowed_files: Option<u64>) -> usize {
    let Some(allowed) = allowed_files.and_then(|files| usize::try_from(files).ok()) else {
        return config.limits.connections;
    };
    let to_backends: usize = config.all_backends().map(|b| b.max_connections as usize).sum();
    let usable = allowed.saturating_sub(FILES_FOR_OTHERS);
    let wanted = config.limits.connections;
    let most = (usable - to_backends.min(usable / 2)).max(usable / 2).max(1);
    if wanted + wanted.min(to_backends) > usable && wanted > most {
        tracing::warn!(
            connections = most,
            "fewer open files are allowed than `limits.connections` needs, so that many connections are served at once; \
             raise the limit (ulimit -n, LimitNOFILE) or lower `limits.connections`"
        );
        return most;
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_system_lets() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_open_file_limit(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }

    #[test]
    fn connections_leave_files_for_back_ends() {
        let config = |connections: usize, to_backends: u32| {
            let text = format!(
                "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
                 max_connections = {to_backends}\n[limits]\nconnections = {connections}\n"
            );
            Config::parse(&text, "test.toml").unwrap()
        };
        let of = |wanted, to_backends, files| connections(&config(wanted, to_backends), Some(files));
        assert_eq!(of(10_000, 1024, 20_000), 10_000);
        assert_eq!(of(10_000, 1024, 4096 + 128), 4096 - 1024);
        assert_eq!(of(10_000, 60_000, 1024 + 128), 512);
        assert_eq!(of(100, 60_000, 1024 + 128), 100);
        assert_eq!(connections(&config(10_000, 1024), None), 10_000);
    }
}
