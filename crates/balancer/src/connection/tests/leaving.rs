//! What becomes of what is kept for a connection.

use super::*;

#[tokio::test]
async fn what_is_kept_for_a_connection_goes_when_it_ends_or_leaves() {
    let talk = async {
        let service = service::<OwnAnswers>(&under("round_robin"));
        for (ends, path) in (1..).zip(["/", "/leaves"]) {
            let (stream, mut client) = Memory::pair();
            let accepted = Rc::new(service.worker.accepted(([10, 0, 0, 9], 7).into(), None, &Arc::default()));
            service.serve(stream, Rc::clone(&accepted), Start::default(), None);
            client.write_all(get(path).as_bytes()).await.unwrap();
            drop(client.shutdown().await);
            while service.worker.open() > 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!((service.mechanism.ended.get(), accepted.over.get()), (ends, path == "/"));
        }
    };
    LocalSet::new().run_until(talk).await;
}
