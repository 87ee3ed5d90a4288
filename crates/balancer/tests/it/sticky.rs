//! Sticky sessions.

use std::collections::BTreeSet;

use plimsoll_testkit::eventually;

use super::admin::rig::Rig;
use super::common::origin::Origin;

/// An origin that says who it is.
fn named(name: &'static str) -> Origin {
    Origin::answering(move |_| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len()).into_bytes()
    })
}

/// Sends a GET with this cookie; who has answered, and the cookie that was set.
fn ask(rig: &Rig, cookie: Option<&str>) -> (String, Option<String>) {
    let mut client = rig.client();
    let field = cookie.map(|cookie| format!("Cookie: other=1; {cookie}\r\n")).unwrap_or_default();
    assert!(client.send(format!("GET /x HTTP/1.1\r\nHost: a\r\n{field}\r\n")));
    let answer = client.response("GET");
    assert_eq!(answer.status(), 200);
    let set = answer.one("set-cookie").map(|set| set.to_owned());
    (String::from_utf8(answer.body).unwrap(), set)
}

fn value(set: &str) -> String {
    set.split(';').next().unwrap().to_owned()
}

#[test]
fn sessions_stay_and_move_when_their_back_end_goes() {
    for policy in ["round_robin", "least_connections", "lard_r", "uri_hash"] {
        let origins = [named("b0"), named("b1"), named("b2")];
        let of_all: Vec<&Origin> = origins.iter().collect();
        let rig = Rig::new(&of_all, &format!("[policy]\nname = \"{policy}\"\n[sticky]\ncookie = \"sid\"\n"));
        let (first, set) = ask(&rig, None);
        let set = set.expect("a new session gets a cookie");
        assert!(set.starts_with("sid=") && set.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{set}");
        assert_eq!(value(&set).len(), "sid=".len() + 16, "the cookie names nobody: {set}");
        let cookie = value(&set);
        for _ in 0..20 {
            assert_eq!(ask(&rig, Some(&cookie)), (first.clone(), None), "{policy}");
        }
        // One that was made up is as none.
        assert!(ask(&rig, Some("sid=0123456789abcdef")).1.is_some());
        assert_eq!(rig.call("POST", &format!("/backends/{first}/drain"), &[], "").status, 200);
        let (second, set) = ask(&rig, Some(&cookie));
        assert_ne!(second, first, "{policy}");
        let cookie = value(&set.expect("it has another back-end now"));
        assert_eq!(ask(&rig, Some(&cookie)), (second, None), "{policy}");
        let policy_shown = rig.get("/policy").json();
        assert_eq!(policy_shown["name"], format!("sticky_{policy}"));
        assert!(policy_shown["stats"]["sessions_kept"].as_f64() >= Some(21.0), "{policy_shown}");
    }
}

/// What back-ends get of it is another matter.
#[test]
fn sessions_are_what_clients_say_where_a_route_changes_cookies() {
    for edit in ["remove Cookie", "set Cookie: sid=0123456789abcdef"] {
        let origins = [named("b0"), named("b1")];
        let of_all: Vec<&Origin> = origins.iter().collect();
        let tables = format!(
            "[policy]\nname = \"round_robin\"\n[sticky]\ncookie = \"sid\"\n[[route]]\npath = \"/x\"\nrequest_fields = [\"{edit}\"]\n"
        );
        let rig = Rig::new(&of_all, &tables);
        let (first, set) = ask(&rig, None);
        let cookie = value(&set.unwrap());
        for _ in 0..5 {
            assert_eq!(ask(&rig, Some(&cookie)), (first.clone(), None), "{edit}");
        }
    }
}

#[test]
fn a_drained_back_end_keeps_its_sessions_for_a_while() {
    let origins = [named("b0"), named("b1")];
    let of_all: Vec<&Origin> = origins.iter().collect();
    let tables = |drain: &str| format!("[policy]\nname = \"round_robin\"\n[sticky]\ndrain = \"{drain}\"\n");
    let rig = Rig::new(&of_all, &tables("1h"));
    let (first, set) = ask(&rig, None);
    let cookie = value(&set.unwrap());
    assert_eq!(rig.call("POST", &format!("/backends/{first}/drain"), &[], "").status, 200);
    let new: BTreeSet<String> = (0..10).map(|_| ask(&rig, None).0).collect();
    assert!(!new.contains(&first), "no new sessions");
    assert_eq!(ask(&rig, Some(&cookie)), (first.clone(), None));
    assert_eq!(rig.backend(&first)["drained"], true);
    assert_eq!(rig.call("POST", &format!("/backends/{first}/undrain"), &[], "").status, 200);
    eventually("new sessions there", || ask(&rig, None).0 == first);
    // After that time the session goes elsewhere.
    let of_one = [(&origins[0], ""), (&origins[1], "")];
    rig.reload(&super::admin::rig::text(&of_one, &tables("1ms")));
    assert_eq!(rig.call("POST", &format!("/backends/{first}/drain"), &[], "").status, 200);
    eventually("the end of the drain", || ask(&rig, Some(&cookie)).0 != first);
}
