//! Notes that describe running labs: a file for each, which the lab's process keeps locked while it lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_lab::{Lab, Node};
use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// Where the notes are; emptied by a restart of the machine.
const DIRECTORY: &str = "/run/plimsoll-lab";
/// Longest note that is read.
const MOST_BYTES: u64 = 1 << 20;
/// How long the holders of a lab that was killed may take to remove its note.
const CLEARING: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// A lab as others see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) name: String,
    /// The process that has the lab.
    pub(super) pid: u32,
    pub(super) virtual_address: String,
    pub(super) virtual_address_v6: String,
    pub(super) nodes: Vec<NodeNote>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NodeNote {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) address_v6: String,
    /// The process that holds its namespaces.
    pub(super) pid: u32,
}

impl Note {
    /// One of its nodes.
    pub(super) fn node(&self, name: &str) -> Result<&NodeNote, CliError> {
        self.nodes.iter().find(|node| node.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            CliError::Failed(format!(
                "the lab `{}` has no node `{name}`, but {}",
                self.name,
                names.join(", ")
            ))
        })
    }
}

/// A name of a lab: 1 to 32 letters, digits, `-`, `_`.
pub(super) fn name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=32).contains(&text.len()) && text.chars().all(good) {
        return Ok(text.to_owned());
    }
    Err(format!("a lab's name is 1 to 32 letters, digits, - and _, not `{text}`"))
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{name}.json"))
}

/// The name of a lab that is being built. It is taken until this is dropped.
pub(super) struct NameClaim {
    name: String,
    file: File,
    pub(super) path: PathBuf,
}

impl NameClaim {
    /// Takes a name.
    ///
    /// # Errors
    /// When another lab has it, or notes cannot be written.
    pub(super) fn new(name: &str) -> Result<Self, CliError> {
        let path = path(name);
        fs::create_dir_all(DIRECTORY).map_err(|e| CliError::writing(Path::new(DIRECTORY), &e))?;
        let end = Instant::now() + CLEARING;
        let mut refused = 0;
        // An owner that is being killed is still visible for a moment.
        while Instant::now() < end && refused < 5 {
            wait_for_clearing(&path, end);
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = file.map_err(|e| CliError::writing(&path, &e))?;
            match file.try_lock() {
                // Otherwise its last owner removed it in between.
                Ok(()) if is_at(&file, &path) => return Ok(Self { name: name.to_owned(), file, path }),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    // Otherwise another process is only reading it.
                    refused += u32::from(owner_lives(&path));
                    std::thread::sleep(POLL);
                }
                Err(TryLockError::Error(error)) => return Err(CliError::writing(&path, &error)),
            }
        }
        Err(CliError::Failed(format!(
            "there is a lab `{name}` already; give this one another name with --name"
        )))
    }

    /// Writes down what the lab is.
    pub(super) fn write(&mut self, lab: &Lab) -> Result<Note, CliError> {
        let node = |handle: plimsoll_lab::NodeHandle<'_>| NodeNote {
            name: handle.node().to_string(),
            address: handle.address().to_string(),
            address_v6: handle.address_v6().to_string(),
            pid: handle.pid(),
        };
        let note = Note {
            name: self.name.clone(),
            pid: std::process::id(),
            virtual_address: lab.virtual_address().to_string(),
            virtual_address_v6: lab.virtual_address_v6().to_string(),
            nodes: lab.nodes().map(node).collect(),
        };
        let text = serde_json::to_string(&note).map_err(|e| CliError::Failed(e.to_string()))?;
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|e| CliError::writing(&self.path, &e))?;
        Ok(note)
    }
}

impl Drop for NameClaim {
    fn drop(&mut self) {
        // The lab removes it when it ends; without a lab it still exists.
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `path` still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: io::Result<fs::Metadata>| found.map(|found| found.ino()).ok();
    number(file.metadata()).is_some_and(|ours| number(fs::metadata(path)) == Some(ours))
}

/// Waits for the note of a killed lab to vanish. It remains until the lab's nodes are cleared, and must not
/// be taken for that of a new lab.
fn wait_for_clearing(path: &Path, end: Instant) {
    while Instant::now() < end {
        match read(path) {
            Ok(NoteState::Stale(note)) if holder_lives(&note) => std::thread::sleep(POLL),
            _ => return,
        }
    }
}

/// Whether the process that wrote this note lives and is not a zombie. A name that is being claimed has no
/// note yet.
fn owner_lives(path: &Path) -> bool {
    let Ok(NoteState::Running(note)) = read(path) else { return false };
    let stat = fs::read_to_string(format!("/proc/{}/stat", note.pid)).unwrap_or_default();
    // Its state stands behind its name, which is in parentheses.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn holder_lives(note: &Note) -> bool {
    let switch = note.nodes.iter().find(|node| node.name == Node::Switch.to_string());
    switch.is_some_and(|node| {
        fs::read(format!("/proc/{}/cmdline", node.pid)).is_ok_and(|line| line.starts_with(b"sh\0"))
    })
}

/// The state of a note.
enum NoteState {
    /// Of a lab that runs.
    Running(Note),
    /// Of one that ended without removing it.
    Stale(Note),
    /// Being written, damaged, or gone.
    Unreadable,
}

fn read(path: &Path) -> io::Result<NoteState> {
    let file = File::open(path)?;
    let mut text = String::new();
    (&file).take(MOST_BYTES).read_to_string(&mut text)?;
    let Ok(note) = serde_json::from_str(&text) else { return Ok(NoteState::Unreadable) };
    Ok(match file.try_lock_shared() {
        Ok(()) => NoteState::Stale(note),
        Err(_) => NoteState::Running(note),
    })
}

/// All running labs, by name. Removes notes of labs that are gone, and prints that.
pub(super) fn running() -> Result<Vec<Note>, CliError> {
    let entries = match fs::read_dir(DIRECTORY) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::Failed(format!("cannot read {DIRECTORY}: {error}"))),
    };
    let mut notes = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        match read(&path) {
            Ok(NoteState::Running(note)) => notes.push(note),
            Ok(NoteState::Stale(note)) if !holder_lives(&note) => {
                eprintln!(
                    "plimsoll: the lab `{}` has ended without removing its note; removed it now",
                    note.name
                );
                let _ = fs::remove_file(&path);
            }
            _ => {}
        }
    }
    notes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(notes)
}

/// The lab of this name, or the only one.
pub(super) fn find(name: Option<&str>) -> Result<Note, CliError> {
    let mut notes = running()?;
    let names: Vec<String> = notes.iter().map(|note| format!("`{}`", note.name)).collect();
    match name {
        Some(name) => match notes.into_iter().find(|note| note.name == name) {
            Some(note) => Ok(note),
            None if names.is_empty() => Err(CliError::Failed(format!("no lab `{name}`: none is running"))),
            None => Err(CliError::Failed(format!("no lab `{name}`; running: {}", names.join(", ")))),
        },
        None if notes.len() == 1 => Ok(notes.remove(0)),
        None if notes.is_empty() => {
            Err(CliError::Failed("no lab is running; start one with `plimsoll lab up`".to_owned()))
        }
        None => {
            Err(CliError::Usage(format!("several labs are running, name one of them: {}", names.join(", "))))
        }
    }
}
