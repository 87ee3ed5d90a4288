//! Reads all entries of a hash map, some thousand per system call.
//!
//! The iterator of libbpf-rs wrongly takes a batch that is not full for the last one, and allocates for each
//! entry.

#![allow(unsafe_code, reason = "the call fills buffers that it is told the size of")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libbpf_rs::libbpf_sys::{bpf_map_batch_opts, bpf_map_lookup_batch};
use libbpf_rs::{MapCore, MapHandle};

/// Entries per call; more than one bucket of the map ever holds.
const BATCH: u32 = 4096;

/// Calls `visit` with key and value of each entry. Entries that come or go meanwhile may be left out.
///
/// # Errors
/// The kernel's, among them `ENOTSUPP` before Linux 5.6.
pub(crate) fn for_each(map: &MapHandle, mut visit: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
    let (key_bytes, value_bytes) = (map.key_size() as usize, map.value_size() as usize);
    let mut keys = vec![0; BATCH as usize * key_bytes];
    let mut values = vec![0; BATCH as usize * value_bytes];
    // The number of the bucket that comes next.
    let (mut from, mut next) = (None, [0_u8; 8]);
    // Every call but the last passes at least one bucket, and there are at most twice as many buckets as
    // entries.
    for _ in 0..=map.max_entries().saturating_mul(2) {
        let (count, last) = lookup(map, from.as_ref(), &mut next, &mut keys, &mut values)?;
        let entries = keys.chunks_exact(key_bytes).zip(values.chunks_exact(value_bytes));
        entries.take(count).for_each(|(key, value)| visit(key, value));
        if last {
            return Ok(());
        }
        from = Some(next);
    }
    Ok(())
}

/// One system call. Returns the number of entries, and whether they were the last.
fn lookup(
    map: &MapHandle,
    from: Option<&[u8; 8]>,
    next: &mut [u8; 8],
    keys: &mut [u8],
    values: &mut [u8],
) -> io::Result<(usize, bool)> {
    let options = bpf_map_batch_opts { sz: size_of::<bpf_map_batch_opts>() as _, ..Default::default() };
    let mut count = BATCH;
    // The kernel only reads it; libbpf's signature has no `const`.
    let from = from.map_or(ptr::null_mut(), |bucket| bucket.as_ptr().cast_mut());
    // SAFETY: the buffers hold BATCH keys and values of this map, which is the most that the kernel writes; both tokens
    // have 8 bytes, of which hash maps use 4. All live until the call returns.
    let result = unsafe {
        bpf_map_lookup_batch(
            map.as_fd().as_raw_fd(),
            from.cast(),
            next.as_mut_ptr().cast(),
            keys.as_mut_ptr().cast(),
            values.as_mut_ptr().cast(),
            &raw mut count,
            &raw const options,
        )
    };
    if result == 0 {
        return Ok((count as usize, false));
    }
    match io::Error::from_raw_os_error(-result) {
        end if end.raw_os_error() == Some(libc::ENOENT) => Ok((count.min(BATCH) as usize, true)),
        error => Err(error),
    }
}
