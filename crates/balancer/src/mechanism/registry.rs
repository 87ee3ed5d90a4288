//! The list of mechanisms.

use std::fmt::Error;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_config::{Config, ListenerConfig};
use plimsoll_datapath::privileges::RunUser;

use super::carry::{Carried, ClientRequest, FlowState, Mechanism};
use super::direct::{Direct, DirectSystem};
use super::handoff::Handoffs;
use super::proxy::Proxy;
use crate::accepted::Accepted;
use crate::backend::Backend;
use crate::net::halves::ClientIo;
use crate::worker::Worker;
use plimsoll_observe::exposition::Out;

/// Makes one mechanism of several: each request is carried by the first one that does not decline.
macro_rules! mechanisms {
    ($($variant:ident $field:ident: $mechanism:ty = $name:literal;)*) => {
        /// Names of all mechanisms, as in the configuration.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        /// All mechanisms, as far as they are in use.
        pub(crate) struct Mechanisms {
            $($field: Option<Rc<$mechanism>>,)*
        }

        /// What the workers share of them.
        #[derive(Default)]
        pub(crate) struct MechanismSystems {
            $($field: Option<Arc<<$mechanism as Mechanism>::System>>,)*
        }

        /// What goes with a connection that leaves by one of them.
        pub(crate) enum Parcel {
            $($variant(<$mechanism as Mechanism>::Parcel),)*
        }

        impl Mechanism for Mechanisms {
            type System = MechanismSystems;
            type Parcel = Parcel;

            fn start(
                config: &Config,
                user: Option<&RunUser>,
            ) -> Result<Option<Arc<MechanismSystems>>, String> {
                Ok(Some(Arc::new(MechanismSystems { $($field: <$mechanism>::start(config, user)?,)* })))
            }

            fn new(systems: &Arc<MechanismSystems>, worker: &Rc<Worker>) -> Rc<Self> {
                Rc::new(Self {
                    $($field: systems.$field.as_ref().map(|system| <$mechanism>::new(system, worker)),)*
                })
            }

            async fn carry<C: ClientIo>(&self, request: &mut ClientRequest<'_, C>) -> Carried<Parcel> {
                $(
                    if let Some(mechanism) = &self.$field {
                        match mechanism.carry(request).await {
                            Carried::Declined => {}
                            carried => return carried.map(Parcel::$variant),
                        }
                    }
                )*
                Carried::Declined
            }

            fn take<C: ClientIo>(
                self: &Rc<Self>,
                worker: &Rc<Worker>,
                stream: C,
                accepted: &Rc<Accepted>,
                parcel: Parcel,
            ) {
                match parcel {
                    $(Parcel::$variant(parcel) => {
                        if let Some(mechanism) = &self.$field {
                            mechanism.take(worker, stream, accepted, parcel);
                        }
                    })*
                }
            }

            fn moves_connections(&self) -> bool {
                [$(self.$field.as_ref().is_some_and(|m| m.moves_connections())),*].contains(&true)
            }

            fn client_ended(&self, accepted: &Accepted) {
                $(if let Some(mechanism) = &self.$field { mechanism.client_ended(accepted) })*
            }

            fn housekeeping(self: &Rc<Self>, worker: &Rc<Worker>) {
                $(if let Some(mechanism) = &self.$field { mechanism.housekeeping(worker) })*
            }

            fn is_busy(&self) -> bool {
                [$(self.$field.as_ref().is_some_and(|m| m.is_busy())),*].contains(&true)
            }

            fn close_idle(&self) {
                $(if let Some(mechanism) = &self.$field { mechanism.close_idle() })*
            }

            fn listen(systems: &MechanismSystems, listeners: &[ListenerConfig]) {
                $(if let Some(system) = &systems.$field { <$mechanism>::listen(system, listeners) })*
            }

            fn sweep(systems: &MechanismSystems, backends: &[Arc<Backend>]) {
                $(if let Some(system) = &systems.$field { <$mechanism>::sweep(system, backends) })*
            }

            fn clear(systems: &MechanismSystems) {
                $(if let Some(system) = &systems.$field { <$mechanism>::clear(system) })*
            }

            fn flows(systems: &MechanismSystems, visit: &mut dyn FnMut(FlowState)) -> Result<(), String> {
                $(if let Some(system) = &systems.$field { <$mechanism>::flows(system, visit)? })*
                Ok(())
            }

            fn encode(systems: &MechanismSystems, out: &mut Out<'_>) -> Result<(), Error> {
                $(if let Some(system) = &systems.$field { <$mechanism>::encode(system, out)? })*
                Ok(())
            }
        }
    };
}

// One line for each, those first that decline what they are not for.
mechanisms! {
    Direct direct: Direct = "direct";
    Handoff handoff: Handoffs = "handoff";
    Proxy proxy: Proxy = "proxy";
}

impl MechanismSystems {
    /// That of the mechanism `direct`, where it is in use.
    pub(crate) fn direct(&self) -> Option<&Arc<DirectSystem>> {
        self.direct.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_knows_these_mechanisms() {
        let mut known = plimsoll_config::MechanismKind::WORDS.to_vec();
        // Not one more, but a choice among them.
        known.retain(|&word| word != "auto");
        known.sort_unstable();
        assert_eq!(known, NAMES);
    }
}
