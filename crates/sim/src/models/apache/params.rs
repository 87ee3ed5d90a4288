//! Parameters of the Apache model, and the costs that follow from them.

use plimsoll_policy::Nanos;

plimsoll_policy::params! {
    /// Parameters of the Apache model. Costs are those of Hyun et al., table 3; the rest are Apache 1.3's own defaults, or
    /// readings of what the paper leaves open.
    pub struct ApacheParams {
        /// CPU time to establish a connection: half of table 3's 132 µs, taken by the kernel when the SYN arrives.
        establish_us: f64 = 66.0, 0.0..=1e9, "µs";
        /// CPU time to tear a connection down: the other half.
        teardown_us: f64 = 66.0, 0.0..=1e9, "µs";
        /// CPU time of the basic steps of a request: parsing, authorizing, logging.
        basic_us: f64 = 213.0, 0.0..=1e9, "µs";
        /// CPU time of an answer without a document: 304, or an error of the client.
        no_document_us: f64 = 30.0, 0.0..=1e9, "µs";
        /// CPU time to transmit each started 512 bytes.
        transmit_per_512_bytes_us: f64 = 37.0, 0.0..=1e9, "µs";
        /// CPU time to fork a server process.
        fork_us: f64 = 1400.0, 0.0..=1e9, "µs";
        /// CPU time of a context switch. 0 where it is inside the other costs; table 3 has 35 µs.
        context_switch_us: f64 = 0.0, 0.0..=1e9, "µs";
        /// Disk latency before a document: seek and rotation.
        disk_latency_us: f64 = 15600.0, 0.0..=1e9, "µs";
        /// Disk time to transfer each started 4,096 bytes.
        disk_transfer_per_4096_bytes_us: f64 = 300.0, 0.0..=1e9, "µs";
        /// Mean CPU time of a dynamic request of class c, divided by c.
        dynamic_class_us: f64 = 10000.0, 0.0..=1e9, "µs";
        /// Standard deviation of that time over its mean; normally distributed, and never below 0.
        dynamic_deviation: f64 = 0.2, 0.0..=10.0, "";
        /// Share of all requests that become dynamic (`P_dreq`), beside those of the input.
        dynamic_share: f64 = 0.0, 0.0..=1.0, "";
        /// Classes of dynamic requests (`C_dreq`), a digit each, 0 for class 10; equally likely.
        dynamic_classes: u64 = 3, 0..=9999999999, "";
        /// 1 takes the class of dynamic requests of the input from the input.
        input_classes: u32 = 0, 0..=1, "";
        /// Size of a dynamic page.
        dynamic_bytes: u64 = 2048, 0..=1000000000000, "bytes";
        /// Server processes at the start (`StartServers`).
        start_servers: u32 = 5, 1..=10000, "processes";
        /// With fewer idle processes further ones are forked (`MinSpareServers`).
        min_spare_servers: u32 = 5, 0..=10000, "processes";
        /// With more idle processes one ends (`MaxSpareServers`).
        max_spare_servers: u32 = 10, 0..=10000, "processes";
        /// The most server processes (`MaxClients`).
        max_clients: u32 = 150, 1..=10000, "processes";
        /// The most processes forked at a time; 1, 2, 4 and so on before.
        most_forks: u32 = 32, 1..=10000, "processes";
        /// How often idle processes are counted.
        maintenance_s: Nanos = Nanos::from_secs(1), 0.001..=1000000.0, "s";
        /// Connections that may wait for a process (`ListenBacklog`).
        backlog: u32 = 511, 0..=1000000, "connections";
        /// 1 has an idle process hold a connection from the SYN, and connections queue in order of their SYNs; 0 from the
        /// establishment on.
        held_from_syn: u32 = 1, 0..=1, "";
        /// The time slice that a process's credit is raised by.
        slice_s: Nanos = Nanos::from_millis(100), 0.000001..=1000000.0, "s";
        /// How the CPU chooses: 0 by credits without preemption, 1 by credits with preemption at a wake-up, 2 first come first
        /// served, 3 processor sharing.
        scheduler: u32 = 0, 0..=3, "";
        /// Mean round-trip time between clients and back-ends.
        round_trip_s: Nanos = Nanos::from_millis(150), 0.0..=1000000.0, "s";
        /// Shape of their Pareto distribution; 1000 for equal ones.
        round_trip_shape: f64 = 1.6, 1.05..=1000.0, "";
        /// Longer ones are cut to this.
        most_round_trip_s: Nanos = Nanos::from_secs(60), 0.0..=1000000.0, "s";
        /// Size of a TCP segment.
        segment_bytes: u64 = 1460, 1..=1000000, "bytes";
        /// The congestion window at first; it doubles every round trip.
        initial_window: u32 = 2, 1..=999999, "segments";
        /// The largest window.
        most_window: u32 = 44, 1..=1000000, "segments", above initial_window "slow start";
        /// TCP send buffer: a process is free again when the rest of its response fits into it.
        send_buffer_bytes: u64 = 65_536, 1..=1000000000000, "bytes";
        /// Times that a client tries again after a refusal.
        retries: u32 = 2, 0..=2, "";
        /// When it tries again the first time; the second time after twice as long.
        retry_s: Nanos = Nanos::from_secs(3), 0.001..=1000000.0, "s";
        /// 1 counts a connection as load from its SYN, 0 from its establishment, one round trip later.
        counted_from_syn: u32 = 0, 0..=1, "";
        /// 1 counts it until the client's FIN, a round trip after the last segment, 0 until that segment.
        counted_until_fin: u32 = 0, 0..=1, "";
        /// Share of the clients that use HTTP/1.1.
        http11_share: f64 = 0.0, 0.0..=1.0, "";
        /// 1 has requests use HTTP/1.1 where the input says so.
        http11_of_input: u32 = 0, 0..=1, "";
        /// How long an HTTP/1.1 connection stays without a request (`KeepAliveTimeout`).
        keep_alive_s: Nanos = Nanos::from_secs(15), 0.0..=1000000.0, "s";
        /// The most requests on it (`MaxKeepAliveRequests`).
        keep_alive_requests: u32 = 100, 1..=1000000, "requests";
        /// What the front-end does: 0 chooses when a connection is opened, 1 reads its first request and hands it off, 2 hands it off for
        /// each request, 3 hands it off once, and its back-end fetches other answers from the back-ends chosen for them.
        front_end: u32 = 0, 0..=3, "";
        /// CPU time of a back-end to take a connection over from a front-end that reads requests, or to give it away.
        handoff_us: f64 = 66.0, 0.0..=1e9, "µs";
        /// CPU time of a back-end to take each started 512 bytes from another one.
        relay_per_512_bytes_us: f64 = 37.0, 0.0..=1e9, "µs";
        /// CPU time to measure a back-end once (table 2: 0, 5 or 10 ms).
        metrics_cpu_s: Nanos = Nanos::ZERO, 0.0..=1000000.0, "s";
        /// 1 has a measurement take that CPU time at once, before all processes; 0 has a daemon take it by its credit, which overload
        /// delays.
        metrics_first: u32 = 0, 0..=1, "";
        /// 1 has the front-end hear of a measurement when its daemon has had that CPU time, 0 at once.
        metrics_delayed: u32 = 0, 0..=1, "";
        /// 1 also measures how long a back-end takes to answer `GET /` (the forward metric).
        probes: u32 = 1, 0..=1, "";
        /// Size of that answer.
        probe_bytes: u64 = 1024, 0..=1000000000000, "bytes";
    }
}

/// Costs in integer nanoseconds, derived once.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApacheCosts {
    pub(super) establish: u64,
    pub(super) teardown: u64,
    pub(super) basic: u64,
    pub(super) no_document: u64,
    pub(super) fork: u64,
    pub(super) context_switch: u64,
    pub(super) handoff: u64,
    transmit_512: u64,
    relay_512: u64,
    disk_latency: u64,
    disk_transfer_4096: u64,
}

impl ApacheCosts {
    pub(super) fn new(p: &ApacheParams) -> Self {
        let ns = |us: f64| (us * 1000.0).round() as u64;
        Self {
            establish: ns(p.establish_us),
            teardown: ns(p.teardown_us),
            basic: ns(p.basic_us),
            no_document: ns(p.no_document_us),
            fork: ns(p.fork_us),
            context_switch: ns(p.context_switch_us),
            handoff: ns(p.handoff_us),
            relay_512: ns(p.relay_per_512_bytes_us),
            transmit_512: ns(p.transmit_per_512_bytes_us),
            disk_latency: ns(p.disk_latency_us),
            disk_transfer_4096: ns(p.disk_transfer_per_4096_bytes_us),
        }
    }

    /// CPU time to transmit the bytes from `sent` to `until` of a response, in nanoseconds.
    #[inline]
    pub(super) fn transmit(&self, sent: u64, until: u64) -> u64 {
        (until.div_ceil(512) - sent.div_ceil(512)).saturating_mul(self.transmit_512)
    }

    /// CPU time to take a response from another back-end, in nanoseconds.
    pub(super) fn relay(&self, bytes: u64) -> u64 {
        bytes.div_ceil(512).saturating_mul(self.relay_512)
    }

    /// Disk time to read a document.
    pub(super) fn read(&self, size_bytes: u64) -> Nanos {
        let transfer = size_bytes.div_ceil(4096).saturating_mul(self.disk_transfer_4096);
        Nanos::new(self.disk_latency.saturating_add(transfer))
    }
}
