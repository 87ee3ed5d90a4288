//! When a request's connection is handed off instead of being proxied.

use std::rc::Rc;

use super::client::Client;
use super::outcome::Tried;
use crate::dispatch::Assignment;
use crate::handoff::{Active, Handing, Link};
use crate::http::Framing;
use crate::http::request::RequestHead;
use crate::observe::Times;
use crate::worker::Scratch;

impl Client<'_> {
    /// Keeps a request's head as it came, where the connection may be handed off with it.
    pub(super) fn keep_raw(&mut self, head: &[u8]) {
        self.raw.clear();
        if self.worker.handoffs.is_some() && !std::mem::take(&mut self.start.stays) {
            self.raw.extend_from_slice(head);
        }
    }

    /// The agent that gets the connection with this request; `None` when it is proxied: because it has a body, or
    /// something that a back-end should not see as it came, because a
    /// small answer ends the connection and costs less that way, or because there is no agent, or none with room.
    pub(super) fn link_for(
        &self,
        head: &RequestHead,
        framing: Framing,
        keep: bool,
        assignment: &Assignment,
    ) -> Option<Rc<Link>> {
        let handoffs = self.worker.handoffs.as_ref()?;
        let config = self.config.handoff.as_ref()?;
        let simple = framing == Framing::None && head.is_plain && (head.is_get || head.is_head);
        let worth = keep || assignment.expected_bytes().unwrap_or(0) >= config.min_bytes;
        if !simple || !worth || self.raw.is_empty() { None } else { handoffs.link(assignment.backend()) }
    }

    /// What goes with the connection.
    pub(super) fn handing(
        &mut self,
        head: &RequestHead,
        scratch: &mut Scratch,
        assignment: Assignment,
        link: Rc<Link>,
        times: Times,
        tried: &Tried,
    ) -> Box<Handing> {
        let mut bytes = std::mem::take(&mut self.raw);
        bytes.extend_from_slice(scratch.input.data());
        let request = Active {
            head: *head,
            head_bytes: std::mem::take(&mut scratch.head),
            assignment,
            times,
            attempts: tried.attempts,
            waited: tried.waited,
        };
        Box::new(Handing { bytes, request, link, requests: self.start.requests })
    }
}
