//! Connecting to a back-end, which may not let everyone in at once.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};

use super::is_local;

/// When a further try to connect begins beside those before. Where a back-end's queue of connections is full, it drops what asks for one, and
/// the system asks again after a second; there may be a place much sooner.
const FURTHER_TRIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(300)];

/// A connection over TCP that sends small pieces at once.
pub(super) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = first_connected(|| TcpStream::connect(address)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The pauses before further tries to connect to a Unix socket whose queue of connections is full: the system does not wait for a place there,
/// nor tell of one. They double.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_millis(50);

/// A connection to a Unix socket, for which a place in its queue is waited for as long as the caller likes.
pub(crate) async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let mut pause = FIRST_PAUSE;
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            ended => return ended,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_PAUSE);
    }
}

/// What the first of up to three tries gives that ends. The others are dropped: they were not let in yet, or the back-end is far away, and
/// gets a reset for its answer. A further try for which this machine has no file or port left ends nothing.
async fn first_connected<T, F: Future<Output = io::Result<T>>>(try_once: impl Fn() -> F) -> io::Result<T> {
    let [second_after, third_after] = FURTHER_TRIES;
    let mut first = pin!(try_once());
    if let Ok(ended) = tokio::time::timeout(second_after, &mut first).await {
        return ended;
    }
    let try_further = async || match try_once().await {
        Err(error) if is_local(&error) => std::future::pending().await,
        ended => ended,
    };
    // In a box, which those that are let in at once do not need.
    Box::pin(async {
        let second = pin!(try_further());
        let third = pin!(async {
            tokio::time::sleep(third_after - second_after).await;
            try_further().await
        });
        tokio::select! {
            biased;
            ended = first => ended,
            ended = second => ended,
            ended = third => ended,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::Notify;

    use super::*;

    /// Which try ends first, and how many have begun: the one of this number lets itself in at once, others never.
    async fn let_in(number: usize) -> (usize, usize) {
        let begun = Cell::new(0);
        let ended = first_connected(|| {
            let this = begun.replace(begun.get() + 1);
            async move { if this == number { Ok(this) } else { std::future::pending().await } }
        });
        (ended.await.unwrap(), begun.get())
    }

    #[tokio::test]
    async fn it_is_tried_three_times() {
        assert_eq!(let_in(0).await, (0, 1));
        assert_eq!(let_in(1).await, (1, 2));
        assert_eq!(let_in(2).await, (2, 3));
    }

    #[tokio::test]
    async fn what_was_begun_before_goes_on() {
        let (begun, third) = (Cell::new(0), Notify::new());
        let ended = first_connected(|| {
            let this = begun.replace(begun.get() + 1);
            if this == 2 {
                third.notify_one();
            }
            let third = &third;
            async move {
                if this > 0 {
                    std::future::pending::<()>().await;
                }
                third.notified().await;
                Ok(this)
            }
        });
        assert_eq!((ended.await.unwrap(), begun.get()), (0, 3));
    }

    #[tokio::test]
    async fn what_this_machine_lacks_for_a_further_try_ends_nothing() {
        let begun = Cell::new(0);
        let third = Notify::new();
        let ended = first_connected(|| {
            let this = begun.replace(begun.get() + 1);
            let third = &third;
            async move {
                match this {
                    0 => third.notified().await,
                    1 => return Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error())),
                    _ => {
                        third.notify_one();
                        std::future::pending::<()>().await;
                    }
                }
                Ok(this)
            }
        });
        assert_eq!((ended.await.unwrap(), begun.get()), (0, 3));
    }

    #[tokio::test]
    async fn an_error_ends_all_tries() {
        let begun = Cell::new(0);
        let ended = first_connected(|| {
            let this = begun.replace(begun.get() + 1);
            async move {
                if this == 0 {
                    std::future::pending::<()>().await;
                }
                Err::<(), _>(io::ErrorKind::ConnectionRefused.into())
            }
        });
        assert_eq!(ended.await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
