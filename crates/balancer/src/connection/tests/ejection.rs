//! Requests on trial, through connections in memory. No thread looks after what is ejected here.

use super::*;

/// One failure ejects, one answer readmits, and trials begin at once.
const AT_ONCE: &str =
    "[policy]\nname = \"round_robin\"\n[ejection]\nfailures = 1\ntime = \"1ns\"\ntrials = 1\n";

/// Ejects `a`.
fn eject(shared: &FrontEndShared) {
    let now = Instant::now();
    shared.attempt_failed(&shared.nth(0), now, now);
    assert!(shared.nth(0).is_ejected());
}

async fn with_a_ejected(tables: &str, sent: &str) -> Served<OwnAnswers> {
    from_start(tables, sent, |shared| {
        eject(shared);
        Start::default()
    })
    .await
}

/// A connection of which the test is the client.
fn connect<M: Mechanism<System = ()>>(service: &Rc<ConnectionService<M>>) -> DuplexStream {
    let (stream, client) = Memory::pair();
    let accepted = service.worker.accepted(([10, 0, 0, 9], 7).into(), None, &Arc::default());
    service.serve(stream, Rc::new(accepted), Start::default(), None);
    client
}

/// Reads until this has come.
async fn read_until(client: &mut DuplexStream, end: &str) {
    let mut got = Vec::new();
    while !got.ends_with(end.as_bytes()) {
        got.push(client.read_u8().await.unwrap());
    }
}

#[tokio::test]
async fn whatever_fails_a_trial_another_back_end_answers() {
    for path in ["/bad-on-trial", "/long-on-trial", "/slow-on-trial", "/lost-once"] {
        let served = with_a_ejected(AT_ONCE, &get(path)).await;
        assert_eq!(served.service.mechanism.trials.get(), 1, "{path}");
        assert_eq!(served.counts(), ([0, 1, 0, 0, 0], 1), "{path}: {}", served.received);
        assert!(served.service.worker.shared.nth(0).is_ejected());
    }
}

#[tokio::test]
async fn only_what_another_back_end_could_answer_is_a_trial() {
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    let trials = async |tables: &str, sent: &str| {
        let served = with_a_ejected(tables, sent).await;
        assert_eq!(served.counts().0[1], 3, "{}", served.received);
        served.service.mechanism.trials.get()
    };
    assert_eq!(trials(AT_ONCE, &post.repeat(3)).await, 0);
    assert_eq!(trials(AT_ONCE, &[post, &get("/"), &get("/")].concat()).await, 1);
    let once = format!("{AT_ONCE}[limits]\nretries = 0\n");
    assert_eq!(trials(&once, &get("/").repeat(3)).await, 0);
}

#[tokio::test]
async fn a_trial_ends_with_the_head_of_the_answer() {
    let local = LocalSet::new();
    let run = local.run_until(async {
        let service = service::<Proxy<Memory>>(AT_ONCE);
        let shared = &service.worker.shared;
        eject(shared);
        let mut client = connect(&service);
        client.write_all(get("/never-ends").as_bytes()).await.unwrap();
        read_until(&mut client, "begun").await;
        assert!(!shared.nth(0).is_ejected());
        assert_eq!(
            shared.dispatch.first().inspect(|i| i.view.load(BackendId(0))),
            1,
            "the client still reads"
        );
    });
    run.await;
}

#[tokio::test]
async fn a_trial_has_a_connection_of_its_own() {
    let local = LocalSet::new();
    let run = local.run_until(async {
        let service = service::<Proxy<Memory>>(AT_ONCE);
        let shared = &service.worker.shared;
        let mut client = connect(&service);
        let opened = || shared.nth(0).counts[0].connections.get();
        // Each back-end has an idle connection then, and the second round needs no other one.
        for n in 0..6 {
            client.write_all(get(&format!("/{n}")).as_bytes()).await.unwrap();
            read_until(&mut client, &format!("\r\n\r\n/{n}")).await;
        }
        assert_eq!(opened(), 1);
        eject(shared);
        client.write_all(get("/trial").as_bytes()).await.unwrap();
        read_until(&mut client, "/trial").await;
        assert_eq!((opened(), shared.nth(0).is_ejected()), (2, false));
    });
    run.await;
}

#[tokio::test]
async fn a_back_end_that_hangs_costs_a_trial_little() {
    let local = LocalSet::new();
    let run = local.run_until(async {
        // Without a bound of its own, the trial would last longer than any test.
        let service = service::<Proxy<Memory>>(&format!("{AT_ONCE}[timeouts]\nfirst_byte = \"1h\"\n"));
        eject(&service.worker.shared);
        let deadlines = tokio::task::spawn_local(Rc::clone(&service.worker).housekeeping(|| {}));
        let mut client = connect(&service);
        client.write_all(get("/hangs-at-a").as_bytes()).await.unwrap();
        tokio::time::timeout(plimsoll_testkit::PATIENCE, read_until(&mut client, "\r\n\r\n/hangs-at-a"))
            .await
            .unwrap();
        assert_eq!(service.worker.shared.nth(0).counts[0].attempts_failed.get(), 1);
        assert!(service.worker.shared.nth(0).is_ejected());
        deadlines.abort();
    });
    run.await;
}
