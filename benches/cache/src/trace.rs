//! libCacheSim's oracleGeneral format: records of 24 bytes, little-endian and packed: time in
//! seconds (u32), object (u64), size in bytes (u32), number of the object's next request (i64, -1
//! if there is none).

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

const RECORD_BYTES: usize = 24;
const CHUNK_BYTES: usize = RECORD_BYTES * 16 * 1024;

/// Calls `visit(object, size_bytes)` for every request of a trace. Like libCacheSim's reader, it
/// passes over requests of size 0.
pub fn for_each(path: &Path, mut visit: impl FnMut(u64, u32)) -> Result<()> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let filled =
            fill(&mut file, &mut chunk).with_context(|| format!("cannot read {}", path.display()))?;
        let (records, rest) = chunk[..filled].as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            bail!("{} is not a whole number of {RECORD_BYTES}-byte records", path.display());
        }
        for record in records {
            let (id, size_bytes) = fields(record);
            if size_bytes != 0 {
                visit(id, size_bytes);
            }
        }
        if filled < CHUNK_BYTES {
            return Ok(());
        }
    }
}

#[inline]
fn fields(record: &[u8; RECORD_BYTES]) -> (u64, u32) {
    let [_, _, _, _, a, b, c, d, e, f, g, h, i, j, k, l, ..] = *record;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]))
}

/// Reads until `chunk` is full or the file ends.
fn fill(file: &mut File, chunk: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < chunk.len() {
        match file.read(&mut chunk[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// One request to be written.
pub struct Request {
    /// When, in seconds.
    pub time_s: u32,
    /// The object.
    pub id: u64,
    /// Its size in bytes.
    pub size_bytes: u32,
    /// The number of its next request, or -1.
    pub next: i64,
}

/// Writes a trace.
pub fn write(path: &Path, requests: impl Iterator<Item = Request>) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(failed)?);
    for request in requests {
        let mut record = Vec::with_capacity(RECORD_BYTES);
        record.extend(request.time_s.to_le_bytes());
        record.extend(request.id.to_le_bytes());
        record.extend(request.size_bytes.to_le_bytes());
        record.extend(request.next.to_le_bytes());
        file.write_all(&record).with_context(failed)?;
    }
    file.flush().with_context(failed)
}
