//! Says once in the log which agents do not answer, and when they answer again.

use plimsoll_policy::BackendId;

use crate::shared::FrontEndShared;

/// The agent of this back-end does not answer, which is told once.
pub(super) fn agent_is_silent(shared: &FrontEndShared, backend: BackendId) {
    let backends = shared.backends.load();
    let Some(backend) = backends.get(backend.index()).filter(|backend| !backend.is_retired()) else { return };
    let Some(address) = backend.load_address() else { return };
    let information = &shared.load_information;
    if information.silence.falls_silent(backend.id.index(), address, information.now_ns()) {
        tracing::warn!(
            "the agent of back-end {} does not answer at {address}: is it running, with the same key? \
             Its load counts as the mean of the others' until it answers",
            backend.name
        );
    }
}

/// The agent of this back-end answers, which is told if its silence was.
pub(super) fn agent_answers(shared: &FrontEndShared, backend: BackendId) {
    if !shared.load_information.silence.answers(backend.index()) {
        return;
    }
    if let Some(backend) = shared.backends.load().get(backend.index()) {
        tracing::info!("the agent of back-end {} answers again", backend.name);
    }
}
