//! The server processes of a back-end: Apache 1.3 with its defaults.
//!
//! Once a second the parent counts idle processes. With too few it forks 1, then 2, 4 and so on, up to 32 at a time; with too many it
//! ends one (`perform_idle_server_maintenance` in Apache 1.3's `http_main.c`).

use std::collections::VecDeque;

use super::connections::{ConnectionId, NO_CONNECTION};
use super::params::ApacheParams;

/// What a server process is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessStage {
    /// Its place is free.
    Gone,
    /// Waits for a connection.
    Idle,
    /// Holds a connection whose request has not come, or no further one.
    Waits,
    /// Ready to begin a request.
    Begins,
    /// At the basic steps of a request whose document is not in memory.
    Looks,
    /// Waits for the disk.
    Reads,
    /// Answers: all of the work that is left.
    Answers,
    /// Its response does not fit into the send buffer.
    Blocked,
    /// Waits for another back-end, from which it fetches the answer.
    Fetches,
}

/// A server process.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerProcess {
    pub(super) stage: ProcessStage,
    pub(super) connection: ConnectionId,
    /// CPU time that is left when the first segment is out; [`NO_MARK`] when it is, or there is none.
    pub(super) mark: u64,
    /// Serves other back-ends, and counts in no limit: otherwise two that wait for each other's processes could wait forever.
    pub(super) helps: bool,
}

/// See [`ServerProcess::mark`].
pub(super) const NO_MARK: u64 = u64::MAX;

/// Which of the CPU's processes is the parent.
pub(super) const PARENT: u16 = 0;
/// The daemon that measures.
pub(super) const DAEMON: u16 = 1;
/// The first server process.
const FIRST: u16 = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ProcessPool {
    most: usize,
    spare: (usize, usize),
    most_forks: u32,
    processes: Vec<ServerProcess>,
    /// Places of those that have ended.
    gone: Vec<u16>,
    /// The one that has been idle longest is first, and gets the next connection.
    idle: VecDeque<u16>,
    /// Idle ones that serve other back-ends.
    helpers: Vec<u16>,
    /// How many of these there are.
    helper_count: usize,
    /// Processes to fork next time.
    rate: u32,
    /// Forks under way.
    pub(super) forking: u32,
}

impl ProcessPool {
    /// Without processes yet.
    pub(super) fn new(p: &ApacheParams) -> Self {
        Self {
            most: p.max_clients as usize,
            spare: (p.min_spare_servers as usize, p.max_spare_servers as usize),
            most_forks: p.most_forks,
            processes: Vec::new(),
            gone: Vec::new(),
            idle: VecDeque::new(),
            helpers: Vec::new(),
            helper_count: 0,
            rate: 1,
            forking: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, p: u16) -> &ServerProcess {
        &self.processes[usize::from(p - FIRST)]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, p: u16) -> &mut ServerProcess {
        &mut self.processes[usize::from(p - FIRST)]
    }

    /// A process that serves other back-ends, and whether it is new.
    pub(super) fn helper(&mut self) -> (u16, bool) {
        if let Some(p) = self.helpers.pop() {
            return (p, false);
        }
        let p = self.place();
        self.get_mut(p).helps = true;
        self.helper_count += 1;
        (p, true)
    }

    /// A new idle process.
    pub(super) fn add(&mut self) -> u16 {
        let p = self.place();
        self.idle.push_back(p);
        p
    }

    fn place(&mut self) -> u16 {
        let process = ServerProcess {
            stage: ProcessStage::Idle,
            connection: NO_CONNECTION,
            mark: NO_MARK,
            helps: false,
        };
        let p = self.gone.pop().unwrap_or_else(|| {
            self.processes.push(process);
            self.processes.len() as u16 - 1 + FIRST
        });
        *self.get_mut(p) = process;
        p
    }

    /// Gives a connection to an idle process, if there is one.
    #[inline]
    pub(super) fn take_idle(&mut self, connection: ConnectionId) -> Option<u16> {
        let p = self.idle.pop_front()?;
        let process = self.get_mut(p);
        (process.stage, process.connection) = (ProcessStage::Waits, connection);
        Some(p)
    }

    /// `p` is idle again.
    #[inline]
    pub(super) fn release(&mut self, p: u16) {
        let process = self.get_mut(p);
        (process.stage, process.connection) = (ProcessStage::Idle, NO_CONNECTION);
        let helps = process.helps;
        if helps {
            self.helpers.push(p);
        } else {
            self.idle.push_back(p);
        }
    }

    /// Processes that there are.
    pub(super) fn len(&self) -> usize {
        self.processes.len() - self.gone.len() - self.helper_count
    }

    /// Counts idle processes. Returns how many to fork. A parent that is still forking does nothing else.
    pub(super) fn maintain(&mut self) -> u32 {
        if self.forking > 0 {
            return 0;
        }
        let room = self.most.saturating_sub(self.len()) as u32;
        if self.idle.len() > self.spare.1 {
            if let Some(p) = self.idle.pop_back() {
                self.get_mut(p).stage = ProcessStage::Gone;
                self.gone.push(p);
            }
            self.rate = 1;
        } else if self.idle.len() < self.spare.0 && room > 0 {
            let forks = self.rate.min(room);
            self.rate = (self.rate * 2).min(self.most_forks);
            self.forking = forks;
            return forks;
        } else {
            self.rate = 1;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(params: &ApacheParams) -> ProcessPool {
        let mut pool = ProcessPool::new(params);
        (0..params.start_servers).for_each(|_| {
            pool.add();
        });
        pool
    }

    fn fork(pool: &mut ProcessPool) -> u32 {
        let forks = pool.maintain();
        for _ in 0..forks {
            pool.forking -= 1;
            pool.add();
        }
        forks
    }

    #[test]
    fn forks_double_until_there_are_enough() {
        let mut pool = pool(&ApacheParams::default());
        let mut forks = Vec::new();
        for second in 0..9 {
            // All idle ones get a connection.
            while pool.take_idle(second).is_some() {}
            forks.push(fork(&mut pool));
        }
        assert_eq!(forks, [1, 2, 4, 8, 16, 32, 32, 32, 18], "up to 150, with the 5 at the start");
        while pool.take_idle(0).is_some() {}
        assert_eq!((fork(&mut pool), pool.len()), (0, 150));
    }

    #[test]
    fn one_idle_process_ends_at_a_time() {
        let mut pool = pool(&ApacheParams { start_servers: 12, ..ApacheParams::default() });
        assert_eq!((fork(&mut pool), pool.len()), (0, 11));
        assert_eq!((fork(&mut pool), pool.len()), (0, 10));
        assert_eq!((fork(&mut pool), pool.len()), (0, 10), "10 may be idle");
        let held: Vec<u16> = (0..6).filter_map(|c| pool.take_idle(c)).collect();
        assert_eq!(fork(&mut pool), 1);
        held.iter().for_each(|&p| pool.release(p));
        assert_eq!((fork(&mut pool), pool.len()), (0, 10), "11 were idle");
        // Places are used again.
        let again = pool.add();
        assert!(pool.len() == 11 && again < FIRST + 12);
    }
}
