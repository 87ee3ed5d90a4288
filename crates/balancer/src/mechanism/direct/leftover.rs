//! What a front-end of this mechanism has left in the kernel, where another mechanism is to listen at its addresses.
//!
//! With `on_stop = "forward"` the packet program goes on when its process ends, so that nothing is lost while the process is
//! started again. Where it is not, and a front-end with another mechanism comes in its place, every client's packet would go past that one.

use plimsoll_config::{ListenerConfig, ListenerProtocol, MechanismKind};
use plimsoll_datapath::switch::{SwitchProcess, TakenService, Transport, taken_services};

/// Services of a switch that has ended, for which a front-end is to listen.
pub(crate) struct LeftServices(Vec<TakenService>);

impl LeftServices {
    /// Those at these listeners. None for a front-end that is a switch itself.
    ///
    /// # Errors
    /// A switch that has not ended, as far as can be told, takes them: in words.
    pub(crate) fn find(listeners: &[ListenerConfig], mechanism: MechanismKind) -> Result<Self, String> {
        if mechanism == MechanismKind::Direct {
            return Ok(Self(Vec::new()));
        }
        let mut taken = match taken_services() {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "if a front-end with mechanism = \"direct\" has left it, clients may not reach this one; start as root to have \
                     that looked at"
                );
                return Ok(Self(Vec::new()));
            }
        };
        let sockets = || listeners.iter().filter(|listener| listener.protocol == ListenerProtocol::Tcp);
        taken.retain(|service| sockets().any(|listener| service.is_for(listener.address, Transport::Tcp)));
        taken.iter().try_for_each(check_ended)?;
        Ok(Self(taken))
    }

    /// Has new connections reach this machine's sockets. Those that the switch has placed go on.
    pub(crate) fn withdraw(self) {
        for service in self.0 {
            let TakenService { address, interfaces, process, .. } = &service;
            match service.withdraw() {
                Ok(()) => tracing::warn!(
                    %address,
                    ?interfaces,
                    switch = ?process,
                    "a switch that has ended left its packet program, which took new connections; they come here now, and those that \
                     it had placed go on"
                ),
                Err(error) => tracing::error!(
                    %error,
                    %address,
                    ?interfaces,
                    "clients cannot connect: a switch that has ended left its packet program, which takes their packets"
                ),
            }
        }
    }
}

fn check_ended(service: &TakenService) -> Result<(), String> {
    let (address, at) = (service.address, service.interfaces.join(", "));
    match &service.process {
        SwitchProcess::Ended(_) => Ok(()),
        SwitchProcess::Runs(name) => Err(format!(
            "the switch `{name}` takes all packets to {address} at {at}: stop that front-end with `mechanism = \"direct\"`, or listen \
             elsewhere"
        )),
        SwitchProcess::Unseen => Err(format!(
            "a switch whose process cannot be seen from here takes all packets to {address} at {at}: stop that front-end with \
             `mechanism = \"direct\"`, or remove what it has left (`tc filter del dev {at} ingress pref 80`, or `ip link set dev {at} xdp \
             off`)"
        )),
    }
}
