//! Why a wait ends before what is waited for.

/// Why a wait ended before what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fired {
    /// The time is over.
    TimedOut,
    /// The back-end that was watched is down.
    BackendDown,
    /// It is in doubt, and takes no requests.
    InDoubt,
    /// The front-end stops and does not wait any longer.
    Stopped,
    /// Another client needs the connection's place.
    MadeRoom,
}
