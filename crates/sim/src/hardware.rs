//! Hardware of back-ends: named sets of the models' costs, each value with its source.
//!
//! A new entry is one static and one line in [`HARDWARE`]. Command line and documentation read them from here.

use std::fmt;

use plimsoll_policy::params::{ParamSpec, ParamValue, nearest};

use crate::model_spec::ModelSpec;
use crate::models::{adaptload, lard};

/// One cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HardwareCost {
    /// The models, or the policies, that have this parameter.
    pub owners: &'static [&'static str],
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub value: ParamValue,
    /// Where the value comes from.
    pub source: &'static str,
}

/// One named set of costs.
pub struct HardwareSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The costs; parameters that are not among them have the models' defaults.
    pub costs: &'static [&'static [HardwareCost]],
}

impl fmt::Debug for HardwareSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HardwareSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl HardwareSpec {
    /// All costs, in the order of declaration.
    pub fn costs(&self) -> impl Iterator<Item = &'static HardwareCost> {
        self.costs.iter().copied().flatten()
    }

    /// The costs of this model or policy, which has these parameters: a policy and a model may share a name.
    pub fn costs_of(
        &self,
        owner: &'static str,
        params: &'static [ParamSpec],
    ) -> impl Iterator<Item = &'static HardwareCost> + use<> {
        let costs = self.costs.iter().copied().flatten();
        costs.filter(move |cost| {
            cost.owners.contains(&owner) && params.iter().any(|param| param.name == cost.key)
        })
    }
}

/// Whether the costs of this model depend on the hardware.
#[must_use]
pub fn has_hardware(model: &ModelSpec) -> bool {
    [lard::SPEC.name, lard::GLOBAL_MEMORY_SPEC.name, adaptload::SPEC.name].contains(&model.name)
}

/// The hardware of this name.
///
/// # Errors
/// When there is none; the text names the nearest, or all.
pub fn find_hardware(name: &str) -> Result<&'static HardwareSpec, String> {
    HARDWARE.iter().copied().find(|hardware| hardware.name == name).ok_or_else(|| {
        let names = || HARDWARE.iter().map(|hardware| hardware.name);
        let hint = nearest(name, names()).map_or_else(
            || format!("there are {}", names().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        format!("no hardware `{name}`; {hint}")
    })
}

const LARD: &[&str] = &["lard", "lard_gms"];
const ADAPTLOAD: &[&str] = &["adaptload"];
const BOTH: &[&str] = &["lard", "lard_gms", "adaptload"];

const fn number(
    owners: &'static [&'static str],
    key: &'static str,
    value: f64,
    source: &'static str,
) -> HardwareCost {
    HardwareCost { owners, key, value: ParamValue::Number(value), source }
}

const fn count(
    owners: &'static [&'static str],
    key: &'static str,
    value: u64,
    source: &'static str,
) -> HardwareCost {
    HardwareCost { owners, key, value: ParamValue::Integer(value), source }
}

const MEASURED: &str =
    "measured with `plimsoll measure`: nginx 1.22.1, in the middle of several runs, see docs/models.md";
const FOUR_CORES: &str = "four such cores, as one that is four times as fast";
const ETHERNET: &str = "10 Gbit/s Ethernet";
const EXTENTS: &str = "file systems with extents, and read-ahead: no seek within a file";
const READ_AHEAD: &str = "Linux reads 128 KiB ahead (read_ahead_kb)";

/// What a server of today has whatever its storage.
const SERVER: &[HardwareCost] = &[
    number(LARD, "connect_us", 20.0, MEASURED),
    number(LARD, "teardown_us", 8.0, MEASURED),
    number(LARD, "transmit_per_512_bytes_us", 0.13, MEASURED),
    number(LARD, "remote_copy_per_512_bytes_us", 0.41, ETHERNET),
    number(LARD, "cpu_speed", 4.0, FOUR_CORES),
    number(ADAPTLOAD, "transmit_per_512_bytes_us", 0.41, ETHERNET),
    number(BOTH, "disk_seek_us", 0.0, EXTENTS),
    count(BOTH, "block_bytes", 131_072, READ_AHEAD),
    number(&["adaptload_queue"], "service_rate", 1.25e9, ETHERNET),
];

const MICRON: &str = "Micron 9200 data sheet: 92 to 150 µs to the medium, 3.5 GB/s";
const EIGHT: &str =
    "reads at once; 8 of 4 KiB take 79,000 a second (the sheet: up to 840,000 with more at once)";

/// The default.
pub static NVME: HardwareSpec = HardwareSpec {
    name: "nvme",
    summary: "four cores and an NVMe drive",
    costs: &[
        SERVER,
        &[
            number(LARD, "disk_latency_us", 92.0, MICRON),
            number(LARD, "disk_transfer_per_4096_bytes_us", 9.36, "8 × 4,096 bytes at 3.5 GB/s"),
            count(LARD, "disks", 8, EIGHT),
            number(
                ADAPTLOAD,
                "disk_latency_us",
                11.5,
                "an eighth of 92 µs: this model reads one after another",
            ),
            number(ADAPTLOAD, "disk_transfer_per_4096_bytes_us", 1.17, MICRON),
        ],
    ],
};

const INTEL: &str =
    "Intel SSD DC S4500 product specification: 110 µs at random, 500 MB/s, 72,000 reads of 4 KiB a second";

/// Flash behind SATA.
pub static SATA_SSD: HardwareSpec = HardwareSpec {
    name: "sata_ssd",
    summary: "four cores and a SATA SSD",
    costs: &[
        SERVER,
        &[
            number(LARD, "disk_latency_us", 110.0, INTEL),
            number(LARD, "disk_transfer_per_4096_bytes_us", 32.8, "4 × 4,096 bytes at 500 MB/s"),
            count(LARD, "disks", 4, "reads at once; 4 of 4 KiB take 28,000 a second"),
            number(
                ADAPTLOAD,
                "disk_latency_us",
                27.5,
                "a quarter of 110 µs: this model reads one after another",
            ),
            number(ADAPTLOAD, "disk_transfer_per_4096_bytes_us", 8.2, INTEL),
        ],
    ],
};

const EBS: &str = "Amazon EBS User Guide, volumes gp3: single-digit milliseconds, of which the least; 3,000 reads a second, 125 MiB/s";

/// A volume in the network, as clouds offer it.
pub static NETWORK_STORAGE: HardwareSpec = HardwareSpec {
    name: "network_storage",
    summary: "four cores and a volume in the network, as clouds offer it",
    costs: &[
        SERVER,
        &[
            number(LARD, "disk_latency_us", 1000.0, EBS),
            number(LARD, "disk_transfer_per_4096_bytes_us", 93.75, "3 × 4,096 bytes at 125 MiB/s"),
            count(LARD, "disks", 3, "reads at once: 3,000 a second of 1 ms each"),
            number(
                ADAPTLOAD,
                "disk_latency_us",
                333.0,
                "a third of 1 ms: this model reads one after another",
            ),
            number(ADAPTLOAD, "disk_transfer_per_4096_bytes_us", 31.25, EBS),
        ],
    ],
};

const SEEK: &str = "Western Digital Ultrastar DC HC310 specification, 4.5.1: 7.4 ms seek, 4.16 ms rotation";
const EXOS: &str = "Seagate Exos X18: 270 MB/s";

/// A hard disk of today.
pub static DISK: HardwareSpec = HardwareSpec {
    name: "disk",
    summary: "four cores and a hard disk of 7,200 revolutions a minute",
    costs: &[
        SERVER,
        &[
            number(BOTH, "disk_latency_us", 11_560.0, SEEK),
            number(BOTH, "disk_transfer_per_4096_bytes_us", 15.2, EXOS),
        ],
    ],
};

/// The papers' machine: the models' defaults.
pub static PAPER: HardwareSpec = HardwareSpec {
    name: "1998",
    summary: "the papers' machine: a Pentium II of 300 MHz and a disk of 1998 (the models' defaults)",
    costs: &[],
};

/// Every hardware, the default first.
pub static HARDWARE: &[&HardwareSpec] = &[&NVME, &SATA_SSD, &NETWORK_STORAGE, &DISK, &PAPER];

#[cfg(test)]
mod tests {
    use plimsoll_policy::params::ParamSet;

    use super::*;
    use crate::models::MODELS;

    fn params_of(owner: &str) -> &'static [ParamSpec] {
        let model = MODELS.iter().find(|model| model.name == owner).map(|model| model.params);
        model.unwrap_or_else(|| plimsoll_policy::find(owner).unwrap().params)
    }

    #[test]
    fn every_cost_is_one_that_its_owner_takes_once() {
        for hardware in HARDWARE {
            let mut seen = Vec::new();
            for cost in hardware.costs() {
                assert!(!cost.source.is_empty());
                for owner in cost.owners {
                    assert!(
                        !seen.contains(&(*owner, cost.key)),
                        "{}: {owner}.{} twice",
                        hardware.name,
                        cost.key
                    );
                    seen.push((*owner, cost.key));
                    ParamSet::read(params_of(owner), [(cost.key, cost.value.into())]).unwrap();
                }
            }
        }
    }

    #[test]
    fn all_of_today_say_the_same_parameters() {
        for model in ["lard", "adaptload"] {
            let storage: Vec<Vec<&str>> = [&NVME, &SATA_SSD, &NETWORK_STORAGE]
                .map(|hardware| hardware.costs_of(model, params_of(model)).map(|cost| cost.key).collect())
                .to_vec();
            assert!(storage.windows(2).all(|two| two[0] == two[1]) && !storage[0].is_empty(), "{storage:?}");
        }
        assert_eq!(PAPER.costs().count(), 0, "the models' defaults are the papers'");
    }

    #[test]
    fn a_policy_does_not_get_the_costs_of_a_model_of_its_name() {
        let policy = plimsoll_policy::find("lard").unwrap();
        assert_eq!(NVME.costs_of("lard", policy.params).count(), 0);
        assert!(NVME.costs_of("lard", lard::SPEC.params).count() > 5);
    }

    #[test]
    fn a_name_that_is_wrong_gets_the_nearest() {
        assert_eq!(find_hardware("1998").unwrap().name, "1998");
        assert_eq!(find_hardware("nvem").unwrap_err(), "no hardware `nvem`; did you mean `nvme`?");
        assert!(find_hardware("floppy").unwrap_err().ends_with("network_storage, disk, 1998"));
    }
}
