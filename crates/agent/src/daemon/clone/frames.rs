//! Frames on a link between nodes, whichever side opened it.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_wire::codec::Message;
use plimsoll_wire::session::{FrameReader, FrameWriter};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::awake_time::AwakeTime;

/// The most queued bytes; a node that does not read them loses the link.
const MOST_QUEUED_BYTES: usize = 64 << 20;
/// How long what is not urgent may wait for something to go out with.
const LINGER: Duration = Duration::from_millis(1);
/// Looks at a link within the time for which it may be silent.
const LOOKS: u32 = 4;

/// What goes out on a link of this thread.
pub(in super::super) struct FrameSink {
    stream: Rc<TcpStream>,
    writer: RefCell<FrameWriter>,
    wake: Notify,
    lost: Cell<bool>,
    /// Whether the socket has not taken everything.
    is_blocked: Cell<bool>,
    /// When to look whether something that was not urgent is still here.
    lingers_until: Cell<Option<Instant>>,
}

impl FrameSink {
    pub(in super::super) fn new(stream: Rc<TcpStream>, writer: FrameWriter) -> Self {
        Self {
            stream,
            writer: RefCell::new(writer),
            wake: Notify::new(),
            lost: Cell::new(false),
            is_blocked: Cell::new(false),
            lingers_until: Cell::new(None),
        }
    }

    /// Whether nothing goes out any more.
    pub(in super::super) fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Sends a message, at once if the socket takes it. False when it cannot be sent.
    pub(in super::super) fn push<'m, M: Message<'m>>(&self, message: &M) -> bool {
        if !self.queue(message) {
            return false;
        }
        if !matches!(self.write(), Ok(false)) {
            // The link's own task goes on with it, or finds the error.
            self.wake.notify_one();
        }
        true
    }

    /// Has a message go out with the next one, or within [`LINGER`].
    pub(in super::super) fn push_later<'m, M: Message<'m>>(&self, message: &M) {
        if self.queue(message) && self.lingers_until.get().is_none() {
            self.lingers_until.set(Some(Instant::now() + LINGER));
            self.wake.notify_one();
        }
    }

    /// Adds a message to what is to go out. False when it cannot be sent.
    fn queue<'m, M: Message<'m>>(&self, message: &M) -> bool {
        if self.is_lost() {
            return false;
        }
        let queued = self.writer.borrow_mut().push(message);
        queued.inspect_err(|error| tracing::error!(%error, "a message could not be sent")).is_ok()
    }

    /// Writes what has waited long enough, or for the socket. Whether the socket did not take all of it.
    fn write_due(&self) -> io::Result<bool> {
        let is_over = self.lingers_until.get().is_some_and(|at| at <= Instant::now());
        if is_over {
            self.lingers_until.set(None);
        }
        if is_over || self.is_blocked.get() { self.write() } else { Ok(false) }
    }

    /// Whether bytes are left that the socket did not take.
    fn write(&self) -> io::Result<bool> {
        let left = self.write_until_blocked();
        self.is_blocked.set(!matches!(left, Ok(false)));
        left
    }

    fn write_until_blocked(&self) -> io::Result<bool> {
        let mut writer = self.writer.borrow_mut();
        loop {
            let bytes = writer.finish();
            if bytes.is_empty() {
                return Ok(false);
            }
            // Directly: the runtime would first wait for an event.
            match rustix::io::write(&*self.stream, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => writer.consume(count),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if writer.queued_bytes() > MOST_QUEUED_BYTES => {
                    return Err(io::Error::other("it does not read what it is sent"));
                }
                Err(rustix::io::Errno::AGAIN) => {
                    // Or waiting for room would end at once.
                    waits_for(&self.stream, Interest::WRITABLE);
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Why a link ended.
#[derive(Debug)]
pub(in super::super) enum FramesEnd {
    /// The other side, or what is between.
    Lost(String),
    /// What came is not authentic, or not understood.
    Broken(String),
}

impl From<io::Error> for FramesEnd {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Reads frames, and sends what is queued, until the link is lost, or the other side has been silent for `silence` of this thread's
/// [`AwakeTime`]. `take` gets the messages of each frame; `tick` is called several times within `silence`.
pub(in super::super) async fn run_frames(
    sink: &FrameSink,
    reader: FrameReader,
    silence: Duration,
    tick: impl FnMut(),
    take: impl FnMut(&[u8]) -> Result<(), String>,
) -> FramesEnd {
    let end = match until_lost(sink, reader, silence, tick, take).await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    sink.lost.set(true);
    end
}

/// The socket has nothing more, or takes nothing more: the next event says when that changes, and nobody need ask before.
fn waits_for(stream: &TcpStream, event: Interest) {
    let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
    let _ = stream.try_io(event, nothing);
}

async fn until_lost(
    sink: &FrameSink,
    mut reader: FrameReader,
    silence: Duration,
    mut tick: impl FnMut(),
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<std::convert::Infallible, FramesEnd> {
    let period = silence / LOOKS;
    let mut ticker = interval(period);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut linger = pin!(sleep_until(Instant::now()));
    let mut awake = AwakeTime::new(period, Instant::now());
    let mut heard_at = Duration::ZERO;
    let mut lingers_until = None;
    loop {
        while let Some(area) = reader.next_frame().map_err(|error| FramesEnd::Broken(error.to_string()))? {
            take(area).map_err(FramesEnd::Broken)?;
        }
        let left = sink.write_due()?;
        // Once for each wait: setting a timer in each turn would cost more.
        if lingers_until != sink.lingers_until.get() {
            lingers_until = sink.lingers_until.get();
            lingers_until.into_iter().for_each(|at| linger.as_mut().reset(at));
        }
        tokio::select! {
            biased;
            ready = sink.stream.readable() => {
                ready?;
                let space = reader.space();
                let room = space.len();
                match sink.stream.try_read(space) {
                    Ok(0) => return Err(FramesEnd::Lost("it was closed".to_owned())),
                    Ok(count) => {
                        reader.filled(count);
                        if count < room {
                            waits_for(&sink.stream, Interest::READABLE);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error.into()),
                }
                heard_at = awake.at(Instant::now());
            }
            () = sink.wake.notified() => {}
            _ = sink.stream.writable(), if left => {}
            () = linger.as_mut(), if lingers_until.is_some() => {}
            _ = ticker.tick() => {
                if awake.look(Instant::now()) - heard_at > silence {
                    return Err(FramesEnd::Lost(format!("nothing was heard for {silence:?}")));
                }
                tick();
            }
        }
    }
}
