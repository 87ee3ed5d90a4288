//! Where an agent's programs are attached: those of a guard, or that of a packet router. A process of either kind takes the place of
//! one of the other kind that had its name.

use std::os::fd::BorrowedFd;

use crate::attach::{AttachPoint, FilterPlace};
use crate::error::DatapathError;
use crate::netlink::NetworkInterface;

/// Priorities of the filters: early, yet with room before them.
const GUARD: u32 = 81;
const ROUTER: u32 = 82;

/// Those of a guard: where packets arrive, and where they leave.
pub(crate) fn guard_places(instance: &str, ifindex: u32) -> [FilterPlace; 2] {
    [AttachPoint::Ingress, AttachPoint::Egress].map(|point| FilterPlace::new(instance, ifindex, point, GUARD))
}

/// That of a packet router.
pub(crate) fn router_place(instance: &str, ifindex: u32) -> FilterPlace {
    FilterPlace::new(instance, ifindex, AttachPoint::Ingress, ROUTER)
}

/// Detaches what earlier processes of this name have left at any of these interfaces, except at `used`.
pub(crate) fn detach_leftovers(
    instance: &str,
    links: &[NetworkInterface],
    used: &[FilterPlace],
    any_program: BorrowedFd<'_>,
) -> Result<(), DatapathError> {
    for link in links {
        let [arrival, departure] = guard_places(instance, link.index);
        let places = [arrival, departure, router_place(instance, link.index)];
        places
            .iter()
            .filter(|place| !used.contains(place))
            .try_for_each(|place| place.detach(any_program))?;
    }
    Ok(())
}
