//! The mechanism `direct`: connections are distributed at layer 4, by a packet program, and back-ends answer clients directly.
//!
//! No worker ever sees a request of it. `system` opens the packet program; `threads` runs the loop of `plimsoll-switch`, with
//! `dispatching` as who decides, and tells it of back-ends (`members`). `sniffing` reads what passes, for policies that want it,
//! and for who records it (`recording`). `leftover` is for other mechanisms that come after this one.

mod dispatching;
mod leftover;
mod members;
mod metrics;
mod recording;
mod sniffing;
mod system;
mod threads;

use std::convert::Infallible;
use std::fmt::Error;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_config::{Config, ListenerConfig};
use plimsoll_datapath::privileges::RunUser;

pub(crate) use leftover::LeftServices;
pub(crate) use system::DirectSystem;
pub(crate) use threads::DirectThreads;

use super::carry::{Carried, ClientRequest, FlowState, Mechanism};
use crate::accepted::Accepted;
use crate::net::halves::ClientIo;
use crate::worker::Worker;
use plimsoll_observe::exposition::Out;

/// A worker's part, which is nothing.
pub(crate) struct Direct;

impl Mechanism for Direct {
    type System = DirectSystem;
    type Parcel = Infallible;

    fn start(config: &Config, user: Option<&RunUser>) -> Result<Option<Arc<DirectSystem>>, String> {
        DirectSystem::start(config, user)
    }

    fn new(_: &Arc<DirectSystem>, _: &Rc<Worker>) -> Rc<Self> {
        Rc::new(Self)
    }

    async fn carry<C: ClientIo>(&self, _: &mut ClientRequest<'_, C>) -> Carried<Infallible> {
        Carried::Declined
    }

    fn take<C: ClientIo>(self: &Rc<Self>, _: &Rc<Worker>, _: C, _: &Rc<Accepted>, parcel: Infallible) {
        match parcel {}
    }

    fn listen(system: &DirectSystem, listeners: &[ListenerConfig]) {
        system.serve(listeners);
    }

    fn clear(system: &DirectSystem) {
        system.clear();
    }

    fn flows(system: &DirectSystem, visit: &mut dyn FnMut(FlowState)) -> Result<(), String> {
        system.visit_flows(visit)
    }

    fn encode(system: &DirectSystem, out: &mut Out<'_>) -> Result<(), Error> {
        metrics::encode(system, out)
    }
}
