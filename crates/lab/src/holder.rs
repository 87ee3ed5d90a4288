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

/// Mounts the node's own file systems, prints `ready`, waits for the end of its input, and then kills all
/// processes in the node's mount namespace (commands in the node) or network namespace, except the lab's
/// process. Processes may fork meanwhile, so it repeats the search until it finds none.
///
/// Arguments: a directory and, optionally, a file in it to remove at the end. The script enters the directory
/// before another mount covers it.
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
    /// The holder waits for the end of this input.
    input: Option<ChildStdin>,
}

impl Holder {
    /// Starts a holder. [`Holder::wait_until_ready`] reports whether its namespaces are set up.
    pub(crate) fn start(remove_at_end: Option<&Path>) -> Result<Self, LabError> {
        let (directory, file) = split(remove_at_end)?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--propagation", "private", "--", "sh", "-c", SCRIPT, "holder"]);
        command.arg(directory).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a process group of its own, so that a signal to the lab's group does not end the process that
        // cleans up.
        let mut child = command.process_group(0).spawn().map_err(|e| commands::not_started("unshare", e))?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Waits until the holder has made its mounts.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), LabError> {
        let mut line = String::new();
        if let Some(output) = self.child.stdout.take() {
            // The holder prints one line or ends.
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

    /// Makes the holder clear its node, without waiting.
    pub(crate) fn release(&mut self) {
        self.input = None;
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.release();
        if wait_within(&mut self.child, CLEARING).is_none() {
            // The last resort: processes that survived until now are stuck in the kernel.
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
