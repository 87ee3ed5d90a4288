//! A client, a switch and three back-ends that echo what they get, each a network namespace.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::switch::{FrameTag, Switch, SwitchConfig, SwitchHook, Transport};
use plimsoll_datapath::{DatapathError, NextHop, Vip, neighbor};
use plimsoll_lab::{Lab, LabConfig, Node};
use plimsoll_policy::BackendId;
use plimsoll_switch::{
    BookCounts, ConnTimes, SwitchBackend, SwitchBackendState, SwitchCommand, SwitchLoop, SwitchOptions,
};
use plimsoll_testkit::{PATIENCE, eventually, unique_name, wait_for};

use crate::own_core::OwnCore;

pub(crate) const BACKENDS: u16 = 3;
pub(crate) const PORT: u16 = 80;

pub(crate) const OPTIONS: SwitchOptions = SwitchOptions {
    depth: 4,
    times: ConnTimes {
        idle: Duration::from_secs(900),
        opening: Duration::from_secs(30),
        closing: Duration::from_secs(60),
        datagrams: Duration::from_secs(60),
    },
    seed: 5,
};

impl OwnCore {
    pub(crate) fn loads(&self) -> Vec<u32> {
        let view = self.core.view();
        view.ids().map(|b| view.own_load(b)).collect()
    }
}

/// What the loop shows after each round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    pub(crate) conns: usize,
    pub(crate) opening: usize,
    pub(crate) prepared: usize,
    pub(crate) counts: BookCounts,
    pub(crate) loads: Vec<u32>,
}

/// A running switch; dropping it ends its thread as a killed process would.
pub(crate) struct Running {
    pub(crate) switch: Arc<Switch>,
    commands: Option<Sender<SwitchCommand>>,
    shown: Arc<Mutex<Shown>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn shown(&self) -> Shown {
        self.shown.lock().unwrap().clone()
    }

    pub(crate) fn tell(&self, command: SwitchCommand) {
        self.commands.as_ref().unwrap().send(command).unwrap();
    }

    /// Waits until it shows what is wanted.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Shown) -> bool) {
        eventually(what, || is_so(&self.shown()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok(), "the loop has panicked");
        }
    }
}

pub(crate) struct World {
    pub(crate) lab: Lab,
    instance: String,
    /// Connections that each back-end has accepted so far.
    accepted: Vec<Arc<AtomicUsize>>,
    hops: Vec<NextHop>,
}

impl World {
    pub(crate) fn new() -> Self {
        let lab = Lab::build(&LabConfig { backends: BACKENDS.into(), ..LabConfig::default() }).unwrap();
        let vips = [IpAddr::from(lab.virtual_address()), IpAddr::from(lab.virtual_address_v6())];
        let accepted: Vec<Arc<AtomicUsize>> = (0..BACKENDS).map(|_| Arc::default()).collect();
        for (number, count) in accepted.iter().enumerate() {
            let node = lab.node(Node::Backend(number)).unwrap();
            let listen = || {
                for vip in vips {
                    Vip::add(vip, "eth0").unwrap().leave();
                    let listener = TcpListener::bind((vip, PORT)).unwrap();
                    let count = Arc::clone(count);
                    std::thread::spawn(move || serve(&listener, u8::try_from(number).unwrap(), &count));
                }
            };
            node.run(listen).unwrap();
        }
        let front_end = lab.node(Node::FrontEnd).unwrap();
        let hop = |number| {
            let address = lab.node(Node::Backend(number)).unwrap().address();
            front_end.run(|| neighbor(address.into(), PATIENCE)).unwrap().unwrap()
        };
        let hops = (0..BACKENDS.into()).map(hop).collect();
        Self { lab, instance: unique_name("sw"), accepted, hops }
    }

    pub(crate) fn vip(&self) -> SocketAddr {
        (self.lab.virtual_address(), PORT).into()
    }

    pub(crate) fn vip_v6(&self) -> SocketAddr {
        (self.lab.virtual_address_v6(), PORT).into()
    }

    /// The back-ends, those of `down` down.
    pub(crate) fn backends(&self, down: &[u16]) -> Vec<SwitchBackend> {
        let one = |backend: u16| SwitchBackend {
            id: BackendId::new(backend.into()),
            key: u64::from(backend) + 77,
            weight: 1000,
            state: if down.contains(&backend) { SwitchBackendState::Down } else { SwitchBackendState::Up },
            next_hop: Some(self.hops[usize::from(backend)]),
            tunnel: None,
            tag: FrameTag::Kept,
        };
        (0..BACKENDS).map(one).collect()
    }

    /// Starts a switch of this policy at the front-end's node.
    pub(crate) fn start(&self, policy: &str, options: SwitchOptions) -> Running {
        self.start_with(policy, options, 10_000)
    }

    pub(crate) fn start_with(&self, policy: &str, options: SwitchOptions, opening: u32) -> Running {
        let config = SwitchConfig {
            instance: self.instance.clone(),
            interfaces: vec!["eth0".to_owned()],
            hook: SwitchHook::Auto,
            connections: opening * 10,
            opening,
            sample_bytes: 0,
        };
        let front_end = self.lab.node(Node::FrontEnd).unwrap();
        // A child that another test is just starting has the lock of the instance for a moment.
        let open = || match Switch::open_for(&config, None) {
            Err(DatapathError::Busy { .. }) => None,
            opened => Some(opened.unwrap()),
        };
        let switch = front_end.run(|| Arc::new(wait_for("the lock of the instance", open))).unwrap();
        let (sender, receiver) = channel();
        let services = [self.vip(), self.vip_v6()].map(|vip| (vip, Transport::Tcp)).to_vec();
        sender.send(SwitchCommand::Services(services)).unwrap();
        sender.send(SwitchCommand::Backends(self.backends(&[]))).unwrap();
        let by = OwnCore::new(policy, BACKENDS.into()).unwrap();
        let running = SwitchLoop::new(Arc::clone(&switch), by, options).unwrap();
        let shown = Arc::new(Mutex::new(Shown::default()));
        let show = Arc::clone(&shown);
        let thread = std::thread::spawn(move || {
            let look = |running: &SwitchLoop<OwnCore>| {
                let book = running.book();
                *show.lock().unwrap() = Shown {
                    conns: book.len(),
                    opening: book.opening(),
                    prepared: book.prepared(),
                    counts: book.counts(),
                    loads: running.distributor().loads(),
                };
            };
            running.run(&receiver, look).unwrap();
        });
        let running = Running { switch, commands: Some(sender), shown, thread: Some(thread) };
        running.until("choices are there", |shown| shown.prepared > 0);
        running
    }

    /// Opens a connection from the client's node, and asks who answers.
    pub(crate) fn connect(&self, to: SocketAddr) -> Connection {
        let client = self.lab.node(Node::Client).unwrap();
        let stream = client.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut connection = Connection { stream, backend: 0 };
        connection.backend = connection.ask().expect("it is answered");
        connection
    }

    pub(crate) fn accepted(&self) -> Vec<usize> {
        self.accepted.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(format!("/sys/fs/bpf/plimsoll/{}", self.instance));
    }
}

/// Answers each byte with the number of the back-end, until the client ends.
fn serve(listener: &TcpListener, number: u8, count: &AtomicUsize) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        count.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || {
            let mut byte = [0];
            while matches!(stream.read(&mut byte), Ok(1)) && stream.write_all(&[number]).is_ok() {}
        });
    }
}

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) backend: u8,
}

impl Connection {
    /// Who answers.
    pub(crate) fn ask(&mut self) -> std::io::Result<u8> {
        let mut byte = [0];
        self.stream.write_all(&byte)?;
        self.stream.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}
