//! Ten reloads while clients ask 1,000 times a second.

use std::time::Duration;

use plimsoll_testbed::load::{OpenLoop, Req, open_loop};
use plimsoll_testkit::{Why, pace};

use super::processes::{FrontEnd, Origin, assert_replays, config, run};

#[test]
fn ten_reloads_lose_nothing_and_close_no_idle_connection() {
    let origins: Vec<Origin> = (0..4).map(|i| Origin::start(&format!("b{i}"), &[])).collect();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let log = "[decision_log]\ndirectory = \"log\"\n";
    let mut front_end = FrontEnd::start(&addresses, log);
    let extra = addresses[0].port();
    let changes = [
        format!("{log}[policy]\nname = \"lard_r\"\n"),
        format!("{log}[policy]\nname = \"lard_r\"\nt_low = 10\n[access_log]\nfile = \"access.log\"\n"),
        format!("{log}[timeouts]\nfirst_byte = \"20s\"\n[limits]\nconnections = 500\n"),
        format!("{log}[shadow]\npolicy = \"lard\"\ncache = \"1MiB\"\n"),
        log.to_owned(),
    ];
    let load = OpenLoop {
        rate_rps: 1000.0,
        seconds: 8.0,
        connections: 64,
        ..OpenLoop::new(front_end.address, |n| Req::get(format!("/{}", n % 500)))
    };
    let (file, pid) = (front_end.file.clone(), front_end.process.pid().to_string());
    let heard = front_end.process.heard();
    let thread = std::thread::spawn(move || {
        for number in 0..10 {
            pace(Duration::from_millis(500), Why::UnderLoad);
            // Back-ends come and go as well: three, then four again, one of them under another name.
            let these = if number % 2 == 0 { &addresses[..3] } else { &addresses[..] };
            let mut text = config(these, &changes[number % changes.len()]);
            if number % 2 == 0 {
                text += &format!(
                    "[[backend]]\nname = \"other\"\naddress = \"localhost:{extra}\"\nweight = 0.5\n"
                );
            }
            std::fs::write(&file, text).unwrap();
            assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
            heard.wait_for(" again", number);
        }
        pace(Duration::from_millis(500), Why::UnderLoad);
        // What is wrong leaves the running configuration in force.
        std::fs::write(&file, "nonsense = 1\n").unwrap();
        assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    });
    let summary = run(open_loop(load));
    thread.join().unwrap();
    assert_eq!(summary.requests, 8_000);
    assert_eq!(summary.succeeded, 8_000, "{:?} {:?}", summary.failures, summary.statuses);
    assert_eq!(summary.reconnected, 0, "an idle connection was closed without notice");
    let line = front_end.process.wait_for("stays in force", 0);
    assert!(line.contains("running configuration"), "{line}");
    front_end.stop();
    assert_replays(&front_end.path("log"));
}
