//! One front-end takes the connections of another one over: see [`super::active`]. All of this is called with
//! [`AgentShared::succession`] held.

use plimsoll_wire::message::FromAgent;

use super::connection::Connection;
use super::link::FrontEndLink;
use super::lost::detach;
use super::shared::AgentShared;

/// A link begins: its front-end hears which process is active, unless it is itself. To the active one this message says that all
/// connections have been offered on the link, which they have not been yet.
pub(super) fn begins(shared: &AgentShared, link: &FrontEndLink<Connection>) {
    if shared.active.replace(link) {
        tell_all(shared, link);
    } else if !shared.active.is_active(link) {
        tell(shared, link);
    }
}

/// A link is over. Without any link, the active process counts as gone.
pub(super) fn ends(shared: &AgentShared, link: &FrontEndLink<Connection>) {
    let is_last = !shared.links().iter().any(|other| other.is_of_same_process(link));
    if is_last && shared.active.deactivate(link, true) {
        tell_all(shared, link);
    }
}

/// The process at the other end of the link says that it is active. If it is, all connections of its name are to be offered to
/// it; other processes have no say in them any more, even if their links are still open.
pub(super) fn activate(shared: &AgentShared, link: &FrontEndLink<Connection>, term: u64) {
    if link.begins_term(term) {
        // What it had on this link in an earlier term, it has let go of; and what was offered to it, it has not adopted.
        detach(shared, link, link.surrender());
        shared.connections_of_name(&link.peer.name).iter().for_each(|c| c.withdraw(link.number));
        shared.link_lost();
    }
    if !shared.active.activate(link, term) {
        return;
    }
    tracing::info!(front_end = link.peer.name, source = %link.source, term, "this front-end is the active one now");
    let links = shared.links();
    // Those of the same process, too: what they have is of an earlier term, which they will hear of later.
    for other in links.iter().filter(|o| link.is_of_same_name(o) && o.number != link.number) {
        detach(shared, other, other.surrender());
        if !link.is_of_same_process(other) {
            tell(shared, other);
        }
    }
    let connections = shared.connections_of_name(&link.peer.name);
    connections.iter().for_each(|connection| connection.withdraw_from_all());
    shared.link_lost();
}

/// Takes the connections of a link away, if another process has become the active one, or this one has begun a new term, while
/// they were entered there. The only function here that takes the lock itself.
pub(super) fn surrender_if_superseded(shared: &AgentShared, link: &FrontEndLink<Connection>) {
    let _turn = shared.succession();
    if !shared.active.has_say(link) {
        detach(shared, link, link.surrender());
        shared.link_lost();
    }
}

/// It says that it is not, or no longer.
pub(super) fn deactivate(shared: &AgentShared, link: &FrontEndLink<Connection>) {
    detach(shared, link, link.surrender());
    shared.link_lost();
    if shared.active.deactivate(link, false) {
        tracing::info!(front_end = link.peer.name, source = %link.source, "this front-end is active no longer");
        tell_all(shared, link);
    }
}

/// Says which process is active, if ever one was.
pub(super) fn tell(shared: &AgentShared, link: &FrontEndLink<Connection>) {
    if let Some(now) = shared.active.of(&link.peer.name) {
        link.push(&FromAgent::Active { term: now.term, instance: now.instance });
    }
}

fn tell_all(shared: &AgentShared, link: &FrontEndLink<Connection>) {
    shared.links().iter().filter(|other| link.is_of_same_name(other)).for_each(|other| tell(shared, other));
}
