//! How many files this process may have open; each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_system_lets() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_open_file_limit(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }
}
