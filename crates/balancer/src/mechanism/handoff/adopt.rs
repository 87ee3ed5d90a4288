//! Adopts connections that an agent has and that no link of this front-end knows, as the front-end or the link has started anew.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_datapath::FlowEntry;
use plimsoll_wire::message::ToAgent;

use super::handoffs::Handoffs;
use super::orphan::OrphanOffer;
use super::registry::Owner;
use super::table::HandoffEntry;
use crate::worker::Worker;

/// Adopts an offered connection, or keeps the offer while another link has it: an agent that has closed that link offers its
/// connections by the others, and may be heard there first.
pub(super) fn adopt(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, offer: OrphanOffer) {
    let Some(hop) = offer.link.hop() else { return };
    let OrphanOffer { ref link, orphan, flow, request, .. } = offer;
    let system = &handoffs.system;
    if !handoffs.has_say_on(link) {
        // It offers the connection to the front-end that has, or once more to this one.
        return;
    }
    let mut table = handoffs.table.borrow_mut();
    let conn = table.next_conn();
    let mut registry = system.registry();
    if registry.is_owned(&flow) {
        // By that link, or by a later connection of the same client: neither may be harmed.
        if Instant::now() < offer.until {
            handoffs.kept_offers.borrow_mut().push(OrphanOffer { is_kept: true, ..offer });
        }
        return;
    }
    link.push(&ToAgent::Adopted { orphan, conn });
    let leads_there =
        |entry: FlowEntry| entry.next_hop.ifindex != 0 && entry.next_hop.mac == hop.mac && !entry.over;
    let is_ours = match system.entry(&flow) {
        Some(entry) => leads_there(entry) || offer.is_foreign && !offer.is_kept,
        // It may be back here meanwhile, if it has waited.
        None => offer.is_foreign && !offer.is_kept,
    };
    if !is_ours {
        // Its client was reset, or connected again: an agent that still has it must drop it.
        link.push(&ToAgent::Cancel { conn });
        return;
    }
    // From now on the flow is marked as one of this process.
    system.lead(&flow, &hop, link.id);
    if !registry.leaving.remove(&flow) {
        system.add_flow();
    }
    // Before another worker looks: it may have an offer of the same connection.
    registry.own(flow, Owner { worker: worker.index, conn });
    drop(registry);
    worker.count_accepted();
    handoffs.system.counts.adopted.add(1);
    let accepted = Rc::new(worker.accepted(flow.client, Some(flow.vip), &worker.stopping));
    let mut entry = HandoffEntry::new(conn, flow, Rc::clone(link), accepted, u64::from(request) + 1);
    entry.know_all(&handoffs.system);
    table.insert(entry);
}

/// Looks again at the offers that were kept.
pub(super) fn look_again(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>) {
    for offer in handoffs.kept_offers.take() {
        adopt(worker, handoffs, offer);
    }
}
