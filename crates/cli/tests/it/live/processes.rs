//! Processes of `plimsoll`, their addresses, and what they say.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{OwnLoopback, PATIENCE, eventually, wait_for};
use tempfile::TempDir;

/// A running `plimsoll`; killed when it is dropped.
pub(super) struct Process {
    child: Child,
    heard: Heard,
}

/// What a process says, line by line.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    /// Waits for a line that holds `what`, from the `skip`-th such line on; what it says.
    pub(super) fn wait_for(&self, what: &str, skip: usize) -> String {
        wait_for(&format!("line {skip} with `{what}`"), || {
            self.0.lock().unwrap().iter().filter(|line| line.contains(what)).nth(skip).cloned()
        })
    }

    /// How many lines hold `what`.
    pub(super) fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(what)).count()
    }
}

impl Process {
    pub(super) fn start(args: &[&str]) -> Self {
        Self::start_with_stdout(args, Stdio::null())
    }

    /// The same; a pipe is held, but not read.
    pub(super) fn start_with_stdout(args: &[&str], stdout: Stdio) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(args), stdout)
    }

    /// Runs this command.
    pub(super) fn run(command: &mut Command, stdout: Stdio) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let heard = Heard::default();
        let (stderr, hears) = (BufReader::new(child.stderr.take().unwrap()), heard.clone());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                hears.0.lock().unwrap().push(line);
            }
        });
        Self { child, heard }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `-TERM` to this process alone.
    pub(super) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// What it says, for a thread that waits for it.
    pub(super) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    /// As [`Heard::wait_for`].
    pub(super) fn wait_for(&self, what: &str, skip: usize) -> String {
        self.heard.wait_for(what, skip)
    }

    /// The address behind `what` in the first line that holds it.
    pub(super) fn address(&self, what: &str) -> SocketAddr {
        let line = self.wait_for(what, 0);
        let at = line.find(what).unwrap() + what.len();
        line[at..].trim().parse().unwrap()
    }

    /// Everything that was said.
    pub(super) fn said(&self) -> String {
        self.heard.0.lock().unwrap().iter().map(|line| format!("{line}\n")).collect()
    }

    /// Waits for the end; the exit code.
    pub(super) fn wait(&mut self) -> Option<i32> {
        wait_for("the end of the process", || self.child.try_wait().unwrap()).code()
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An origin that can be killed and started again at the same address.
pub(super) struct Origin {
    args: Vec<String>,
    pub(super) process: Process,
    pub(super) address: SocketAddr,
    _own: OwnLoopback,
}

impl Origin {
    pub(super) fn start(name: &str, more: &[&str]) -> Self {
        Self::of(&["--synthetic", "fixed:1KB", "--name", name], more)
    }

    /// Of the files in this directory.
    pub(super) fn serving(directory: &Path) -> Self {
        Self::of(&["--root", directory.to_str().unwrap()], &[])
    }

    fn of(contents: &[&str], more: &[&str]) -> Self {
        let mut args: Vec<String> = vec!["origin".to_owned()];
        args.extend(contents.iter().chain(&["--listen"]).map(|&arg| arg.to_owned()));
        let own = OwnLoopback::new();
        args.push(own.at(8000).to_string());
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        let process = Process::start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let address = process.address("listening on http://");
        Self { args, process, address, _own: own }
    }

    pub(super) fn restart(&mut self) {
        self.process = Process::start(&self.args.iter().map(String::as_str).collect::<Vec<_>>());
        self.process.address("listening on http://");
    }
}

/// A front-end process with its configuration file.
pub(super) struct FrontEnd {
    pub(super) process: Process,
    pub(super) address: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) file: PathBuf,
    pub(super) directory: TempDir,
}

impl FrontEnd {
    /// Starts a front-end for these back-ends; `more` is put behind listener and admin address.
    pub(super) fn start(backends: &[SocketAddr], more: &str) -> Self {
        Self::start_with_stdout(backends, more, Stdio::null())
    }

    /// The same with this standard output.
    pub(super) fn start_with_stdout(backends: &[SocketAddr], more: &str, stdout: Stdio) -> Self {
        let directory = private_directory();
        let file = directory.path().join("plimsoll.toml");
        std::fs::write(&file, config(backends, more)).unwrap();
        let args = ["balance", "--no-watch", "--config", file.to_str().unwrap()];
        let process = Process::start_with_stdout(&args, stdout);
        let address = process.address("listening on http://");
        let admin = process.address("admin API on http://");
        Self { process, address, admin, file, directory }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until no back-end has a request any longer.
    fn wait_until_idle(&self) {
        eventually("the end of all requests", || self.load() == 0);
    }

    /// How many requests the back-ends have.
    pub(super) fn load(&self) -> u64 {
        let backends = self.get("/backends");
        backends.as_array().unwrap().iter().map(|backend| backend["load"].as_u64().unwrap()).sum()
    }

    /// What the admin API answers.
    pub(super) fn get(&self, path: &str) -> serde_json::Value {
        self.ask("GET", path)
    }

    /// The same to a request that changes something.
    pub(super) fn post(&self, path: &str) -> serde_json::Value {
        self.ask("POST", path)
    }

    fn ask(&self, method: &str, path: &str) -> serde_json::Value {
        serde_json::from_str(&self.asked(method, path)).unwrap()
    }

    /// What the admin API answers, as text.
    pub(super) fn text(&self, path: &str) -> String {
        self.asked("GET", path)
    }

    fn asked(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    /// Stops in good order, once nothing is under way.
    pub(super) fn stop(&mut self) {
        self.wait_until_idle();
        self.process.signal("-TERM");
        assert_eq!(self.process.wait(), Some(0), "{}", self.process.said());
    }
}

/// A directory of root alone: a front-end with its configuration there stays root, so that a reload may add files to it.
pub(super) fn private_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    directory
}

/// A configuration with these back-ends, named `b0`, `b1` and so on.
pub(super) fn config(backends: &[SocketAddr], more: &str) -> String {
    let mut text = String::from(
        "workers = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n",
    );
    for (index, address) in backends.iter().enumerate() {
        text += &format!("[[backend]]\nname = \"b{index}\"\naddress = \"{address}\"\n");
    }
    text + more
}

/// Proves that the front-end's decision log replays to the same decisions.
pub(super) fn assert_replays(log: &Path) {
    let out = crate::common::plimsoll(&["replay", log.to_str().unwrap()]);
    let (stdout, stderr) = (crate::common::text(&out.stdout), crate::common::text(&out.stderr));
    assert!(out.status.success() && stdout.contains("identical"), "{stdout}{stderr}");
}

/// Runs a future to its end on a runtime of its own.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
