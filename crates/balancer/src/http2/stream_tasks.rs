//! Tasks that serve streams, one after the other: making a task for each stream costs more than much of what is done for it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Tasks that wait for another stream; those beyond end. Each holds some 6 KB.
const MOST_IDLE: usize = 1024;

/// The tasks of a worker that wait for work of this kind.
pub(crate) struct StreamTasks<W> {
    idle: RefCell<Vec<Rc<Desk<W>>>>,
}

/// Where a task that waits finds its work.
struct Desk<W>(RefCell<Waiting<W>>);

enum Waiting<W> {
    For(Waker),
    Over(W),
    /// It does not wait, or has not looked yet.
    Nothing,
}

impl<W> Desk<W> {
    fn put(&self, work: W) {
        if let Waiting::For(waker) = self.0.replace(Waiting::Over(work)) {
            waker.wake();
        }
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<W> {
        let mut waiting = self.0.borrow_mut();
        if let Waiting::Over(work) = std::mem::replace(&mut *waiting, Waiting::Nothing) {
            return Poll::Ready(work);
        }
        *waiting = Waiting::For(cx.waker().clone());
        Poll::Pending
    }
}

impl<W: 'static> StreamTasks<W> {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { idle: RefCell::default() })
    }

    /// Has a task do this: one that waits, or a new one, which does it by `serve`, and later what else it is given.
    pub(crate) fn give(self: &Rc<Self>, work: W, serve: impl AsyncFn(W) + 'static) {
        let idle = self.idle.borrow_mut().pop();
        match idle {
            Some(desk) => desk.put(work),
            None => drop(tokio::task::spawn_local(Rc::clone(self).run(work, serve))),
        }
    }

    async fn run(self: Rc<Self>, mut work: W, serve: impl AsyncFn(W) + 'static) {
        let desk = Rc::new(Desk(RefCell::new(Waiting::Nothing)));
        loop {
            serve(work).await;
            {
                let mut idle = self.idle.borrow_mut();
                if idle.len() >= MOST_IDLE {
                    return;
                }
                idle.push(Rc::clone(&desk));
            }
            work = poll_fn(|cx| desk.poll_take(cx)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::{LocalSet, yield_now};

    use super::*;

    #[test]
    fn tasks_are_used_again_and_bounded() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let tasks = StreamTasks::new();
            let (done, made) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let most = MOST_IDLE + 10;
            for round in 1..=3 {
                for number in 0..most {
                    let (done, made) = (Rc::clone(&done), Rc::clone(&made));
                    let first = Cell::new(true);
                    tasks.give(number, async move |number| {
                        made.set(made.get() + usize::from(first.replace(false)));
                        yield_now().await;
                        done.set(done.get() + number);
                    });
                }
                while done.get() < round * most * (most - 1) / 2 {
                    yield_now().await;
                }
                yield_now().await;
                assert_eq!(tasks.idle.borrow().len(), MOST_IDLE);
                // The tasks beyond those that wait are made anew.
                assert_eq!(made.get(), most + (round - 1) * 10);
            }
        });
    }
}
