//! The CPU of a back-end: which process runs, and for how long.
//!
//! By default a process runs while it has credit. A process that becomes ready waits behind those that are ready already. When every
//! ready process has used its credit, each process of the back-end, asleep or not, gets half of what it has left and one slice. Work of
//! the kernel on behalf of packets delays whoever runs.

use std::collections::VecDeque;

use plimsoll_policy::{Nanos, Time};

use crate::models::processor_sharing::ProcessorSharing;

/// How the CPU chooses among processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discipline {
    /// By credits; who runs keeps the CPU.
    Credits,
    /// By credits; a process that wakes up with more of it takes the CPU.
    Preempting,
    /// First come first served.
    Fifo,
    /// All at once.
    Sharing,
}

impl Discipline {
    pub(super) fn of(number: u32) -> Self {
        [Self::Credits, Self::Preempting, Self::Fifo, Self::Sharing][number as usize % 4]
    }
}

#[derive(Debug, Clone, Copy)]
struct CpuTask {
    /// Credit left, as of `era`.
    credit: u64,
    era: u32,
    /// CPU time that it still needs.
    left: u64,
}

/// What the end of a slice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceEnd {
    /// The kernel took time away: it ends then.
    Later(Time),
    /// The process has used its credit.
    Spent(u16),
    /// The process has done its work.
    Done(u16),
}

/// See the module's documentation. Times are in nanoseconds.
#[derive(Debug)]
pub(super) struct CreditCpu {
    discipline: Discipline,
    slice: u64,
    switch: u64,
    tasks: Vec<CpuTask>,
    /// Ready, with credit.
    ready: VecDeque<u16>,
    /// Ready, without credit.
    spent: VecDeque<u16>,
    /// How often credits were raised.
    era: u32,
    running: Option<u16>,
    last: u16,
    begins: Time,
    span: u64,
    stolen: u64,
    /// The kernel works until then, where no process runs.
    kernel_until: Time,
    used: u64,
    used_before: u64,
    sharing: ProcessorSharing,
    /// Number of the slice under way. Ends of others are void.
    pub(super) turn: u32,
}

/// Raising a credit this often brings it as near to its limit as it gets.
const MOST_RAISES: u32 = 64;

impl CreditCpu {
    pub(super) fn new(discipline: Discipline, slice: Nanos, switch: u64) -> Self {
        Self {
            discipline,
            slice: slice.as_nanos(),
            switch,
            tasks: Vec::new(),
            ready: VecDeque::new(),
            spent: VecDeque::new(),
            era: 0,
            running: None,
            last: u16::MAX,
            begins: Time::ZERO,
            span: 0,
            stolen: 0,
            kernel_until: Time::ZERO,
            used: 0,
            used_before: 0,
            sharing: ProcessorSharing::default(),
            turn: 0,
        }
    }

    /// Process `p` is new: it has a slice of credit.
    pub(super) fn enlist(&mut self, p: u16) {
        let task = CpuTask { credit: self.slice, era: self.era, left: 0 };
        match self.tasks.get_mut(usize::from(p)) {
            Some(slot) => *slot = task,
            None => self.tasks.push(task),
        }
    }

    pub(super) fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// The credit of `p` now.
    fn credit(&mut self, p: u16) -> u64 {
        let task = &mut self.tasks[usize::from(p)];
        for _ in 0..(self.era - task.era).min(MOST_RAISES) {
            task.credit = task.credit / 2 + self.slice;
        }
        task.era = self.era;
        task.credit
    }

    /// The CPU time that `p` still needs.
    #[inline]
    pub(super) fn left(&self, p: u16) -> u64 {
        self.tasks[usize::from(p)].left
    }

    /// `p` needs this much CPU time.
    #[inline]
    pub(super) fn set_left(&mut self, p: u16, left: u64) {
        self.tasks[usize::from(p)].left = left;
    }

    /// `p` becomes ready at `now`.
    #[inline]
    pub(super) fn wake(&mut self, p: u16, now: Time) {
        match self.discipline {
            Discipline::Sharing => self.sharing.enter(u32::from(p), Nanos::new(self.left(p)), 0, now),
            Discipline::Fifo => self.ready.push_back(p),
            Discipline::Credits | Discipline::Preempting => {
                let has_credit = self.credit(p) > 0;
                let queue = if has_credit { &mut self.ready } else { &mut self.spent };
                queue.push_back(p);
            }
        }
        if self.discipline == Discipline::Preempting {
            self.preempt(p, now);
        }
    }

    fn preempt(&mut self, p: u16, now: Time) {
        let Some(runs) = self.running else { return };
        let done = self.done(now);
        if self.credit(p) <= self.credit(runs) - done {
            return;
        }
        self.charge(runs, done);
        self.running = None;
        self.turn = self.turn.wrapping_add(1);
        self.ready.pop_back();
        self.ready.push_front(runs);
        self.ready.push_front(p);
    }

    /// What of the slice under way is done at `now`.
    fn done(&self, now: Time) -> u64 {
        now.since(self.begins).as_nanos().saturating_sub(self.stolen).min(self.span)
    }

    fn charge(&mut self, p: u16, time: u64) {
        self.used += time;
        let task = &mut self.tasks[usize::from(p)];
        task.left -= time;
        if self.discipline != Discipline::Fifo {
            task.credit -= time;
        }
    }

    /// `p`, which has just had the CPU, goes on with other work.
    pub(super) fn goes_on(&mut self, p: u16, now: Time) {
        match self.discipline {
            Discipline::Sharing => self.wake(p, now),
            Discipline::Fifo => self.ready.push_front(p),
            Discipline::Credits | Discipline::Preempting if self.tasks[usize::from(p)].credit > 0 => {
                self.ready.push_front(p);
            }
            Discipline::Credits | Discipline::Preempting => self.spent.push_back(p),
        }
    }

    /// The process that runs next, if none runs now.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u16> {
        if self.running.is_some() {
            return None;
        }
        if self.ready.is_empty() && !self.spent.is_empty() {
            self.era += 1;
            std::mem::swap(&mut self.ready, &mut self.spent);
        }
        self.ready.pop_front()
    }

    /// `p` runs from `now` on. Returns when its slice ends.
    #[inline]
    pub(super) fn start(&mut self, p: u16, now: Time) -> Time {
        let left = self.left(p);
        self.span = if self.discipline == Discipline::Fifo { left } else { left.min(self.credit(p)) };
        self.begins = now.max(self.kernel_until);
        if self.switch > 0 && self.last != p {
            self.begins += Nanos::new(self.switch);
            self.used += self.switch;
        }
        (self.running, self.last, self.stolen) = (Some(p), p, 0);
        self.turn = self.turn.wrapping_add(1);
        self.begins + Nanos::new(self.span)
    }

    /// The kernel takes the CPU for `cost` at `now`. Returns when it is done.
    #[inline]
    pub(super) fn steal(&mut self, cost: u64, now: Time) -> Time {
        if self.discipline == Discipline::Sharing {
            self.sharing.enter(KERNEL, Nanos::new(cost), 0, now);
            self.used += cost;
            return now + Nanos::new(cost);
        }
        self.used += cost;
        if self.running.is_some() {
            self.stolen += cost;
            return now + Nanos::new(cost);
        }
        self.kernel_until = self.kernel_until.max(now) + Nanos::new(cost);
        self.kernel_until
    }

    /// The slice under way is due at `now`.
    #[inline]
    pub(super) fn due(&mut self, now: Time) -> Option<SliceEnd> {
        let p = self.running?;
        let ends = self.begins + Nanos::new(self.span + self.stolen);
        if ends > now {
            return Some(SliceEnd::Later(ends));
        }
        self.charge(p, self.span);
        self.running = None;
        if self.left(p) == 0 {
            return Some(SliceEnd::Done(p));
        }
        self.spent.push_back(p);
        Some(SliceEnd::Spent(p))
    }

    /// With processor sharing: the process that has done its work at `now`.
    pub(super) fn shared_done(&mut self, now: Time) -> Option<u16> {
        loop {
            let (job, _) = self.sharing.complete(now)?;
            if job != KERNEL {
                let p = job as u16;
                self.used += self.left(p);
                self.set_left(p, 0);
                return Some(p);
            }
        }
    }

    /// With processor sharing: when the next process has done its work, if none comes before.
    pub(super) fn shared_due(&self) -> Option<Time> {
        self.sharing.due()
    }

    /// CPU time used up to `now`.
    pub(super) fn used(&self, now: Time) -> Nanos {
        let under_way = if self.running.is_some() { self.done(now) } else { 0 };
        Nanos::new(self.used + under_way - self.used_before)
    }

    /// Starts the count of used time again.
    pub(super) fn restart_usage(&mut self, now: Time) {
        self.used_before = self.used + if self.running.is_some() { self.done(now) } else { 0 };
    }

    /// All processes are gone, and what the kernel did.
    pub(super) fn stop(&mut self, now: Time) {
        if self.running.take().is_some() {
            self.used += self.done(now);
        }
        self.ready.clear();
        self.spent.clear();
        self.tasks.clear();
        self.sharing.clear();
        (self.kernel_until, self.last) = (now, u16::MAX);
        self.turn = self.turn.wrapping_add(1);
    }
}

/// Stands for the kernel where the CPU is shared.
const KERNEL: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    fn cpu(discipline: Discipline, lefts_ms: &[u64]) -> CreditCpu {
        let mut cpu = CreditCpu::new(discipline, Nanos::from_millis(100), 0);
        for (p, left) in lefts_ms.iter().enumerate() {
            cpu.enlist(p as u16);
            cpu.set_left(p as u16, left * 1_000_000);
            cpu.wake(p as u16, Time::ZERO);
        }
        cpu
    }

    /// Runs until nothing is ready: (process, ms at which it was done).
    fn run(cpu: &mut CreditCpu) -> Vec<(u16, u64)> {
        let (mut now, mut done) = (Time::ZERO, Vec::new());
        while let Some(p) = cpu.next() {
            now = cpu.start(p, now);
            if let Some(SliceEnd::Done(p)) = cpu.due(now) {
                done.push((p, now.as_nanos() / 1_000_000));
            }
        }
        done
    }

    #[test]
    fn a_process_that_has_used_its_credit_waits_until_all_have() {
        // 0 runs 100 of its 250 ms, then 1 its 30 and 2 its 100. All are spent: 0 gets 100 more, 2 has 100 of its 20 left.
        let mut cpu = cpu(Discipline::Credits, &[250, 30, 120]);
        assert_eq!(run(&mut cpu), [(1, 130), (2, 350), (0, 400)]);
        assert_eq!(cpu.used(at_ms(400)), Nanos::from_millis(400));
    }

    #[test]
    fn credit_is_halved_and_raised_by_a_slice() {
        let mut cpu = cpu(Discipline::Credits, &[150, 30]);
        run(&mut cpu);
        // Credits were raised once: 1 had 70 ms left, 0 none; 0 has used 50 of its new 100.
        assert_eq!((cpu.credit(0), cpu.credit(1)), (50_000_000, 135_000_000));
        // One that sleeps long has two slices at most.
        cpu.era += 1_000;
        assert_eq!(cpu.credit(1), 199_999_999);
    }

    #[test]
    fn first_come_first_served_knows_no_credit() {
        assert_eq!(run(&mut cpu(Discipline::Fifo, &[250, 30, 120])), [(0, 250), (1, 280), (2, 400)]);
    }

    #[test]
    fn the_kernel_delays_who_runs_and_who_begins() {
        let mut cpu = cpu(Discipline::Credits, &[10]);
        assert_eq!(cpu.steal(2_000_000, at_ms(0)), at_ms(2));
        let p = cpu.next().unwrap();
        assert_eq!(cpu.start(p, at_ms(1)), at_ms(12));
        cpu.steal(3_000_000, at_ms(5));
        assert_eq!(cpu.due(at_ms(12)), Some(SliceEnd::Later(at_ms(15))));
        assert_eq!(cpu.due(at_ms(15)), Some(SliceEnd::Done(0)));
        assert_eq!(cpu.used(at_ms(15)), Nanos::from_millis(15));
    }

    #[test]
    fn more_credit_takes_the_cpu_at_a_wake_up() {
        let mut cpu = cpu(Discipline::Preempting, &[80, 0]);
        let (first, second) = (cpu.next().unwrap(), cpu.next());
        assert_eq!((first, second), (0, Some(1)));
        cpu.start(0, Time::ZERO);
        cpu.set_left(1, 10_000_000);
        cpu.wake(1, at_ms(30));
        // 100 ms of credit against 70.
        assert_eq!(cpu.next(), Some(1));
        assert_eq!(cpu.start(1, at_ms(30)), at_ms(40));
        assert_eq!(cpu.due(at_ms(40)), Some(SliceEnd::Done(1)));
        assert_eq!(cpu.next(), Some(0));
        assert_eq!(cpu.start(0, at_ms(40)), at_ms(90));
    }

    #[test]
    fn a_switch_costs_its_time_where_another_process_ran_before() {
        let mut cpu = CreditCpu::new(Discipline::Credits, Nanos::from_millis(100), 1_000_000);
        cpu.enlist(0);
        for (now, ends) in [(0, 11), (20, 30)] {
            cpu.set_left(0, 10_000_000);
            cpu.wake(0, at_ms(now));
            let p = cpu.next().unwrap();
            assert_eq!(cpu.start(p, at_ms(now)), at_ms(ends));
            assert_eq!(cpu.due(at_ms(ends)), Some(SliceEnd::Done(0)));
        }
    }
}
