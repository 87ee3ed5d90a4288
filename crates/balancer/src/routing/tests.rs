use super::*;
use crate::shared::FrontEndShared;

/// Routes, each as its keys, and what takes the rest.
fn routing(routes: &[&str], top: &str) -> Routing {
    let routes: String =
        routes.iter().enumerate().map(|(i, keys)| format!("[[route]]\nname = \"r{i}\"\n{keys}\n")).collect();
    let text = format!(
        "{top}[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n{routes}"
    );
    let config = Config::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{text}\n{e}"));
    let shared = FrontEndShared::before_three("");
    Routing::of(&config, &shared.pools(), None).unwrap()
}

/// The number of the route; `None` where no route takes it.
fn taken(routing: &Routing, host: &str, path: &str, fields: &[(&str, &str)]) -> Option<u32> {
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
    let (index, _) = routing.find(host.as_bytes(), path.as_bytes(), &fields).unwrap();
    (index < routing.configs.len() as u32).then_some(index)
}

#[test]
fn hosts_come_first_then_paths_then_fields() {
    let routing = routing(
        &[
            "path = \"/a\"",
            "host = \"*.example.com\"",
            "host = \"*.b.example.com\"",
            "host = \"www.example.com\"\npath = \"/a/b\"",
            "host = \"www.example.com\"\npath = \"/a/b\"\nheader = [\"x-beta\"]",
            "host = \"www.example.com\"\npath = \"/a/b\"\nheader = [\"x-beta: yes\"]",
            "host = \"www.example.com\"\npath = \"/a/b\"\nheader = [\"x-beta\", \"x-other\"]",
        ],
        "",
    );
    let of = |host, path, fields: &[(&str, &str)]| taken(&routing, host, path, fields);
    assert_eq!(of("www.example.com", "/a/b/c", &[]), Some(3));
    assert_eq!(of("WWW.Example.com.:8080", "/a/b?x", &[]), Some(3));
    assert_eq!(of("www.example.com", "/a/b", &[("X-Beta", "no")]), Some(4));
    assert_eq!(of("www.example.com", "/a/b", &[("x-beta", "yes")]), Some(5));
    assert_eq!(of("www.example.com", "/a/b", &[("x-beta", "yes"), ("x-other", "")]), Some(6));
    assert_eq!(
        of("www.example.com", "/a/bc", &[]),
        Some(1),
        "not within a segment: a less specific host takes it"
    );
    assert_eq!(of("x.b.example.com", "/a", &[]), Some(2), "the longest parent");
    assert_eq!(of("y.x.example.com", "/a", &[]), Some(1));
    assert_eq!(of("example.com", "/a", &[]), Some(0), "the parent is not below itself");
    assert_eq!(of("", "/a/", &[]), Some(0));
    assert_eq!(of("other", "/A", &[]), None, "paths are told apart by case");
    assert_eq!(of("other", "/", &[]), None);
}

#[test]
fn spellings_of_a_path_are_one_or_are_refused() {
    let routing = routing(&["path = \"/admin\"", "path = \"/api\""], "");
    for path in ["/admin", "/admin/", "//admin", "/%61dmin/x", "/adm%69n?a", "/admin/a%2Fb", "/admin//x"] {
        assert_eq!(taken(&routing, "h", path, &[]), Some(0), "{path}");
    }
    assert_eq!(taken(&routing, "h", "/api/v4/projects/group%2Fname", &[]), Some(1));
    assert_eq!(taken(&routing, "h", "/page;jsessionid=1", &[]), None);
    for path in [
        "/api/../admin",
        "/api/%2e%2e/admin",
        "/api/..;/admin",
        "/api%2f..%2fadmin",
        "/admin;x",
        "/admin;x/y",
        "/admin%2Fx",
        "/admin%5Cx",
        "/\\admin",
        "/;/admin",
    ] {
        assert_eq!(routing.find(b"h", path.as_bytes(), &[]).err().map(|e| e.status), Some(400), "{path}");
    }
}

#[test]
fn what_no_route_takes_can_be_refused() {
    let routing =
        routing(&["path = \"/a\"\nanswer = 410", "path = \"/b\"\nbody = 5"], "unmatched = \"404\"\n");
    let answer = |path: &str| routing.find(b"h", path.as_bytes(), &[]).unwrap().1.answer.map(|a| a.status);
    assert_eq!((answer("/a"), answer("/b"), answer("/c")), (Some(410), None, Some(404)));
    assert_eq!(routing.routed(1).config.limits.body_bytes, Some(5));
    routing.count(1);
    routing.count(2);
    assert_eq!(routing.counts(), [("r0", 0), ("r1", 1), ("", 1)]);
}

#[test]
fn many_routes_are_not_looked_at_one_by_one() {
    let routes: Vec<String> =
        (0..3000).map(|n| format!("host = \"h{n}.example\"\npath = \"/p{n}/x\"")).collect();
    let routing = routing(&routes.iter().map(String::as_str).collect::<Vec<_>>(), "");
    assert_eq!(taken(&routing, "h2999.example", "/p2999/x/y", &[]), Some(2999));
    let long = format!("/{}", "a/".repeat(5000));
    assert_eq!(taken(&routing, "h7.example", &long, &[]), None);
    assert_eq!(routing.any.routes.len(), 0);
}

#[test]
fn counts_go_on_after_a_reload() {
    let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
                [[route]]\nname = \"a\"\npath = \"/a\"\n";
    let of = |more: &str, earlier: Option<&Routing>| {
        let config = Config::parse(&format!("{text}{more}"), "test.toml").unwrap();
        Routing::of(&config, &FrontEndShared::before_three("").pools(), earlier).unwrap()
    };
    let first = of("", None);
    first.count(0);
    first.count(1);
    let second = of("[[route]]\nname = \"b\"\npath = \"/b\"\n", Some(&first));
    second.count(1);
    assert_eq!(second.counts(), [("a", 1), ("b", 1), ("", 1)]);
}
