//! What a front-end of this mechanism has left in the kernel, where another mechanism is to listen at its addresses.
//!
//! With `on_stop = "forward"` the packet program goes on when its process ends, so that nothing is lost while the process is
//! started again. Where it is not, and a front-end with another mechanism comes in its place, every client's packet would go past that one.

use plimsoll_config::{ListenerConfig, ListenerProtocol, MechanismKind};
use plimsoll_datapath::switch::{TakenService, Transport, taken_services};

/// Has new connections to these listeners reach this machine's sockets. Those that a switch has placed go on.
///
/// # Errors
/// The switch that takes them is alive, in words.
pub(crate) fn take_back(listeners: &[ListenerConfig], mechanism: MechanismKind) -> Result<(), String> {
    if mechanism == MechanismKind::Direct {
        return Ok(());
    }
    let taken = match taken_services() {
        Ok(taken) => taken,
        Err(error) => {
            tracing::warn!(
                %error,
                "a front-end with mechanism = \"direct\" may have left a program that takes this one's packets"
            );
            return Ok(());
        }
    };
    let sockets = listeners.iter().filter(|listener| listener.protocol == ListenerProtocol::Tcp);
    for listener in sockets {
        for service in taken.iter().filter(|service| service.is_for(listener.address, Transport::Tcp)) {
            take_back_one(service)?;
        }
    }
    Ok(())
}

fn take_back_one(service: &TakenService) -> Result<(), String> {
    let TakenService { address, interface, .. } = service;
    let switch = service.instance.as_deref().unwrap_or("?");
    if service.is_alive {
        return Err(format!(
            "the switch `{switch}` takes all packets to {address} at {interface}: stop that front-end with `mechanism = \"direct\"`, or \
             listen elsewhere"
        ));
    }
    match service.withdraw() {
        Ok(()) => tracing::warn!(
            %address,
            interface,
            switch,
            "a switch that has ended left its packet program, which took new connections; they come here now, and those that it had \
             placed go on"
        ),
        Err(error) => tracing::error!(
            %error,
            %address,
            interface,
            "clients cannot connect: a switch that has ended left its packet program, which takes their packets"
        ),
    }
    Ok(())
}
