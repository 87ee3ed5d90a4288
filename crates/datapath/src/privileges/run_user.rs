//! Users of this machine.

use std::fmt;

use nix::unistd::{Uid, User};

use super::PrivilegeError;

/// A user to run as, with the user's own group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUser {
    name: String,
    uid: u32,
    gid: u32,
}

impl RunUser {
    /// The user of this name or number. A number need not be in the user database; its group then has the same number.
    ///
    /// # Errors
    /// [`PrivilegeError::NoUser`], or the user database cannot be read.
    pub fn find(text: &str) -> Result<Self, PrivilegeError> {
        let failed = |errno: nix::Error| PrivilegeError::System {
            what: format!("cannot look the user {text:?} up"),
            source: errno.into(),
        };
        // Numbers that mean "no change" to the kernel are no users.
        let number = text.parse().ok().filter(|uid| !matches!(*uid, 0xffff | u32::MAX));
        let found = match number {
            Some(uid) => User::from_uid(Uid::from_raw(uid)),
            None => User::from_name(text),
        };
        match (found.map_err(failed)?, number) {
            (Some(user), _) => Ok(Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }),
            (None, Some(uid)) => Ok(Self { name: uid.to_string(), uid, gid: uid }),
            (None, None) => Err(PrivilegeError::NoUser { name: text.to_owned() }),
        }
    }

    /// The number.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The number of the user's own group.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Whether this is root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// The name, with the number where they differ.
impl fmt::Display for RunUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.uid.to_string();
        if number == self.name { f.write_str(&number) } else { write!(f, "{} ({number})", self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_number() {
        let root = RunUser::find("root").unwrap();
        assert!(root.is_root());
        assert_eq!(RunUser::find("0").unwrap(), root);
        assert_eq!(root.to_string(), "root (0)");
        let unknown = RunUser::find("3999999").unwrap();
        assert_eq!(
            (unknown.uid(), unknown.gid(), unknown.to_string().as_str()),
            (3_999_999, 3_999_999, "3999999")
        );
        for bad in ["", "no-such-user", "-1", "4294967295", "65535", "1:2"] {
            assert!(matches!(RunUser::find(bad), Err(PrivilegeError::NoUser { .. })), "{bad}");
        }
    }
}
