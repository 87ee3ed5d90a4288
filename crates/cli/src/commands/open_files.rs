//! How many files a server may have open.

use plimsoll_balancer::raise_open_file_limit;

/// Raises the limit of open files as far as the system lets, and warns where so many connections, with a second file each, may
/// need more.
pub(crate) fn raise_for(max_connections: u32) {
    let wanted = u64::from(max_connections).saturating_mul(2).saturating_add(256);
    if let Some(most) = raise_open_file_limit().filter(|&most| most < wanted) {
        tracing::warn!("only {most} files may be open here, fewer than --max-connections may need: {wanted}");
    }
}
