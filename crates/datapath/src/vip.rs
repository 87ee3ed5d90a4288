//! A virtual address on a back-end: on the loopback interface, and never announced to the segment, where it is the
//! front-end's.
//!
//! IPv6 needs no more than the address: the kernel answers a neighbour solicitation only for addresses of the interface at
//! which it came (`ndisc_recv_ns`). IPv4 answers for any address of the machine, unless `arp_ignore` is 1, and asks in the
//! name of any, unless `arp_announce` is 2.
//!
//! What was changed is noted at the address itself, so that whoever comes after a crash can undo it, and nothing is noted
//! that is no longer true. An IPv4 address has a label that says for which interface it is there, and what its settings were
//! before (`lo:p2.00`); an IPv6 address, which has no label, a protocol number.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage, AddressProtocol};
use tracing::{info, warn};

use crate::error::{DatapathError, NET_ADMIN};
use crate::netlink::{CREATE, LOOPBACK, address_messages, family, links, named, order};
use crate::sysctl;

/// (name, least value) of the settings of an interface.
const ARP: [(&str, u32); 2] = [("arp_ignore", 1), ("arp_announce", 2)];
/// The beginning of our addresses' labels. Labels of `lo` begin with its name, have 15 bytes at most, and no meaning.
const LABEL: &str = "lo:p";
/// Who made our IPv6 addresses (`IFA_PROTO`, Linux 5.18). The kernel itself has the numbers up to 3.
const PROTOCOL: AddressProtocol = AddressProtocol::Other(0x70);

/// A virtual address of this machine, which ends with this value.
#[derive(Debug)]
pub struct Vip {
    address: IpAddr,
    place: VipPlace,
    /// The settings before, should the address itself not say so.
    previous: ArpSettings,
    /// Whether there is still something to undo.
    there: bool,
}

/// The interface at which an address is not announced.
#[derive(Debug, Clone)]
struct VipPlace {
    interface: String,
    ifindex: u32,
}

impl VipPlace {
    fn find(interface: &str) -> Result<Self, DatapathError> {
        let links = links()?;
        let link = named(&links, interface)?;
        Ok(Self { interface: link.name.clone(), ifindex: link.index })
    }

    /// Those values of its settings that are too low, and so are changed.
    fn too_low(&self) -> Result<ArpSettings, DatapathError> {
        let mut found = ArpSettings::default();
        for (value, (name, least)) in found.0.iter_mut().zip(ARP) {
            *value = Some(sysctl::read("ipv4", &self.interface, name)?).filter(|value| *value < least);
        }
        Ok(found)
    }

    /// Has the interface neither answer for our addresses nor ask in their name. Stricter settings are left.
    fn silence(&self) -> Result<(), DatapathError> {
        for (value, (name, least)) in self.too_low()?.0.into_iter().zip(ARP) {
            if value.is_some() {
                sysctl::write("ipv4", &self.interface, name, least)?;
            }
        }
        Ok(())
    }

    fn restore(&self, previous: ArpSettings) -> Result<(), DatapathError> {
        for (value, (name, _)) in previous.0.into_iter().zip(ARP) {
            if let Some(value) = value {
                sysctl::write("ipv4", &self.interface, name, value)?;
            }
        }
        Ok(())
    }
}

impl Vip {
    /// Makes `address` one of this machine, unannounced at `interface`. Finds its way when that has been done already, by an
    /// instance that crashed or by the administrator; what the administrator has done is not undone.
    ///
    /// # Errors
    /// No privileges, or no such interface.
    pub fn add(address: IpAddr, interface: &str) -> Result<Self, DatapathError> {
        let address = address.to_canonical();
        let place = VipPlace::find(interface)?;
        let mut previous = ArpSettings::default();
        if address.is_ipv4() {
            // Where another address is there already, it says what was before both.
            previous = place.too_low()?.or(settings_before(&own_addresses()?, place.ifindex));
            place.silence()?;
        }
        let message = on_loopback(address, Some((place.ifindex, previous)));
        match order(RouteNetlinkMessage::NewAddress(message), CREATE) {
            Ok(()) => info!("{address} is an address of this machine now, unannounced at {interface}"),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            Err(error) => {
                let what = format!("cannot add {address} to the loopback interface");
                return Err(DatapathError::of(what, NET_ADMIN, error));
            }
        }
        Ok(Self { address, place, previous, there: true })
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
        undo(&self.place, self.previous, |own| own.address == self.address)
    }

    /// Leaves the address and the settings as they are: for a process that ends while connections go on.
    pub fn leave(mut self) {
        self.there = false;
    }

    /// Undoes all that instances which crashed have left at `interface`; all IPv6 addresses, as these do not say at which
    /// interface they are not announced.
    ///
    /// # Errors
    /// As [`Vip::add`].
    pub fn undo_leftovers(interface: &str) -> Result<(), DatapathError> {
        let place = VipPlace::find(interface)?;
        let is_there = |own: &OwnAddress| own.settings.is_none_or(|(ifindex, _)| ifindex == place.ifindex);
        undo(&place, ArpSettings::default(), is_there)
    }
}

impl Drop for Vip {
    fn drop(&mut self) {
        if self.there
            && let Err(error) = undo(&self.place, self.previous, |own| own.address == self.address)
        {
            warn!("{error}");
        }
    }
}

fn undo(
    place: &VipPlace,
    previous: ArpSettings,
    which: impl Fn(&OwnAddress) -> bool,
) -> Result<(), DatapathError> {
    let before = own_addresses()?;
    let previous = settings_before(&before, place.ifindex).or(previous);
    let (gone, left): (Vec<_>, Vec<_>) = before.into_iter().partition(which);
    for OwnAddress { address, .. } in gone {
        match order(RouteNetlinkMessage::DelAddress(on_loopback(address, None)), 0) {
            Err(error) if error.raw_os_error() != Some(libc::EADDRNOTAVAIL) => {
                let what = format!("cannot remove {address} from the loopback interface");
                return Err(DatapathError::of(what, NET_ADMIN, error));
            }
            _ => info!("{address} is no address of this machine any more"),
        }
    }
    let is_needed = |own: &OwnAddress| own.settings.is_some_and(|(ifindex, _)| ifindex == place.ifindex);
    if left.iter().any(is_needed) { Ok(()) } else { place.restore(previous) }
}

/// The settings of an interface before the first of these addresses.
fn settings_before(own: &[OwnAddress], ifindex: u32) -> ArpSettings {
    let of_interface = own.iter().filter_map(|own| own.settings).filter(|(index, _)| *index == ifindex);
    of_interface.fold(ArpSettings::default(), |all, (_, settings)| all.or(settings))
}

/// The address as a message; with what is noted at it.
fn on_loopback(address: IpAddr, note: Option<(u32, ArpSettings)>) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
    message.header.index = LOOPBACK;
    if address.is_ipv6() {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message.attributes.extend(note.map(|(ifindex, previous)| match address {
        IpAddr::V4(_) => AddressAttribute::Label(previous.label(ifindex)),
        IpAddr::V6(_) => AddressAttribute::Protocol(PROTOCOL),
    }));
    message
}

/// An address that an agent has added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnAddress {
    address: IpAddr,
    /// Of IPv4: the number of the interface at which it is not announced, and its settings before.
    settings: Option<(u32, ArpSettings)>,
}

/// The addresses that agents have added in this network namespace.
fn own_addresses() -> Result<Vec<OwnAddress>, DatapathError> {
    let of_loopback = address_messages(LOOPBACK)?;
    Ok(of_loopback.iter().filter_map(|message| own_address(&message.attributes)).collect())
}

fn own_address(attributes: &[AddressAttribute]) -> Option<OwnAddress> {
    let address = attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    })?;
    attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Label(label) if address.is_ipv4() => {
            Some(OwnAddress { address, settings: Some(ArpSettings::of_label(label)?) })
        }
        AddressAttribute::Protocol(protocol) if address.is_ipv6() && *protocol == PROTOCOL => {
            Some(OwnAddress { address, settings: None })
        }
        _ => None,
    })
}

/// Values of [`ARP`] before they were changed; none for one that was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ArpSettings([Option<u32>; 2]);

impl ArpSettings {
    /// These, and where there is none, the others.
    fn or(self, others: Self) -> Self {
        Self([self.0[0].or(others.0[0]), self.0[1].or(others.0[1])])
    }

    /// The label of an address for an interface with these settings: the interface's number, a dot, and a digit for each
    /// setting, or `-`.
    fn label(self, ifindex: u32) -> String {
        // Only values below 2 are too low; a negative one, which the kernel takes for 0, would read as a large one.
        let digit = |value: Option<u32>| value.and_then(|value| char::from_digit(value, 10)).unwrap_or('-');
        format!("{LABEL}{ifindex}.{}{}", digit(self.0[0]), digit(self.0[1]))
    }

    fn of_label(label: &str) -> Option<(u32, Self)> {
        let (ifindex, digits) = label.strip_prefix(LABEL)?.split_once('.')?;
        let [ignore, announce] = *digits.as_bytes() else { return None };
        let value = |digit: u8| match digit {
            b'-' => Some(None),
            digit => char::from(digit).to_digit(10).map(Some),
        };
        Some((ifindex.parse().ok()?, Self([value(ignore)?, value(announce)?])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_back() {
        for (settings, label) in
            [([Some(0), Some(1)], "lo:p2.01"), ([None, Some(0)], "lo:p2.-0"), ([None, None], "lo:p2.--")]
        {
            let settings = ArpSettings(settings);
            assert_eq!(settings.label(2), label);
            assert_eq!(ArpSettings::of_label(label), Some((2, settings)));
        }
        assert!(ArpSettings::default().label(99_999_999).len() <= 15, "the kernel cuts longer ones");
        for other in ["lo", "lo:0", "lo:p2", "lo:p2.0", "lo:p2.000", "lo:p.00", "lo:p2.x0", "eth0:p2.00", ""]
        {
            assert_eq!(ArpSettings::of_label(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_before_the_first_is_known_to_all() {
        let own = |address: &str, ifindex, settings| OwnAddress {
            address: address.parse().unwrap(),
            settings: Some((ifindex, ArpSettings(settings))),
        };
        let all = [
            own("10.0.0.1", 2, [None, Some(1)]),
            own("10.0.0.2", 2, [Some(0), None]),
            own("10.0.0.3", 3, [Some(0); 2]),
        ];
        assert_eq!(settings_before(&all, 2), ArpSettings([Some(0), Some(1)]));
        assert_eq!(settings_before(&all, 4), ArpSettings::default());
    }

    #[test]
    fn whose_an_address_is() {
        let address = AddressAttribute::Address("10.0.0.1".parse().unwrap());
        let label = |label: &str| AddressAttribute::Label(label.to_owned());
        assert!(own_address(&[address.clone(), label("lo:p2.00")]).is_some());
        assert!(own_address(&[label("lo:p2.00"), address.clone()]).is_some());
        assert_eq!(own_address(&[address, label("lo")]), None);
        let address = AddressAttribute::Address("fd00::1".parse().unwrap());
        assert!(own_address(&[address.clone(), AddressAttribute::Protocol(PROTOCOL)]).is_some());
        assert_eq!(own_address(&[address, AddressAttribute::Protocol(AddressProtocol::Loopback)]), None);
    }
}
