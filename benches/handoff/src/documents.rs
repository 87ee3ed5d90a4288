//! The documents that back-ends have.

use std::fs;
use std::net::SocketAddr;

use anyhow::{Result, bail};
use plimsoll_lab::NodeHandle;

use crate::http::Client;

/// Sizes of documents: what they are called, and bytes.
pub const SIZES: [(&str, usize); 10] = [
    ("100 B", 100),
    ("1 KB", 1 << 10),
    ("4 KB", 4 << 10),
    ("8 KB", 8 << 10),
    ("16 KB", 16 << 10),
    ("32 KB", 32 << 10),
    ("64 KB", 64 << 10),
    ("100 KB", 100 << 10),
    ("256 KB", 256 << 10),
    ("1 MB", 1 << 20),
];
/// Documents of each size.
pub const DOCUMENTS: usize = 8;
/// Where one is.
pub fn path(size_bytes: usize, number: usize) -> String {
    format!("/{size_bytes}-{number}")
}

/// Contents that tell which document they are of, and where in it.
fn content(size_bytes: usize, number: usize) -> Vec<u8> {
    (0..size_bytes).map(|at| ((at * (number + 1) + at / 251) % 256) as u8).collect()
}

/// Puts them into the node's directory for documents.
pub fn write(node: NodeHandle<'_>) -> Result<()> {
    let directory = node.root().join("run/www");
    fs::create_dir(&directory)?;
    for (_, size_bytes) in SIZES {
        for number in 0..DOCUMENTS {
            fs::write(directory.join(&path(size_bytes, number)[1..]), content(size_bytes, number))?;
        }
    }
    Ok(())
}

/// Whether every document of every size comes whole from there, over one connection.
pub fn check(target: SocketAddr) -> Result<()> {
    let mut client = Client::connect(target)?;
    for (label, size_bytes) in SIZES {
        for number in 0..DOCUMENTS {
            if client.get(&path(size_bytes, number))?.body != content(size_bytes, number) {
                bail!("document {number} of {label} is wrong");
            }
        }
    }
    Ok(())
}
