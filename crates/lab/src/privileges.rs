//! The privileges that a lab needs.

use rustix::thread::{CapabilitySet, capabilities};

use crate::error::LabError;

/// The capabilities needed: for namespaces and mounts; for interfaces; to enter other processes' namespaces.
const NEEDED: [(CapabilitySet, &str); 3] = [
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
];

/// Checks that this process may build a lab and enter its nodes. It needs the capabilities `CAP_SYS_ADMIN`,
/// `CAP_NET_ADMIN` and `CAP_SYS_PTRACE`, so usually root.
///
/// # Errors
/// [`LabError::Privileges`], with the names of those that the calling thread lacks.
pub fn check_privileges() -> Result<(), LabError> {
    let sets =
        capabilities(None).map_err(|errno| LabError::system("read this process's capabilities", errno))?;
    match missing(sets.effective) {
        None => Ok(()),
        Some(missing) => Err(LabError::Privileges { missing }),
    }
}

fn missing(effective: CapabilitySet) -> Option<String> {
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(capability, _)| !effective.contains(*capability))
        .map(|(_, name)| *name)
        .collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_missing() {
        assert_eq!(missing(CapabilitySet::all()), None);
        let some = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_PTRACE;
        assert_eq!(missing(some).as_deref(), Some("CAP_NET_ADMIN"));
        let none = missing(CapabilitySet::empty()).unwrap();
        assert_eq!(none, "CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SYS_PTRACE");
    }
}
