//! A virtual address on a back-end: on the loopback interface, and never announced to the segment, where it is the
//! front-end's.
//!
//! IPv6 needs no more than the address: the kernel answers a neighbour solicitation only for addresses of the interface at
//! which it came (`ndisc_recv_ns`). IPv4 answers for any address of the machine, unless `arp_ignore` is 1, and asks in the
//! name of any, unless `arp_announce` is 2.
//!
//! What was changed is noted below [`RECORDS`] before it is changed, so that it can be undone after a crash.

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use rustix::fs::FlockOperation;
use tracing::{info, warn};

use crate::error::{DatapathError, NET_ADMIN};
use crate::netlink::{CREATE, addresses, family, order};
use crate::sysctl;

/// Where it is noted what has been changed. Emptied by a restart of the machine, as the settings are.
const RECORDS: &str = "/run/plimsoll";
/// The loopback interface has this number in every network namespace.
const LOOPBACK: u32 = 1;
/// (name, least value) of the settings of an interface.
const ARP: [(&str, u32); 2] = [("arp_ignore", 1), ("arp_announce", 2)];

/// A virtual address of this machine, which ends with this value.
#[derive(Debug)]
pub struct Vip {
    address: IpAddr,
    interface: String,
    /// Whether there is still something to undo.
    there: bool,
}

impl Vip {
    /// Makes `address` one of this machine, unannounced at `interface`. Finds its way when that has been done already, by an
    /// instance that crashed or by the administrator; what the administrator has done is not undone.
    ///
    /// # Errors
    /// No privileges, no such interface, or no place to note what was changed.
    pub fn add(address: IpAddr, interface: &str) -> Result<Self, DatapathError> {
        let address = address.to_canonical();
        let store = VipStore::open(interface)?;
        let mut record = store.read()?;
        if address.is_ipv4() && record.previous.is_none() {
            let mut previous = [0; 2];
            for (value, (name, _)) in previous.iter_mut().zip(ARP) {
                *value = sysctl::read("ipv4", interface, name)?;
            }
            record.previous = Some(previous);
        }
        let ours = record.addresses.contains(&address);
        if !ours {
            record.addresses.push(address);
        }
        store.write(&record)?;
        if address.is_ipv4() {
            silence(interface)?;
        }
        match order(RouteNetlinkMessage::NewAddress(on_loopback(address)), CREATE) {
            Ok(()) => info!("{address} is an address of this machine now, unannounced at {interface}"),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                if !ours {
                    record.addresses.retain(|other| *other != address);
                    store.write(&record)?;
                }
            }
            Err(error) => {
                let what = format!("cannot add {address} to the loopback interface");
                return Err(DatapathError::of(what, NET_ADMIN, error));
            }
        }
        Ok(Self { address, interface: interface.to_owned(), there: true })
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Takes the address away again, and with the last one restores the interface's settings. Dropping does the same, and
    /// logs what goes wrong.
    ///
    /// # Errors
    /// As [`Vip::add`].
    pub fn undo(mut self) -> Result<(), DatapathError> {
        self.there = false;
        undo(&self.interface, |address| *address == self.address)
    }

    /// Leaves the address and the settings as they are: for a process that ends while connections go on.
    pub fn leave(mut self) {
        self.there = false;
    }

    /// Undoes all that instances which crashed have left at `interface`.
    ///
    /// # Errors
    /// As [`Vip::add`].
    pub fn undo_leftovers(interface: &str) -> Result<(), DatapathError> {
        undo(interface, |_| true)
    }
}

impl Drop for Vip {
    fn drop(&mut self) {
        if self.there
            && let Err(error) = undo(&self.interface, |address| *address == self.address)
        {
            warn!("{error}");
        }
    }
}

/// Has the interface neither answer for our addresses nor ask in their name. Stricter settings are left.
fn silence(interface: &str) -> Result<(), DatapathError> {
    for (name, least) in ARP {
        if sysctl::read("ipv4", interface, name)? < least {
            sysctl::write("ipv4", interface, name, least)?;
        }
    }
    Ok(())
}

fn undo(interface: &str, which: impl Fn(&IpAddr) -> bool) -> Result<(), DatapathError> {
    let store = VipStore::open(interface)?;
    let mut record = store.read()?;
    let (gone, left): (Vec<_>, Vec<_>) = record.addresses.iter().copied().partition(which);
    for address in gone {
        match order(RouteNetlinkMessage::DelAddress(on_loopback(address)), 0) {
            Err(error) if error.raw_os_error() != Some(libc::EADDRNOTAVAIL) => {
                let what = format!("cannot remove {address} from the loopback interface");
                return Err(DatapathError::of(what, NET_ADMIN, error));
            }
            _ => info!("{address} is no address of this machine any more"),
        }
    }
    record.addresses = left;
    if !record.addresses.iter().any(IpAddr::is_ipv4)
        && let Some(previous) = record.previous.take()
    {
        for ((name, _), value) in ARP.into_iter().zip(previous) {
            sysctl::write("ipv4", interface, name, value)?;
        }
    }
    store.write(&record)
}

fn on_loopback(address: IpAddr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
    message.header.index = LOOPBACK;
    if address.is_ipv6() {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message
}

/// What was changed at an interface.
#[derive(Debug, Default, PartialEq, Eq)]
struct VipRecord {
    /// Values of [`ARP`] before, once an IPv4 address has been added.
    previous: Option<[u32; 2]>,
    /// Addresses that we added.
    addresses: Vec<IpAddr>,
}

impl VipRecord {
    fn parse(text: &str) -> Option<Self> {
        let mut record = Self::default();
        for line in text.lines() {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["previous", ignore, announce] => {
                    record.previous = Some([ignore.parse().ok()?, announce.parse().ok()?]);
                }
                ["address", address] => record.addresses.push(address.parse().ok()?),
                [] => {}
                _ => return None,
            }
        }
        Some(record)
    }

    /// Without what is no longer true: a namespace that is deleted takes its addresses with it, and another may get its
    /// number.
    fn still_true(mut self, there: &[IpAddr]) -> Self {
        self.addresses.retain(|address| there.contains(address));
        if !self.addresses.iter().any(IpAddr::is_ipv4) {
            self.previous = None;
        }
        self
    }

    fn text(&self) -> String {
        let previous = self
            .previous
            .map(|[ignore, announce]| format!("previous {ignore} {announce}\n"))
            .unwrap_or_default();
        let addresses: String = self.addresses.iter().map(|address| format!("address {address}\n")).collect();
        previous + &addresses
    }
}

/// The record of one interface, which nobody else reads or writes meanwhile.
struct VipStore {
    path: PathBuf,
    _lock: File,
}

impl VipStore {
    fn open(interface: &str) -> Result<Self, DatapathError> {
        let lock = Path::new(RECORDS).join("vip.lock");
        let failed = |error| {
            DatapathError::of(
                format!("cannot note changes in {}", lock.display()),
                "write access there",
                error,
            )
        };
        fs::create_dir_all(RECORDS).map_err(failed)?;
        let file = File::create(&lock).map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        let namespace = fs::metadata("/proc/thread-self/ns/net").map_err(failed)?;
        let namespace = std::os::unix::fs::MetadataExt::ino(&namespace);
        // A name with a slash, or `..`, is that of no interface.
        if interface.contains('/') || interface.is_empty() {
            return Err(DatapathError::NoInterface { name: format!("{interface:?}") });
        }
        Ok(Self { path: Path::new(RECORDS).join(format!("vip-{namespace}-{interface}")), _lock: file })
    }

    fn failed(&self, error: io::Error) -> DatapathError {
        DatapathError::of(
            format!("cannot note changes in {}", self.path.display()),
            "write access there",
            error,
        )
    }

    fn read(&self) -> Result<VipRecord, DatapathError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => {
                let damaged = || format!("{} is damaged: remove it", self.path.display());
                let record = VipRecord::parse(&text).ok_or_else(|| DatapathError::Unexpected(damaged()))?;
                Ok(record.still_true(&addresses(LOOPBACK)?))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(VipRecord::default()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn write(&self, record: &VipRecord) -> Result<(), DatapathError> {
        let written = match record.text() {
            empty if empty.is_empty() => match fs::remove_file(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
            text => {
                // In one step, so that a crash leaves the old or the new.
                let new = self.path.with_extension("new");
                fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path))
            }
        };
        written.map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::VipRecord;

    #[test]
    fn what_went_with_its_namespace_is_forgotten() {
        let record = || VipRecord::parse("previous 0 2\naddress 10.0.0.1\naddress fd00::1\n").unwrap();
        let addresses = record().addresses;
        assert_eq!(record().still_true(&addresses), record());
        assert_eq!(record().still_true(&[]), VipRecord::default());
        assert_eq!(record().still_true(&addresses[1..]).previous, None);
    }

    #[test]
    fn records_and_back() {
        let record = VipRecord {
            previous: Some([0, 2]),
            addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        };
        assert_eq!(record.text(), "previous 0 2\naddress 10.0.0.1\naddress fd00::1\n");
        assert_eq!(VipRecord::parse(&record.text()), Some(record));
        assert_eq!(VipRecord::parse(""), Some(VipRecord::default()));
        for bad in ["previous 1", "previous a b", "address x", "other"] {
            assert_eq!(VipRecord::parse(bad), None, "{bad}");
        }
    }
}
