//! The trait of mechanisms, and its arguments.

use std::fmt::Error;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::{Config, ListenerConfig, ListenerProtocol};
use plimsoll_datapath::Flow;
use plimsoll_datapath::privileges::RunUser;

use crate::accepted::Accepted;
use crate::account::Account;
use crate::backend::Backend;
use crate::ejection::TrialEnd;
use crate::http::request::RequestHead;
use crate::http::response::{BadResponse, ResponseHead};
use crate::http::{Framing, RequestRefusal};
use crate::net::deadline::Deadline;
use crate::net::halves::ClientIo;
use crate::net::is_local;
use crate::passed_content::PassedContent;
use crate::worker::{Scratch, Worker};
use plimsoll_observe::exposition::Out;

/// A client's connection that a back-end has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowState {
    /// Both ends.
    pub(crate) flow: Flow,
    pub(crate) protocol: ListenerProtocol,
    /// The index of the back-end, if this process knows it.
    pub(crate) backend: Option<usize>,
    /// Since it was handed off first.
    pub(crate) age: Duration,
    /// Since the client sent something.
    pub(crate) idle: Duration,
    /// Bytes of answers that the client has acknowledged.
    pub(crate) acknowledged_bytes: u64,
    /// What the client has sent, in whole frames.
    pub(crate) forwarded_packets: u64,
    pub(crate) forwarded_bytes: u64,
    pub(crate) phase: FlowPhase,
}

/// The phase of a connection that a back-end has, as the front-end knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlowPhase {
    /// The back-end has it.
    Held,
    /// It comes back to this front-end.
    Returning,
    /// The back-end has it, and the client has ended its side.
    HalfClosed,
    /// It is over, and the client's last packets are still forwarded.
    Over,
    /// Only first packets of it have come.
    Opening,
    /// A process of this front-end before this one handed it off, and no agent has claimed it yet.
    LeftOver,
}

/// How a chosen back-end gets a request. One object for each worker; what they share is its `System`.
pub(crate) trait Mechanism: Sized + 'static {
    /// The state that all workers share.
    type System: Send + Sync + 'static;
    /// The state that accompanies a connection that leaves this front-end.
    type Parcel;

    /// Prepares the system, for a process that is to become `user`, if there is one; `None` where the configuration asks for another mechanism, or allows to do without this one
    /// where the system does not.
    ///
    /// # Errors
    /// Why the system does not allow it, in words.
    fn start(config: &Config, user: Option<&RunUser>) -> Result<Option<Arc<Self::System>>, String>;

    /// The mechanism of one worker.
    fn new(system: &Arc<Self::System>, worker: &Rc<Worker>) -> Rc<Self>;

    /// Carries a request to its chosen back-end, and the response to the client.
    async fn carry<C: ClientIo>(&self, request: &mut ClientRequest<'_, C>) -> Carried<Self::Parcel>;

    /// Takes a connection that leaves, after [`Carried::Leaves`]: counts its end, or gives it back by [`Worker::resume`].
    fn take<C: ClientIo>(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        stream: C,
        accepted: &Rc<Accepted>,
        parcel: Self::Parcel,
    );

    /// Whether connections may leave with a request, as it came.
    fn moves_connections(&self) -> bool {
        false
    }

    /// A client's connection has ended, or leaves.
    fn client_ended(&self, _accepted: &Accepted) {}

    /// Handles time-outs. Called regularly.
    fn housekeeping(self: &Rc<Self>, _worker: &Rc<Worker>) {}

    /// Whether connections that have left are still under way, so that the worker cannot end.
    fn is_busy(&self) -> bool {
        false
    }

    /// Ends connections elsewhere on which there is no request.
    fn close_idle(&self) {}

    /// Notifies it of the front-end's listeners.
    fn listen(_system: &Self::System, _listeners: &[ListenerConfig]) {}

    /// Sees to what an earlier process left, with these back-ends. Called several times a second.
    fn sweep(_system: &Self::System, _backends: &[Arc<Backend>]) {}

    /// Cleans up when the front-end ends.
    fn clear(_system: &Self::System) {}

    /// Calls `visit` for each connection that back-ends have.
    ///
    /// # Errors
    /// Why they cannot be listed, in words.
    fn flows(_system: &Self::System, _visit: &mut dyn FnMut(FlowState)) -> Result<(), String> {
        Ok(())
    }

    /// Writes its part of `/metrics`.
    ///
    /// # Errors
    /// Those of the encoder.
    fn encode(_system: &Self::System, _out: &mut Out<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// A request of a client and all that is needed to carry it.
pub(crate) struct ClientRequest<'a, C> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) config: &'a Arc<Config>,
    pub(crate) accepted: &'a Accepted,
    /// Where the rest of the request comes from and the response goes.
    pub(crate) stream: &'a mut C,
    pub(crate) deadline: &'a Deadline,
    /// What has been read of the rest, and the rewritten head.
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) head: &'a RequestHead,
    /// The head as it came; empty where the connection does not leave.
    pub(crate) raw: &'a mut Vec<u8>,
    /// Framing of what of the body is not behind the rewritten head.
    pub(crate) framing: Framing,
    /// Whether the front-end wants to keep the client's connection.
    pub(crate) keep: bool,
    /// Requests on the connection so far, this one included.
    pub(crate) requests: u64,
    /// To be set while a response is under way: if the connection ends then, it is reset.
    pub(crate) answering: &'a mut bool,
    /// Its back-end is the one that has been chosen.
    pub(crate) account: Account,
    /// Whether the request may be sent a second time.
    pub(crate) repeatable: bool,
    /// Whether another back-end will be tried should this one fail.
    pub(crate) more: bool,
}

/// The result of carrying a request.
pub(crate) enum Carried<P> {
    /// Nothing happened: the mechanism does not apply.
    Declined,
    /// The client got the whole response.
    Answered(Answered),
    /// It did not.
    Failed(Failure),
    /// The connection has to leave with the request, whose account the parcel holds.
    Leaves(P),
}

impl<P> Carried<P> {
    /// The same with another parcel.
    pub(crate) fn map<Q>(self, wrap: impl FnOnce(P) -> Q) -> Carried<Q> {
        match self {
            Self::Declined => Carried::Declined,
            Self::Answered(answered) => Carried::Answered(answered),
            Self::Failed(failure) => Carried::Failed(failure),
            Self::Leaves(parcel) => Carried::Leaves(wrap(parcel)),
        }
    }
}

/// A response that the client has got to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) head: ResponseHead,
    pub(crate) content: PassedContent,
    /// Whether the client's connection stays usable.
    pub(crate) keep_client: bool,
    /// Whether the back-end's does.
    pub(crate) keep_backend: bool,
}

impl Failure {
    /// Whether the back-end had the request, or part of it, and is at fault.
    pub(crate) fn is_by_backend(&self) -> bool {
        matches!(
            self,
            Self::Stale
                | Self::Lost
                | Self::TimedOut
                | Self::BadResponse(_)
                | Self::Broken { by_backend: true, .. }
        )
    }

    /// What it says of a back-end that was on trial.
    pub(crate) fn trial_end(&self) -> TrialEnd {
        match self {
            Self::Unreachable(error) if is_local(error) => TrialEnd::Unknown,
            Self::Unreachable(error) if error.kind() == io::ErrorKind::TimedOut => TrialEnd::TimedOut,
            Self::TimedOut => TrialEnd::TimedOut,
            Self::ClientGone | Self::ClientLeft { .. } | Self::ClientTimeout { .. } => TrialEnd::ClientGone,
            Self::Unreachable(_) => TrialEnd::Failed,
            failure if failure.is_by_backend() => TrialEnd::Failed,
            _ => TrialEnd::Unknown,
        }
    }
}

impl From<BadResponse> for Failure {
    fn from(bad: BadResponse) -> Self {
        match bad {
            BadResponse::Wrong(why) => Self::BadResponse(why),
            BadResponse::OverLimit(why) => Self::OverLimit(why),
        }
    }
}

/// Why carrying a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection to the back-end: its limit is reached, and stayed so.
    NoPlace,
    /// No connection to the back-end: it could not be opened.
    Unreachable(io::Error),
    /// The back-end went down before anything was sent, and another one will be tried.
    NotSent,
    /// The back-end closed a connection that had been kept, before a response: it may have found it idle for too long in the
    /// same moment. Another connection to it may do.
    Stale,
    /// The back-end has said that it has not begun with the request (HTTP/2).
    NotProcessed,
    /// The back-end closed its connection before a response.
    Lost,
    /// It did so while the client was waited for, to send the rest of the request.
    LostPatience,
    /// The back-end was found to be down while it was waited for.
    BackendDown,
    /// The back-end took too long.
    TimedOut,
    /// The response cannot be passed on.
    BadResponse(&'static str),
    /// The response cannot be passed on because it is larger than this front-end allows.
    OverLimit(&'static str),
    /// The request cannot.
    BadRequest(RequestRefusal),
    /// The client is gone, and has got nothing of a response.
    ClientGone,
    /// The client is gone while it got the response.
    ClientLeft {
        /// What it got.
        content: PassedContent,
    },
    /// The client takes nothing of the response, or sends nothing of its body while the response is under way.
    ClientTimeout {
        /// What it got.
        content: PassedContent,
    },
    /// The front-end stops, and the client has got nothing of a response.
    Stopped,
    /// The front-end stops while the client gets the response.
    StoppedAnswering {
        /// Its status code.
        status: u16,
        /// What the client got of its content.
        content: PassedContent,
    },
    /// The client has got part of a response, and no more will come.
    Broken {
        /// Its status code.
        status: u16,
        /// What the client got of its content.
        content: PassedContent,
        /// Whether it is the back-end's fault: not while the client was waited for, to send the rest of the request.
        by_backend: bool,
    },
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_a_failure_says_of_a_back_end_on_trial() {
        let unreachable = |errno: Errno| Failure::Unreachable(errno.into()).trial_end();
        for here in [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOMEM] {
            assert_eq!(unreachable(here), TrialEnd::Unknown, "{here:?}");
        }
        for there in [Errno::CONNREFUSED, Errno::HOSTUNREACH] {
            assert_eq!(unreachable(there), TrialEnd::Failed, "{there:?}");
        }
        let late = Failure::Unreachable(io::ErrorKind::TimedOut.into());
        assert_eq!([late.trial_end(), Failure::TimedOut.trial_end()], [TrialEnd::TimedOut; 2]);
        assert_eq!(Failure::ClientGone.trial_end(), TrialEnd::ClientGone);
        for fault in [Failure::Lost, Failure::BadResponse("")] {
            assert_eq!((fault.trial_end(), fault.is_by_backend()), (TrialEnd::Failed, true), "{fault:?}");
        }
        let broken = Failure::Broken { status: 200, content: PassedContent::default(), by_backend: false };
        for other in [Failure::OverLimit(""), Failure::LostPatience, Failure::NoPlace, broken] {
            assert_eq!((other.trial_end(), other.is_by_backend()), (TrialEnd::Unknown, false), "{other:?}");
        }
    }
}
