//! Where servers of others tell their loads.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where servers tell their loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiAddress {
    /// At an address of this machine that others cannot reach: loopback.
    Loopback(SocketAddr),
    /// At a Unix socket.
    Unix(PathBuf),
}

/// Who may use a Unix socket at which loads are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiAccess {
    /// The user that starts the agent.
    Owner,
    /// And the group of this number.
    Group(u32),
}

impl ApiAccess {
    /// Of the group that is named, or given by number.
    ///
    /// # Errors
    /// When there is no such group, with what to do about it.
    pub fn of_group(name: &str) -> Result<Self, String> {
        if let Ok(number) = name.parse() {
            return Ok(Self::Group(number));
        }
        let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
        // NAME:PASSWORD:NUMBER:MEMBERS
        let number = groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
        });
        number
            .map(Self::Group)
            .ok_or_else(|| format!("there is no group {name:?}; give one of /etc/group, or a number"))
    }
}

impl std::str::FromStr for ApiAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().to_canonical().is_loopback() => Ok(Self::Loopback(address)),
            Ok(_) => {
                Err("it is open to whoever reaches it: give an address of loopback, or unix:PATH".to_owned())
            }
            Err(_) => Err("give an IP address and a port, as 127.0.0.1:7402, or unix:PATH".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_by_name_and_number() {
        assert_eq!(ApiAccess::of_group("1234"), Ok(ApiAccess::Group(1234)));
        assert_eq!(ApiAccess::of_group("root"), Ok(ApiAccess::Group(0)));
        assert!(ApiAccess::of_group("no such group").unwrap_err().contains("/etc/group"));
    }
}
