//! Counters of the switch, summed over CPUs.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::u64_at;

/// Declares a struct of counters in the order of the C struct.
macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: u64,)*
        }

        impl std::ops::Add for $name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field.wrapping_add(other.$field)),* }
            }
        }

        impl $name {
            pub(crate) fn read(map: &MapHandle, index: u32) -> Result<Self, DatapathError> {
                const COUNT: usize = [$(stringify!($field)),*].len();
                let [$($field),*] = read::<COUNT>(map, index)?;
                Ok(Self { $($field),* })
            }
        }
    };
}

counters! {
    /// The switch's counters since its maps were created.
    SwitchCounters {
        /// Packets sent on to a back-end; merged ones count once.
        forwarded_packets,
        /// Their bytes.
        forwarded_bytes,
        /// Connections whose first packet took a choice.
        chosen,
        /// First packets that the hash placed, for want of a choice. A repeated one counts again.
        hashed,
        /// Connections that nobody knew, which the hash placed by a later packet.
        stray,
        /// Packets to a service that went up to this machine's kernel, which resets the client: there was no back-end for them.
        no_backend,
        /// ICMP errors about packets of back-ends, sent on to these.
        errors,
        /// IP fragments of which the first one of their packet was seen.
        fragments,
        /// Fragments of which it was not, or which are not of a service.
        fragments_lost,
        /// Packets with IPv6 extension headers that the program does not understand. They are never forwarded.
        options,
        /// Packets whose lengths contradict one another. They are never forwarded.
        malformed,
        /// Events for which the ring had no room.
        events_lost,
        /// Samples that were taken.
        samples,
        /// Samples for which the ring had no room.
        samples_lost,
        /// Packets that did not fit into a tunnel, and whose senders were told so.
        too_big,
    }
}

counters! {
    /// What the switch has counted of one back-end.
    BackendCounters {
        /// Packets of clients; merged ones count once.
        packets,
        /// Bytes of their frames.
        bytes,
        /// First packets of TCP connections, repeated ones too.
        connections,
        /// Connections that were established and had taken a choice.
        established,
        /// Packets of clients with data that had been seen before.
        retransmitted,
        /// Connections that were lost with it, once their client sent something.
        resets,
    }
}

fn read<const N: usize>(map: &MapHandle, index: u32) -> Result<[u64; N], DatapathError> {
    let per_cpu = map
        .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| DatapathError::of_bpf("cannot read the counters", BPF_CAPABILITIES, &error))?;
    let mut sums = [0_u64; N];
    for counts in per_cpu.unwrap_or_default() {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(u64_at(&counts, 8 * at));
        }
    }
    Ok(sums)
}
