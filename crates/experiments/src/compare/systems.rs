//! The balancers that are compared, each with its ways of choosing.

/// A program that balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerProgram {
    /// HAProxy.
    HaProxy,
    /// nginx.
    Nginx,
}

impl PeerProgram {
    /// The name of its binary, and of its package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HaProxy => "haproxy",
            Self::Nginx => "nginx",
        }
    }

    /// All of them.
    pub const ALL: [Self; 2] = [Self::HaProxy, Self::Nginx];
}

/// What chooses the back-end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedChooser {
    /// A policy of this project, by its name.
    Policy(&'static str),
    /// Lines of a peer's configuration.
    Peer(PeerProgram, &'static str),
}

/// A way of choosing that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedSystem {
    /// Its name in tables.
    pub name: &'static str,
    /// What chooses.
    pub chooser: ComparedChooser,
    /// The policy by which the simulator stands for it.
    pub simulated_as: &'static str,
}

const fn policy(name: &'static str) -> ComparedSystem {
    ComparedSystem { name, chooser: ComparedChooser::Policy(name), simulated_as: name }
}

const fn peer(
    name: &'static str,
    program: PeerProgram,
    lines: &'static str,
    simulated_as: &'static str,
) -> ComparedSystem {
    ComparedSystem { name, chooser: ComparedChooser::Peer(program, lines), simulated_as }
}

/// All of them.
pub const SYSTEMS: &[ComparedSystem] = &[
    policy("lard_auto"),
    policy("lard_r"),
    policy("bounded_load_hash"),
    peer("haproxy uri", PeerProgram::HaProxy, "balance uri whole\n  hash-type consistent", "uri_hash"),
    peer(
        "haproxy uri, factor 125",
        PeerProgram::HaProxy,
        "balance uri whole\n  hash-type consistent\n  hash-balance-factor 125",
        "bounded_load_hash",
    ),
    peer("haproxy leastconn", PeerProgram::HaProxy, "balance leastconn", "least_connections"),
    peer("haproxy random(2)", PeerProgram::HaProxy, "balance random(2)", "power_of_two"),
    peer("nginx hash", PeerProgram::Nginx, "hash $request_uri consistent;", "uri_hash"),
    peer("nginx least_conn", PeerProgram::Nginx, "least_conn;", "least_connections"),
];

/// Those of this project, and those of these peers.
#[must_use]
pub fn systems(peers: &[PeerProgram]) -> Vec<ComparedSystem> {
    let takes_part = |system: &&ComparedSystem| match system.chooser {
        ComparedChooser::Policy(_) => true,
        ComparedChooser::Peer(program, _) => peers.contains(&program),
    };
    SYSTEMS.iter().filter(takes_part).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_has_a_policy_that_stands_for_it() {
        for system in SYSTEMS {
            assert_eq!(plimsoll_policy::find(system.simulated_as).unwrap().name, system.simulated_as);
        }
        assert_eq!(systems(&[]).len(), 3);
        assert_eq!(systems(&[PeerProgram::Nginx]).len(), 5);
        assert_eq!(systems(&PeerProgram::ALL).len(), SYSTEMS.len());
    }
}
