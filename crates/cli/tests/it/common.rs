//! What the tests of all commands share.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A process that does not outlive a test that fails.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Labs take turns: with several under load, the machine's few CPUs make nodes of a lab look dead to one another.
static LABS: RwLock<()> = RwLock::new(());

/// The turn of a lab.
pub(crate) enum Turn {
    /// Under load, with no other lab.
    Alone { _guard: RwLockWriteGuard<'static, ()> },
    /// With little to do, beside others of that kind.
    Beside { _guard: RwLockReadGuard<'static, ()> },
}

/// Waits until no other test has a lab.
pub(crate) fn alone() -> Turn {
    allow_many_clients();
    // A test that failed has left nothing behind.
    Turn::Alone { _guard: LABS.write().unwrap_or_else(PoisonError::into_inner) }
}

/// Waits until no other test has a lab under load.
pub(crate) fn beside_others() -> Turn {
    allow_many_clients();
    Turn::Beside { _guard: LABS.read().unwrap_or_else(PoisonError::into_inner) }
}

/// The clients of a lab may be thousands, each with an open file; many systems let a process have 1,024 unless it asks for more.
fn allow_many_clients() {
    // Where the system refuses, a client that cannot connect says so.
    let _ = plimsoll_balancer::raise_open_file_limit();
}

/// Runs the command to its end.
pub(crate) fn plimsoll(args: &[&str]) -> Output {
    plimsoll_with_input(args, b"")
}

/// Runs the command with this standard input.
pub(crate) fn plimsoll_with_input(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Path of a real trace, or `None` outside continuous integration when the traces are not there.
pub(crate) fn shared(name: &str) -> Option<String> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")).join(name);
    if path.exists() {
        return Some(path.to_str().unwrap().to_owned());
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the trace {} is missing; put the real traces beside the checkout, in ../shared/traces",
        path.display()
    );
    eprintln!("skipped: {} is missing", path.display());
    None
}
