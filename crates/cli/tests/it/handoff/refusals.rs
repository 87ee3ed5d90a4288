//! What would not work is not begun.

use plimsoll_testkit::{PATIENCE, eventually};

use super::bed::{Bed, Options};
use super::http::Client;

#[test]
fn a_second_agent_with_the_same_virtual_address() {
    let mut bed = Bed::new(Options { backends: 1, ..Options::default() }, &[]);
    let vip = bed.vip();
    let get = |bed: &Bed| bed.client(|| Client::connect(vip).and_then(|mut client| client.get("/")));
    let refused = |bed: &Bed| {
        let log = bed.directory.path().join("second.log");
        let mut command = bed.agent_command(0, "second", 7401);
        command.stderr(std::fs::File::create(&log).unwrap());
        let mut second = plimsoll_lab::Process::start(&mut command).unwrap();
        let status = second.wait_within(PATIENCE).expect("it does not start");
        let said = std::fs::read_to_string(&log).unwrap();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("10.77.0.100") && said.contains("\"b0\" at eth0"), "{said}");
        said
    };
    assert!(refused(&bed).contains("stop that one"));
    assert_eq!(get(&bed).unwrap().backend(), "b0");
    // What is left of a killed one is in the way as well, and goes with one of its name.
    bed.kill_agent(0);
    assert!(refused(&bed).contains("start the agent with the name b0"));
    bed.start_agent(0);
    bed.wait_for_links(1);
    eventually("answers", || get(&bed).is_ok_and(|answer| answer.backend() == "b0"));
    bed.assert_quiet();
    bed.stop();
}
