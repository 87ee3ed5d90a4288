//! How connections are distributed at layer 4.

use std::path::PathBuf;
use std::time::Duration;

use super::handoff::{Interfaces, MachineName};
use crate::declare::{keys, words};
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{self, Choice, Integer, Size, Text, Texts};
use crate::path::{FileOr, NoFile};

keys! {
    /// How connections are distributed at layer 4; used, and needed, with `mechanism = "direct"`.
    ["direct"] pub struct DirectConfig {
        /// What is pinned of the packet program has this name; by it a later process finds the connections.
        "name" name: String = Is("switch"), Text("1 to 64 letters, digits, `-` and `_`") => MachineName, restart;
        /// Where packets of clients arrive; at least one, at most 16. They leave by the interface that leads to their back-end.
        "interfaces" interfaces: Vec<String> =
            Required, Texts("the name of a network interface, e.g. \"eth0\"") => Interfaces, restart;
        /// Where packets meet the program: `xdp`, in the driver; `tc`, behind it; `auto`, by XDP where hardware stands behind the
        /// interface and its driver can do it, or else by tc.
        "attach" attach: DirectAttach = Is("auto"), Choice(DirectAttach::WORDS), restart;
        /// How packets get to back-ends: `ethernet`, as they are, to back-ends on the same Ethernet segment; `ipip` and `gue`, in a
        /// tunnel to back-ends behind routers, on which `plimsoll tunnel-end` takes them out.
        "via" via: DirectVia = Is("ethernet"), Choice(DirectVia::WORDS), restart;
        /// Choices that are made ahead for each CPU on which connections begin. Each counts as load until a connection takes it.
        "choices" choices: usize = Is("8"), Integer { min: 1, max: 64 };
        /// Connections that are remembered; beyond, those whose clients have been silent longest go by the hash. Each takes some 400 bytes of kernel memory, from the start.
        "connections" connections: u32 = Is("200000"), Integer { min: 1024, max: 50_000_000 }, restart;
        /// Connections that are remembered of which only first packets have come. While more than half as many are there, new
        /// ones go by the hash.
        "opening" opening: u32 = Is("65536"), Integer { min: 1024, max: 10_000_000 }, restart;
        /// After how long without a packet of its client a connection is forgotten.
        "idle_timeout" idle_timeout: Duration = Is("15m"), KeyKind::Duration;
        /// After how long without a datagram between two ports they are forgotten; the next one may go to another back-end.
        "datagram_timeout" datagram_timeout: Duration = Is("60s"), KeyKind::Duration;
        /// What becomes of the connections of a back-end that is down: `reset`, their clients are reset; `wait`, their packets are
        /// sent to it nevertheless.
        "on_failure" on_failure: OnFailure = Is("reset"), Choice(OnFailure::WORDS);
        /// Bytes of each packet of a client with data that are read in passing, where the policy wants to know what is asked for
        /// (`csld`). A request whose line and fields are longer is taken for what its beginning says.
        "sample_size" sample_bytes: u32 = Is("512"), Size { min: 64, max: 2048 };
        /// The documents of the site, for such a policy: a list with a line `SIZE MODIFIED PATH` for each, as
        /// `find DIR -type f -printf '%s %T@ /%P\n'` writes it. A change is noticed within 2 s. `none`: sizes are not known.
        "file_list" file_list: Option<PathBuf> = Is("none"), Text("the path of a file, or \"none\"") => FileOr<NoFile>;
        /// What stays when this process stops: `forward`, the packet program, which goes on to forward packets, and new connections
        /// go by the hash; `detach`, nothing.
        "on_stop" on_stop: OnStop = Is("forward"), Choice(OnStop::WORDS), restart;
    }
}

words! {
    /// Where packets meet the packet program.
    pub enum DirectAttach {
        Auto = "auto" / "By XDP where hardware stands behind the interface, or else by tc.",
        Tc = "tc" / "At the ingress of tc.",
        Xdp = "xdp" / "By XDP in the driver.",
    }
}

words! {
    /// How packets get from a switch to back-ends.
    pub enum DirectVia {
        Ethernet = "ethernet" / "By their MAC address, on the same Ethernet segment.",
        Ipip = "ipip" / "In a tunnel: IP in IP.",
        Gue = "gue" / "In a tunnel: IP in UDP (GUE, variant 1), to port 6080.",
    }
}

words! {
    /// What stays of a switch when its process stops.
    pub enum OnStop {
        Forward = "forward" / "The packet program, which goes on to forward packets.",
        Detach = "detach" / "Nothing.",
    }
}

words! {
    /// What becomes of the connections of a back-end that is down.
    pub enum OnFailure {
        Reset = "reset" / "Their clients are reset.",
        Wait = "wait" / "Their packets are sent to it nevertheless.",
    }
}
