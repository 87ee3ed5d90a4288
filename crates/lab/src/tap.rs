//! TAP interfaces: their frames are read and written as a file.

use std::fs::File;
use std::os::fd::AsFd as _;

use tun_rs::{DeviceBuilder, Layer};

use crate::error::LabError;

/// Makes an interface of this name in the calling thread's network namespace. A read of the file returns a frame that was
/// sent to the interface, a write of one makes the interface receive it; neither waits. The interface exists as long as the
/// file. It has no offloads, so the kernel segments large packets and computes checksums before a frame can be read.
pub(crate) fn create(name: &str) -> Result<File, LabError> {
    let failed = |error| LabError::Unsupported {
        what: "delaying, losing or reordering frames".to_owned(),
        why: format!(
            "no TAP interface can be made (it takes /dev/net/tun, of the kernel's module `tun`): {error}"
        ),
    };
    let builder = DeviceBuilder::new().name(name).layer(Layer::L2).inherit_enable_state();
    let tap = builder.build_sync().map_err(failed)?;
    tap.set_nonblocking(true).map_err(failed)?;
    tap.as_fd().try_clone_to_owned().map(File::from).map_err(failed)
}
