//! Costs of the steps of a request on a back-end of the LARD study (section 3.1).

use plimsoll_policy::Nanos;

plimsoll_policy::params! {
    /// Parameters of the LARD model; defaults from section 3.1, which hardware overrides.
    pub struct LardModelParams {
        /// CPU time to establish a connection.
        connect_us: f64 = 145.0, 0.0..=1e9, "µs";
        /// CPU time to tear a connection down.
        teardown_us: f64 = 145.0, 0.0..=1e9, "µs";
        /// CPU time to transmit 512 bytes.
        transmit_per_512_bytes_us: f64 = 40.0, 0.0..=1e9, "µs";
        /// Disk latency before the first block of a file: two seeks and rotation.
        disk_latency_us: f64 = 28000.0, 0.0..=1e9, "µs";
        /// Disk time to transfer 4,096 bytes.
        disk_transfer_per_4096_bytes_us: f64 = 410.0, 0.0..=1e9, "µs";
        /// Disk latency before each further block: seek and rotation.
        disk_seek_us: f64 = 14000.0, 0.0..=1e9, "µs";
        /// Bytes between two seeks: the unit in which files are read and sent.
        block_bytes: u64 = 45_056, 512..=1000000000000, "bytes";
        /// Disks per back-end; files are dealt to them in turn by falling request frequency.
        disks: u32 = 1, 1..=64, "disks";
        /// Whether results of dynamic requests are kept in the cache, so that a hit saves their service time: 1 for yes.
        cached_results: u32 = 0, 0..=1, "";
        /// Whether back-ends tell the front-end of an answer whether they had it in their cache or read it for it, as by `X-Cache`: 1 for yes.
        tells_hits: u32 = 0, 0..=1, "";
        /// Whether memories begin with documents in them, each read once in the order of the log, in place of empty: 1 for yes.
        starts_full: u32 = 0, 0..=1, "";
        /// Speed of the CPU as a multiple of the one that has these costs.
        cpu_speed: f64 = 1.0, 0.001..=100000.0, "";
        /// In `lard_gms`: CPU time of the receiving back-end to copy 512 bytes from another one's memory.
        remote_copy_per_512_bytes_us: f64 = 40.0, 0.0..=1e9, "µs";
    }
}

/// Costs in integer nanoseconds, derived once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) connect: Nanos,
    pub(super) teardown: Nanos,
    pub(super) transmit_512: u64,
    pub(super) remote_copy_512: u64,
    pub(super) disk_latency: Nanos,
    pub(super) disk_seek: Nanos,
    pub(super) disk_transfer_4096: u64,
}

/// `per_unit` ns for every `unit` bytes, linear, rounded down.
#[inline]
pub(super) fn linear(bytes: u64, unit: u64, per_unit: u64) -> Nanos {
    Nanos::new((bytes / unit).saturating_mul(per_unit).saturating_add(bytes % unit * per_unit / unit))
}

impl Costs {
    pub(super) fn new(p: &LardModelParams) -> Self {
        let cpu = |us: f64| (us * 1000.0 / p.cpu_speed).round() as u64;
        let disk = |us: f64| (us * 1000.0).round() as u64;
        Self {
            connect: Nanos::new(cpu(p.connect_us)),
            teardown: Nanos::new(cpu(p.teardown_us)),
            transmit_512: cpu(p.transmit_per_512_bytes_us),
            remote_copy_512: cpu(p.remote_copy_per_512_bytes_us),
            disk_latency: Nanos::new(disk(p.disk_latency_us)),
            disk_seek: Nanos::new(disk(p.disk_seek_us)),
            disk_transfer_4096: disk(p.disk_transfer_per_4096_bytes_us),
        }
    }

    #[inline]
    /// CPU time to send this many bytes.
    pub(super) fn transmit(&self, bytes: u64) -> Nanos {
        linear(bytes, 512, self.transmit_512)
    }
}
