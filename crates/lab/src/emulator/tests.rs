use std::time::Duration;

use super::*;
use crate::conditions::LinkDelay;

const MS: Duration = Duration::from_millis(1);
const MS_NS: u64 = 1_000_000;

/// A frame that leaves: its number, which is its content, and when.
type Left = (u32, u64);

/// Drives an emulator with `count` frames that come one each `gap_ns`, and has each leave exactly when it is due.
fn run(emulator: &mut Emulator, count: u32, gap_ns: u64) -> Vec<Left> {
    let mut out = Vec::new();
    for number in 0..count {
        let now_ns = u64::from(number) * gap_ns;
        drain(emulator, now_ns, &mut out);
        emulator.come(now_ns, &number.to_le_bytes());
    }
    drain(emulator, u64::MAX, &mut out);
    out
}

fn drain(emulator: &mut Emulator, until_ns: u64, out: &mut Vec<Left>) {
    while let Some(due_ns) = emulator.next_due_ns().filter(|due_ns| *due_ns <= until_ns) {
        assert!(due_ns == 0 || emulator.leave(due_ns - 1).is_none(), "a frame left early");
        let frame = emulator.leave(due_ns).unwrap();
        emulator.left(&frame, due_ns);
        out.push((u32::from_le_bytes(frame.bytes.try_into().unwrap()), due_ns));
    }
}

fn left(conditions: &Conditions, count: u32, gap_ns: u64) -> (Vec<Left>, DirectionStatistics) {
    let mut emulator = Emulator::new(conditions, 42);
    let out = run(&mut emulator, count, gap_ns);
    let statistics = emulator.statistics();
    let DirectionStatistics { frames, duplicated, delivered, lost, overflowed, .. } = statistics;
    assert_eq!(frames + duplicated, delivered + lost + overflowed);
    assert_eq!(delivered, out.len() as u64);
    (out, statistics)
}

fn is_in_order(out: &[Left]) -> bool {
    out.windows(2).all(|pair| pair[0].0 <= pair[1].0)
}

#[test]
fn without_conditions_frames_leave_at_once() {
    let (out, statistics) = left(&Conditions::default(), 1000, 10);
    assert!(out.iter().enumerate().all(|(i, left)| *left == (i as u32, i as u64 * 10)));
    assert_eq!((statistics.reordered, statistics.bytes), (0, 4000));
}

#[test]
fn a_fixed_delay() {
    let (out, statistics) = left(&Conditions::delayed(25 * MS), 1000, 1000);
    assert!(out.iter().enumerate().all(|(i, left)| *left == (i as u32, i as u64 * 1000 + 25 * MS_NS)));
    let error = statistics.delay.median.abs_diff(25 * MS);
    assert!(error < MS / 2 && statistics.lateness.longest.is_zero(), "{statistics:?}");
}

#[test]
fn frames_wait_for_those_before_unless_delays_are_independent() {
    let jittery = Conditions {
        delay: Some(LinkDelay::Uniform { mean: 10 * MS, jitter: 5 * MS }),
        ..Conditions::default()
    };
    let (out, statistics) = left(&jittery, 10_000, 100_000);
    assert!(is_in_order(&out) && statistics.reordered == 0);
    assert!(out.iter().all(|(number, at_ns)| at_ns - u64::from(*number) * 100_000 >= 5 * MS_NS));
    let (out, statistics) = left(&Conditions { independent: true, ..jittery }, 10_000, 100_000);
    assert!(!is_in_order(&out) && statistics.reordered > 1000, "{statistics:?}");
    let delays = out.iter().map(|(number, at_ns)| at_ns - u64::from(*number) * 100_000);
    assert!(delays.clone().all(|ns| (5 * MS_NS..=15 * MS_NS).contains(&ns)));
    let mean_ns = delays.sum::<u64>() / 10_000;
    assert!(mean_ns.abs_diff(10 * MS_NS) < MS_NS / 5, "{mean_ns}");
}

#[test]
fn a_shorter_delay_is_no_reason_to_overtake() {
    let mut emulator = Emulator::new(&Conditions::delayed(50 * MS), 1);
    emulator.come(0, &[0; 4]);
    emulator.set(&Conditions::default());
    emulator.come(MS_NS, &[1, 0, 0, 0]);
    let mut out = Vec::new();
    drain(&mut emulator, u64::MAX, &mut out);
    assert_eq!(out, [(0, 50 * MS_NS), (1, 50 * MS_NS)]);
}

#[test]
fn frames_that_leave_at_once_overtake() {
    let (out, statistics) =
        left(&Conditions { reorder: 0.02, ..Conditions::delayed(10 * MS) }, 100_000, 100_000);
    let early = out.iter().filter(|(number, at_ns)| *at_ns == u64::from(*number) * 100_000).count();
    assert!((1800..2200).contains(&early), "{early}");
    let delayed: Vec<Left> =
        out.into_iter().filter(|(number, at_ns)| *at_ns != u64::from(*number) * 100_000).collect();
    assert!(is_in_order(&delayed), "the others keep their order");
    // Each overtakes the hundred frames that are held.
    assert!(statistics.reordered > 80_000, "{statistics:?}");
}

#[test]
fn frames_that_leave_late_are_overtaken() {
    let late = Conditions { late: 0.02, late_by: 3 * MS, ..Conditions::delayed(10 * MS) };
    let (out, statistics) = left(&late, 100_000, 100_000);
    let of = |delay_ms: u64| {
        out.iter().filter(|(n, at_ns)| at_ns - u64::from(*n) * 100_000 == delay_ms * MS_NS).count() as u64
    };
    assert_eq!(of(10) + of(13), 100_000);
    assert!((1800..2200).contains(&of(13)), "{}", of(13));
    // The last ones may have nothing behind them.
    assert!(statistics.reordered <= of(13) && statistics.reordered + 3 >= of(13), "{statistics:?}");
}

#[test]
fn loss_and_duplication() {
    let (out, statistics) = left(&Conditions { loss: 0.05, ..Conditions::delayed(MS) }, 100_000, 1000);
    assert_eq!(out.len() as u64, 100_000 - statistics.lost);
    assert!((4700..5300).contains(&statistics.lost), "{statistics:?}");
    let (out, statistics) = left(&Conditions { duplicate: 0.05, ..Conditions::delayed(MS) }, 100_000, 1000);
    assert!((4700..5300).contains(&statistics.duplicated), "{statistics:?}");
    let twice = out.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    assert_eq!(twice, statistics.duplicated, "a copy follows at once");
    assert_eq!(statistics.reordered, 0);
}

#[test]
fn what_is_held_is_bounded() {
    // Ten frames come within the delay.
    let few = Conditions { most_held_frames: 4, ..Conditions::delayed(10 * MS) };
    let (out, statistics) = left(&few, 10, MS_NS);
    assert_eq!(out.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(statistics.overflowed, 6);
    // As many again, once there is room.
    let (out, _) = left(&few, 20, MS_NS);
    assert_eq!(out.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 10, 11, 12, 13]);
    let small = Conditions { most_held_bytes: 11, ..Conditions::delayed(10 * MS) };
    assert_eq!(left(&small, 10, MS_NS).1.overflowed, 8);
    let mut emulator = Emulator::new(&small, 1);
    emulator.come(0, &[0; 11]);
    emulator.come(0, &[0; 1]);
    let statistics = emulator.statistics();
    assert_eq!((statistics.held_frames, statistics.held_bytes, statistics.overflowed), (1, 11, 1));
}

#[test]
fn the_same_seed_gives_the_same_frames() {
    let harsh = Conditions {
        delay: Some(LinkDelay::Pareto { mean: 5 * MS, shape: 1.5, longest: 100 * MS }),
        independent: true,
        loss: 0.05,
        loss_burst: Some(3.0),
        reorder: 0.02,
        late: 0.02,
        late_by: MS,
        duplicate: 0.02,
        ..Conditions::default()
    };
    let with = |seed, conditions: &Conditions| run(&mut Emulator::new(conditions, seed), 20_000, 50_000);
    assert_eq!(with(5, &harsh), with(5, &harsh));
    assert_ne!(with(5, &harsh), with(6, &harsh));
    // Which frames are lost does not depend on the delay.
    let lost = |conditions: &Conditions| {
        let mut numbers: Vec<u32> = with(5, conditions).into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    assert_eq!(lost(&harsh), lost(&Conditions { delay: Some(LinkDelay::Fixed(MS)), ..harsh }));
}

#[test]
fn lateness_is_counted_from_when_a_frame_was_due() {
    let mut emulator = Emulator::new(&Conditions::delayed(10 * MS), 1);
    emulator.come(0, b"x");
    let frame = emulator.leave(12 * MS_NS).unwrap();
    emulator.left(&frame, 12 * MS_NS);
    let statistics = emulator.statistics();
    assert!(statistics.lateness.median.abs_diff(2 * MS) < MS / 20, "{statistics:?}");
    assert!(statistics.delay.longest.abs_diff(12 * MS) < MS / 5, "{statistics:?}");
    emulator.come(0, b"x");
    assert!(emulator.leave(u64::MAX).is_some());
    emulator.refused();
    assert_eq!(emulator.statistics().undeliverable, 1);
}
