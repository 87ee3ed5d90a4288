//! The process that holds a node's namespaces, and clears the node when the lab's process ends.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::commands;
use crate::error::LabError;
use crate::process::wait_within;

/// Mounts what a node has of its own, says `ready`, waits for the end of its input, and then kills what is in the node's
/// namespaces: by the one for mounts, which commands in the node have, or the one for the network. The lab's process is
/// spared, whatever namespaces it is in. A process may start another one while it is looked for, so it is looked for
/// until none is found.
///
/// Arguments: a directory and in it, if any, a file to be removed at the end. The directory is entered before its mount
/// is covered by another one.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
cd "$1" || exit 1
mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf && mount -t tmpfs -o mode=755 tmpfs /run || exit 1
echo ready
exec >/dev/null 2>&1
read -r end
number() { n=$(readlink "/proc/self/ns/$1"); n=${n#*\[}; echo "${n%\]}"; }
mnt=$(number mnt)
net=$(number net)
round=0
while [ $round -lt 200 ]; do
  round=$((round + 1))
  more=
  for found in $(find /proc/[0-9]*/ns/mnt /proc/[0-9]*/ns/net -maxdepth 0 -lname "*$mnt*" -o -lname "*$net*"); do
    pid=${found#/proc/}
    pid=${pid%%/*}
    [ "$pid" != $$ ] && [ "$pid" != $PPID ] && kill -KILL "$pid" && more=1
  done
  [ -z "$more" ] && break
  sleep 0.01
done
[ -n "$2" ] && rm -f -- "$2"
exit 0
"#;

/// How long a holder may take to clear its node.
const CLEARING: Duration = Duration::from_secs(10);

/// A process that holds the namespaces of one node.
#[derive(Debug)]
pub(crate) struct Holder {
    child: Child,
    /// Its end is what the holder waits for.
    input: Option<ChildStdin>,
}

impl Holder {
    /// Starts a holder; [`Holder::wait_until_ready`] tells whether its namespaces are as they should be.
    pub(crate) fn start(remove_at_end: Option<&Path>) -> Result<Self, LabError> {
        let (directory, file) = split(remove_at_end)?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--propagation", "private", "--", "sh", "-c", SCRIPT, "holder"]);
        command.arg(directory).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What ends the lab's process group is not to end the one that clears up.
        let mut child = command.process_group(0).spawn().map_err(|e| commands::not_started("unshare", e))?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Waits until the holder has made its mounts.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), LabError> {
        let mut line = String::new();
        if let Some(output) = self.child.stdout.take() {
            // The holder says one thing or ends.
            let _ = BufReader::new(output.take(64)).read_line(&mut line);
        }
        if line == "ready\n" {
            return Ok(());
        }
        let mut printed = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(4096).read_to_string(&mut printed);
        }
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        Err(LabError::Command {
            command: "unshare --net --mount, then mount sysfs, bpf and tmpfs".to_owned(),
            status,
            printed: printed.trim().to_owned(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has the holder clear its node, without waiting for it.
    pub(crate) fn release(&mut self) {
        self.input = None;
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.release();
        if wait_within(&mut self.child, CLEARING).is_none() {
            // Nothing better is left; what it could not kill within that time is stuck in the kernel.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The directory to enter, and the file's name in it.
fn split(file: Option<&Path>) -> Result<(PathBuf, &OsStr), LabError> {
    let Some(file) = file else { return Ok((PathBuf::from("/"), OsStr::new(""))) };
    match (file.parent(), file.file_name()) {
        (Some(directory), Some(name)) if file.is_absolute() => Ok((directory.to_owned(), name)),
        _ => Err(LabError::Invalid(format!("{} is no absolute path of a file", file.display()))),
    }
}
