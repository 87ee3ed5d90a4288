//! An original that is parked between two requests: if another clone is to answer, that needs no socket here, as all that its state
//! takes is known from the client's packets.

use std::rc::Rc;
use std::time::Instant;

use super::super::client::ClientConnection;
use super::super::head::Outline;
use super::cloning::{CarriedOver, CloneTask, Cloning, Parked};
use super::peer_link::PeerLink;
use super::under_way::UnderWay;

impl<'a> Parked<'a> {
    /// What was read of `cloning` begins with this request; it is where clones have brought the connection.
    pub(super) fn new(cloning: Cloning<'a>, outline: Outline) -> Self {
        Self { cloning, outline }
    }

    /// Bytes read and not yet used.
    pub(super) fn input(&self) -> &[u8] {
        &self.cloning.input
    }

    /// Has the original go on, in `slot`. False if the connection was lost by that.
    pub(super) fn wake(self, slot: &mut Option<ClientConnection>) -> bool {
        self.cloning.wake(slot)
    }

    /// Has another clone answer, at the link's node.
    pub(super) async fn answer_by_clone(
        mut self,
        link: &Rc<PeerLink>,
        slot: &mut Option<ClientConnection>,
        task: CloneTask<'_>,
        under_way: &mut UnderWay<'_>,
    ) -> CarriedOver<'a> {
        self.cloning.began_at = Instant::now();
        self.cloning.carry(link, slot, task, under_way).await
    }
}
