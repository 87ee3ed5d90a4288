//! Where the switch's program is attached.

use std::os::fd::BorrowedFd;

use tracing::info;

use super::xdp::{self, XdpPlace};
use crate::attach::{AttachPoint, FilterPlace};
use crate::error::DatapathError;
use crate::netlink::{self, NetworkInterface};

/// Priority of the filter: early, yet with room before it.
const PRIORITY: u32 = 80;

/// Where packets meet the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SwitchHook {
    /// XDP where the driver of a device of hardware runs it, tc elsewhere.
    #[default]
    Auto,
    /// The ingress of tc.
    Tc,
    /// XDP in the driver.
    Xdp,
}

/// The places of one switch.
#[derive(Debug, Default)]
pub(super) struct SwitchPlaces {
    tc: Vec<(FilterPlace, String)>,
    xdp: Vec<(XdpPlace, String)>,
}

impl SwitchPlaces {
    /// The interfaces of these names, which must be Ethernet.
    pub(super) fn links(names: &[String]) -> Result<Vec<NetworkInterface>, DatapathError> {
        let all = netlink::links()?;
        let find = |name: &String| {
            let link = netlink::named(&all, name)?;
            link.check_ethernet()?;
            Ok(link.clone())
        };
        names.iter().map(find).collect()
    }

    /// Attaches the programs for tc and for XDP as `hook` says, and detaches what an earlier process of this instance, which had
    /// the map of this number, has left elsewhere.
    pub(super) fn attach(
        instance: &str,
        links: &[NetworkInterface],
        hook: SwitchHook,
        (tc, xdp, map_id): (BorrowedFd<'_>, BorrowedFd<'_>, u32),
    ) -> Result<Self, DatapathError> {
        let place = |index: u32| FilterPlace::new(instance, index, AttachPoint::Ingress, PRIORITY);
        let mut places = Self::default();
        for link in links {
            let tried = match hook {
                SwitchHook::Tc => None,
                SwitchHook::Auto if link.is_virtual => None,
                SwitchHook::Auto | SwitchHook::Xdp => Some(xdp::attach(xdp, link.index)),
            };
            match tried {
                Some(Ok(attached)) => {
                    places.xdp.push((attached, link.name.clone()));
                    continue;
                }
                Some(Err(error)) if hook == SwitchHook::Xdp => return Err(error),
                Some(Err(error)) => info!("{} gets its program by tc: {error}", link.name),
                None => {}
            }
            place(link.index).attach(tc)?;
            places.tc.push((place(link.index), link.name.clone()));
        }
        places.detach_leftovers(&place, (tc, xdp, map_id))?;
        Ok(places)
    }

    fn detach_leftovers(
        &self,
        place: &impl Fn(u32) -> FilterPlace,
        (tc, xdp, map_id): (BorrowedFd<'_>, BorrowedFd<'_>, u32),
    ) -> Result<(), DatapathError> {
        for link in netlink::links()? {
            let filter = place(link.index);
            if !self.tc.iter().any(|(used, _)| *used == filter) {
                filter.detach(tc)?;
            }
            if !self.xdp.iter().any(|(used, _)| used.is_at(link.index)) {
                xdp::detach_leftover(xdp, link.index, map_id)?;
            }
        }
        Ok(())
    }

    pub(super) fn describe(&self) -> Vec<String> {
        let xdp = self.xdp.iter().map(|(_, name)| format!("{name} by XDP"));
        xdp.chain(self.tc.iter().map(|(_, name)| format!("{name} by tc"))).collect()
    }

    /// Detaches what was attached. What can be detached is.
    pub(super) fn detach(&self, tc: BorrowedFd<'_>, xdp: BorrowedFd<'_>) -> Result<(), DatapathError> {
        let mut result = Ok(());
        for (place, _) in &self.tc {
            result = result.and(place.detach(tc));
        }
        for (place, _) in &self.xdp {
            result = result.and(place.detach(xdp));
        }
        result
    }
}
