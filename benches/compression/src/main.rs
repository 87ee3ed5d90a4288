//! What compression costs: the coders of the front-end (`mechanism/proxy/coder.rs`), a flush after each 64 KiB, over the
//! beginnings of a file. `cargo run --release --manifest-path benches/compression/Cargo.toml FILE`.

#[path = "../../../crates/balancer/src/mechanism/proxy/coder.rs"]
mod coder;
#[path = "../../common/cpu_time.rs"]
mod cpu_time;

use std::error::Error;
use std::io;

use coder::Coder;
use cpu_time::cpu_s;
use zstd::stream::raw::{CParameter, Encoder};

type Done<T> = Result<T, Box<dyn Error>>;

const PIECE_BYTES: usize = 64 << 10;
const LEVELS: [u32; 5] = [1, 3, 4, 6, 9];
/// Bodies of which each figure is.
const AT_LEAST_BYTES: usize = 8 << 20;
/// Coders that are made to see how much memory one takes.
const CODERS: usize = 100;

/// As zstd would have it of itself, but for its window.
fn zstd_with_its_own_tables(level: u32) -> io::Result<Coder> {
    let mut encoder = Encoder::new(i32::try_from(level).unwrap_or(i32::MAX))?;
    encoder.set_parameter(CParameter::WindowLog(coder::ZSTD_WINDOW))?;
    Ok(Coder::Zstd(encoder))
}

fn code(coder: &mut Coder, body: &[u8], ends: bool, out: &mut Vec<u8>) -> io::Result<()> {
    let last = body.len().div_ceil(PIECE_BYTES);
    for (at, piece) in (1..).zip(body.chunks(PIECE_BYTES)) {
        coder.code(piece, ends && at == last, out)?;
    }
    Ok(())
}

type MakeCoder = fn(u32) -> io::Result<Coder>;

/// Bytes to which a body is compressed, and microseconds of CPU time for it.
fn cost(make: MakeCoder, level: u32, body: &[u8]) -> Done<(usize, f64)> {
    let (mut coder, mut out) = (make(level)?, Vec::new());
    let times = AT_LEAST_BYTES / body.len() + 1;
    let before = cpu_s()?;
    for _ in 0..times {
        out.clear();
        coder.reset()?;
        code(&mut coder, body, true, &mut out)?;
    }
    Ok((out.len(), (cpu_s()? - before) / times as f64 * 1e6))
}

/// KiB of memory that a coder takes in the middle of a body.
fn memory_kib(make: MakeCoder, level: u32, body: &[u8]) -> Done<usize> {
    let resident_kib = || -> Done<usize> {
        let text = std::fs::read_to_string("/proc/self/statm")?;
        Ok(text.split_whitespace().nth(1).ok_or("statm is empty")?.parse::<usize>()? * 4)
    };
    let (before, mut coders, mut out) = (resident_kib()?, Vec::new(), Vec::new());
    for _ in 0..CODERS {
        let mut coder = make(level)?;
        code(&mut coder, body, false, &mut out)?;
        out.clear();
        coders.push(coder);
    }
    let kib = resident_kib()?.saturating_sub(before) / CODERS;
    // What is freed would be there for the next ones.
    std::mem::forget(coders);
    Ok(kib)
}

fn main() -> Done<()> {
    let file = std::env::args().nth(1).ok_or("name a file of text")?;
    let text = std::fs::read(file)?;
    let coders: [(&str, MakeCoder); 3] = [
        ("gzip", |level| Ok(Coder::gzip(level))),
        ("zstd", Coder::zstd),
        ("zstd, own tables", zstd_with_its_own_tables),
    ];
    println!("| coder | level | 8 KiB: bytes, µs | 64 KiB | 400 KB | KiB of memory |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, make) in coders {
        for level in LEVELS {
            print!("| {name} | {level} |");
            for size in [8 << 10, 64 << 10, 400_000] {
                let (bytes, cpu_us) =
                    cost(make, level, text.get(..size).ok_or("the file has less than 400 KB")?)?;
                print!(" {bytes}, {cpu_us:.0} |");
            }
            println!(" {} |", memory_kib(make, level, &text[..400_000])?);
        }
    }
    Ok(())
}
