//! The thread that passes the frames of a link from one end to the other, through an emulator for each direction.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use rustix::thread::{gettid, set_current_timer_slack};

use crate::commands;
use crate::conditions::Conditions;
use crate::cpus::pin;
use crate::emulator::{Emulator, HeldFrame};
use crate::error::LabError;
use crate::link_statistics::DirectionStatistics;

/// Frames that are read before due ones of the other direction get their turn.
const BATCH: usize = 16;
/// The largest frame, and a byte more.
const BUFFER_BYTES: usize = 65_536 + 18;

/// A thread that forwards frames between two TAP interfaces. It ends when this is dropped; the interfaces are gone then.
#[derive(Debug)]
pub(crate) struct LinkForwarder {
    orders: Option<Sender<ForwarderOrder>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is asked. It answers when it is done.
#[derive(Debug)]
enum ForwarderOrder {
    Set(Box<[Conditions; 2]>, Sender<()>),
    Count(Sender<[DirectionStatistics; 2]>),
}

/// One of the two directions.
#[derive(Debug)]
pub(crate) struct DirectionSetup {
    /// Where its frames come from. They leave at the other direction's.
    pub(crate) from: File,
    pub(crate) conditions: Conditions,
    pub(crate) seed: u64,
}

impl LinkForwarder {
    /// Starts to forward between the interfaces that `make` makes, on these CPUs or any.
    pub(crate) fn start(
        cpus: Option<Vec<usize>>,
        make: impl FnOnce() -> Result<[DirectionSetup; 2], LabError>,
    ) -> Result<Self, LabError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| LabError::system("make an event for a link's thread", errno))?;
        let wake = Arc::new(wake);
        let (orders, received) = channel();
        let (setup, set_up) = channel::<[DirectionSetup; 2]>();
        let (ready, is_ready) = channel();
        let wake_of_thread = Arc::clone(&wake);
        let work = move || {
            // All of this makes it more punctual; it works without. It takes some milliseconds, in which no frame waits yet.
            let _ = cpus.map(|cpus| pin(&cpus));
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            let _ = raise_priority();
            // Whoever started this waits.
            let _ = ready.send(());
            // Without interfaces there is nothing to do.
            if let Ok(setup) = set_up.recv() {
                Forwarding::new(setup, received, wake_of_thread).run();
            }
        };
        let thread = std::thread::Builder::new().name("link".to_owned()).spawn(work);
        let thread = thread.map_err(|e| LabError::system("start a thread", e))?;
        let forwarder = Self { orders: Some(orders), wake, thread: Some(thread) };
        // Neither this nor sending fails: the thread waits.
        let _ = is_ready.recv();
        match make() {
            Ok(made) => {
                let _ = setup.send(made);
                Ok(forwarder)
            }
            Err(error) => {
                // Otherwise the thread would wait for it, and the forwarder for the thread.
                drop(setup);
                Err(error)
            }
        }
    }

    /// Changes the conditions. They hold for frames that come after this.
    pub(crate) fn set(&self, conditions: [Conditions; 2]) -> Result<(), LabError> {
        self.ask(|answer| ForwarderOrder::Set(Box::new(conditions), answer))
    }

    pub(crate) fn statistics(&self) -> Result<[DirectionStatistics; 2], LabError> {
        self.ask(ForwarderOrder::Count)
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> ForwarderOrder) -> Result<T, LabError> {
        let (answer, answered) = channel();
        let gone = || LabError::Invalid("the interfaces of the link were removed".to_owned());
        self.orders.as_ref().and_then(|orders| orders.send(order(answer)).ok()).ok_or_else(gone)?;
        self.wake();
        answered.recv().map_err(|_| gone())
    }

    fn wake(&self) {
        // Fails only if it is awake.
        let _ = write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for LinkForwarder {
    fn drop(&mut self) {
        self.orders = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

/// Lets the calling thread run before all ordinary ones, as the kernel's own work for packets does.
fn raise_priority() -> Result<(), LabError> {
    let thread = gettid().as_raw_nonzero().to_string();
    commands::run(Command::new("chrt").args(["--fifo", "--pid", "1", &thread]), "").map(drop)
}

/// One end of the link, and what happens to the frames that come there.
struct LinkEnd {
    file: File,
    emulator: Emulator,
}

/// What the thread has.
struct Forwarding {
    ends: [LinkEnd; 2],
    orders: Receiver<ForwarderOrder>,
    wake: Arc<OwnedFd>,
    began: Instant,
    buffer: Vec<u8>,
}

impl Forwarding {
    fn new(setup: [DirectionSetup; 2], orders: Receiver<ForwarderOrder>, wake: Arc<OwnedFd>) -> Self {
        let ends = setup.map(|setup| {
            let emulator = Emulator::new(&setup.conditions, setup.seed);
            LinkEnd { file: setup.from, emulator }
        });
        Self { ends, orders, wake, began: Instant::now(), buffer: vec![0; BUFFER_BYTES] }
    }

    fn run(&mut self) {
        loop {
            let more = self.take_in(0) | self.take_in(1);
            self.send_due(0);
            self.send_due(1);
            match self.wait(more) {
                Ok(true) if !self.obey() => break,
                Ok(_) => {}
                Err(_) => return,
            }
        }
        // Nothing that was under way is lost.
        for end in [0, 1] {
            while let Some(frame) = self.ends[end].emulator.leave(u64::MAX) {
                self.send(end, &frame);
            }
        }
    }

    fn now_ns(&self) -> u64 {
        // Five centuries.
        self.began.elapsed().as_nanos() as u64
    }

    /// Reads some frames. Whether there may be more.
    fn take_in(&mut self, end: usize) -> bool {
        for _ in 0..BATCH {
            match (&self.ends[end].file).read(&mut self.buffer) {
                Ok(length) if length > 0 => {
                    let now_ns = self.now_ns();
                    self.ends[end].emulator.come(now_ns, &self.buffer[..length]);
                    self.send_due(end);
                }
                // An interface that is down, or gone, has no frames.
                Ok(_) => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn send_due(&mut self, end: usize) {
        while let Some(frame) = self.ends[end].emulator.leave(self.now_ns()) {
            self.send(end, &frame);
        }
    }

    fn send(&mut self, end: usize, frame: &HeldFrame) {
        let at_ns = self.now_ns();
        // The kernel takes a frame whole or not at all.
        match (&self.ends[1 - end].file).write(&frame.bytes) {
            Ok(length) if length == frame.bytes.len() => self.ends[end].emulator.left(frame, at_ns),
            Ok(_) | Err(_) => self.ends[end].emulator.refused(),
        }
    }

    /// Waits until frames or orders come, or the next frame is due. Whether there are orders; fails when the interfaces are
    /// gone.
    fn wait(&self, more: bool) -> Result<bool, Errno> {
        let due_ns = self.ends.iter().filter_map(|end| end.emulator.next_due_ns()).min();
        let wait_ns = if more { Some(0) } else { due_ns.map(|due_ns| due_ns.saturating_sub(self.now_ns())) };
        let timeout = wait_ns.map(|ns| Timespec {
            // Both fit: a wait is less than two minutes.
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let mut awaited = [
            PollFd::new(&self.ends[0].file, PollFlags::IN),
            PollFd::new(&self.ends[1].file, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        match poll(&mut awaited, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let came = awaited.each_ref().map(PollFd::revents);
        let is_gone = |flags: PollFlags| flags.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        if is_gone(came[0]) || is_gone(came[1]) {
            return Err(Errno::BADFD);
        }
        Ok(came[2].contains(PollFlags::IN))
    }

    /// Does what it is asked. False when it is to end.
    fn obey(&mut self) -> bool {
        // Fails only if another order has been read with this one.
        let _ = read(&self.wake, &mut [0; 8]);
        loop {
            match self.orders.try_recv() {
                Ok(ForwarderOrder::Set(conditions, answer)) => {
                    for (end, conditions) in self.ends.iter_mut().zip(conditions.iter()) {
                        end.emulator.set(conditions);
                    }
                    // Nobody has to wait for the answer.
                    let _ = answer.send(());
                }
                Ok(ForwarderOrder::Count(answer)) => {
                    let _ = answer.send(self.ends.each_ref().map(|end| end.emulator.statistics()));
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}
