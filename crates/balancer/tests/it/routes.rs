//! Routes and pools: which back-end gets a request, as what, and what becomes of both on reload.

use std::time::Duration;

use plimsoll_decisions::{LogReader, replay};
use plimsoll_testkit::{Why, eventually, pace};
use serde_json::Value;

use super::admin::rig::Rig;
use super::common::origin::{Conn, Origin};
use super::common::strict::Message;
use super::common::{Client, FrontEnd};

/// A request with these fields, and its answer.
fn ask(client: &mut Client, method: &str, host: &str, target: &str, more: &str) -> Message {
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"));
    client.response(method)
}

/// An origin that says which one it is.
fn called(name: &'static str) -> Origin {
    Origin::answering(move |_| {
        format!("HTTP/1.1 200 OK\r\nServer: {name}\r\nX-Inner: 1\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
}

/// Back-ends in these pools, called as they are.
fn backends(pools: &[(&str, &Origin)]) -> String {
    let one = |(pool, origin): &(&str, &Origin)| {
        format!("[[backend]]\nname = \"in-{pool}\"\naddress = \"{}\"\npool = \"{pool}\"\n", origin.address)
    };
    let names = pools.iter().map(|(pool, _)| *pool).filter(|pool| *pool != "default");
    let pools: String = pools.iter().map(one).collect();
    let named: String = names.map(|name| format!("[[pool]]\nname = \"{name}\"\n")).collect();
    named + &pools
}

const ROUTES: &str = "[[route]]\nname = \"api\"\npath = \"/api\"\npool = \"api\"\nreplace_prefix = \"/v1\"\n\
     request_fields = [\"set X-Tenant: blue\", \"remove Cookie\", \"add Accept: text/plain\"]\n\
     response_fields = [\"remove X-Inner\", \"set Server: front\", \"add Vary: Accept\"]\nbody = 10\n\
     [[route]]\nhost = \"*.img.example\"\npool = \"img\"\n\
     [[route]]\npath = \"/gone\"\nanswer = 410\n";

#[test]
fn each_request_goes_to_its_pool_and_both_are_changed_as_the_route_says() {
    let (web, api, img) = (called("web"), called("api"), called("img"));
    let pools = backends(&[("default", &web), ("api", &api), ("img", &img)]);
    let front_end = FrontEnd::from_text(&format!("{pools}{ROUTES}"));
    // On one connection, so that each request has the configuration of its own route.
    let mut client = front_end.client();
    let server = |answer: &Message| answer.one("server").unwrap_or_default().to_owned();
    assert_eq!(server(&ask(&mut client, "GET", "a", "/", "")), "web");
    let fields = "Cookie: a=b\r\nx-tenant: red\r\nAccept: */*\r\n";
    let answer = ask(&mut client, "GET", "a", "/api/x?y=/api", fields);
    assert_eq!(
        (server(&answer), answer.one("x-inner"), answer.one("vary")),
        ("front".to_owned(), None, Some("Accept"))
    );
    let got = api.take().remove(0);
    assert_eq!((got.target(), got.all("x-tenant"), got.one("cookie")), ("/v1/x?y=/api", vec!["blue"], None));
    assert_eq!(got.all("accept"), ["*/*", "text/plain"]);
    ask(&mut client, "GET", "a", "//%61pi", "");
    assert_eq!(api.take_lines(), ["GET /v1"]);
    assert_eq!(server(&ask(&mut client, "GET", "B.img.example:80", "/api2", "")), "img");
    assert_eq!(ask(&mut client, "GET", "a", "/gone/x", "").status(), 410);
    assert_eq!(server(&ask(&mut client, "GET", "a", "/apis", "")), "web");
    assert_eq!(web.take_lines(), ["GET /", "GET /apis"]);
    assert_eq!(img.take_lines(), ["GET /api2"]);
    let body = "Content-Length: 11\r\n";
    assert_eq!(ask(&mut client, "POST", "a", "/api/up", body).status(), 413);
    assert_eq!((api.take_lines(), web.connections(), api.connections()), (vec![], 1, 1));
}

#[test]
fn no_spelling_circumvents_what_a_route_says() {
    let web = called("web");
    let front_end = FrontEnd::from_text(&format!(
        "{}[[route]]\npath = \"/\"\nreplace_prefix = \"/x\"\n\
         request_fields = [\"set X-Tenant: blue\", \"remove X_Gone\", \"add X-More: 1\"]\n",
        backends(&[("default", &web)])
    ));
    let mut client = front_end.client();
    for target in ["/", "/?q", "http://a/", "http://a", "http://a?q"] {
        ask(&mut client, "GET", "a", target, "");
    }
    ask(&mut client, "OPTIONS", "a", "http://a?q", "");
    let got = ["GET /x/", "GET /x/?q", "GET /x/", "GET /x/", "GET /x/?q", "OPTIONS /x/?q"];
    assert_eq!(web.take_lines(), got);
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nX_Tenant: red\r\nx-gone: 1\r\nX.Gone: 1\r\nX_More: 2\r\nTransfer-Encoding: chunked\r\n\r\n\
         1\r\na\r\n0\r\nX-Tenant: red\r\nx_tenant: red\r\nX_Gone: 1\r\nX~Gone: 1\r\nX-Sum: 7\r\n\r\n",
    );
    assert_eq!(client.response("POST").status(), 200);
    let got = web.take().remove(0);
    let all = |name: &str| got.all(name);
    assert_eq!(
        [all("x-tenant"), all("x_tenant"), all("x-gone"), all("x.gone")],
        [&["blue"][..], &[], &[], &[]]
    );
    assert_eq!((all("x-more"), all("x_more")), (vec!["1"], vec!["2"]));
    assert_eq!(got.trailers, [("X-Sum".to_owned(), "7".to_owned())]);
}

#[test]
fn no_spelling_of_a_path_comes_to_another_pool() {
    let (web, admin) = (called("web"), called("admin"));
    let pools = backends(&[("default", &web), ("admin", &admin)]);
    let front_end = FrontEnd::from_text(&format!(
        "{pools}[[route]]\npath = \"/admin\"\npool = \"admin\"\n[[route]]\npath = \"/pub\"\n"
    ));
    for path in [
        "/pub/../admin",
        "/pub/%2e%2e/admin",
        "/pub/..;/admin",
        "/pub%2f..%2fadmin",
        "/admin%2f",
        "/admin;a/",
    ] {
        assert_eq!(ask(&mut front_end.client(), "GET", "a", path, "").status(), 400, "{path}");
    }
    for path in ["//admin", "/%61dmin/", "/admin/../x"] {
        ask(&mut front_end.client(), "GET", "a", path, "");
    }
    assert_eq!(
        (web.take_lines(), admin.take_lines()),
        (vec![], vec!["GET //admin".to_owned(), "GET /%61dmin/".to_owned()])
    );
}

#[test]
fn what_no_route_takes_is_not_found_where_that_is_configured() {
    let (web, api) = (called("web"), called("api"));
    let pools = backends(&[("default", &web), ("api", &api)]);
    let front_end = FrontEnd::watching(
        "probe = \"none\"",
        &format!("{pools}[[route]]\npath = \"/api\"\npool = \"api\"\n"),
    );
    assert_eq!(front_end.client().get("/x").one("server"), Some("web"));
    drop(front_end);
    let rig = Rig::from_text(&format!(
        "unmatched = \"404\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [health]\nprobe = \"none\"\n{}[[route]]\nname = \"api\"\npath = \"/api\"\npool = \"api\"\n",
        backends(&[("api", &api)])
    ));
    let mut client = rig.client();
    assert_eq!((client.get("/x").status(), client.get("/api").status()), (404, 200));
    rig.metrics_once(|m| {
        m.sum("plimsoll_route_requests_total", "route=\"api\"") == 1.0
            && m.sum("plimsoll_refusals_total", "reason=\"no_route\"") == 1.0
    });
}

/// Answers the first request late.
fn slow(conn: &mut Conn) {
    while let Some(request) = conn.request() {
        if request.target() == "/slow" {
            pace(Duration::from_millis(700), Why::SlowPeer);
        }
        conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
}

#[test]
fn a_reload_brings_and_removes_pools_and_loses_no_request() {
    let (web, api) = (called("web"), Origin::scripted(slow));
    let alone = backends(&[("default", &web)]);
    let both = backends(&[("default", &web), ("api", &api)]) + "[[route]]\nhost = \"api\"\npool = \"api\"\n";
    let front_end = FrontEnd::from_text(&alone);
    let mut client = front_end.client();
    let api_asked = |client: &mut Client| {
        assert_eq!(ask(client, "GET", "api", "/x", "").status(), 200);
        api.take_lines().iter().filter(|line| line.ends_with("/x")).count()
    };
    assert_eq!(api_asked(&mut client), 0);
    for _ in 0..3 {
        front_end.reload(&both);
        assert_eq!(api_asked(&mut client), 1);
        let mut waiting = front_end.client();
        waiting.send("GET /slow HTTP/1.1\r\nHost: api\r\n\r\n");
        eventually("the slow request", || api.count() > 0);
        front_end.reload(&alone);
        assert_eq!(api_asked(&mut client), 0);
        assert_eq!(waiting.response("GET").status(), 200);
        api.take();
    }
}

#[test]
fn pools_have_policy_health_and_logs_of_their_own() {
    let (web, api) = (called("web"), called("api"));
    let directory = tempfile::tempdir().unwrap();
    let rig = Rig::from_text(&format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[health]\nprobe = \"none\"\n\
         [decision_log]\ndirectory = \"{}\"\n[[pool]]\nname = \"api\"\n[pool.policy]\nname = \"lard\"\nt_low = 3\n\
         [pool.target]\nkey = \"path\"\n[pool.health]\nprobe = \"http\"\nstatus = \"500\"\ninterval = \"50ms\"\n\
         [[backend]]\nname = \"w\"\naddress = \"{}\"\n[[backend]]\nname = \"a\"\npool = \"api\"\naddress = \"{}\"\n\
         [[route]]\npath = \"/api\"\npool = \"api\"\n",
        directory.path().display(),
        web.address,
        api.address
    ));
    // The check of the pool `api` takes 200 for bad.
    eventually("its back-end's end", || rig.backend("a")["health"] == "down");
    assert_eq!((&rig.backend("w")["health"], &rig.backend("a")["pool"]), (&"up".into(), &"api".into()));
    assert_eq!(rig.backend("w").get("pool"), None);
    let mut client = rig.client();
    assert_eq!((client.get("/api/x").status(), client.get("/x").status()), (503, 200));
    let policy = rig.get("/policy?pool=api").json();
    assert_eq!((&policy["name"], &policy["parameters"]["t_low"]), (&"lard".into(), &3.into()));
    assert_eq!(rig.get("/policy").json()["name"], "weighted_round_robin");
    let why: Value = rig.get("/why?pool=api&target=/api/x").json();
    assert_eq!(
        (&why["pool"], &why["policy"], &why["target_key"]),
        (&"api".into(), &"lard".into(), &"path".into())
    );
    rig.get("/why?pool=none&target=/x").assert_error(404);
    // A request ends a little after its client has the answer.
    eventually("the request's end", || {
        rig.get("/metrics").body.contains("plimsoll_backend_load{backend=\"w\"} 0\n")
    });
    let metrics = rig.get("/metrics").body;
    assert!(metrics.contains("plimsoll_decisions_total 1\n"), "{metrics}");
    assert!(metrics.contains("plimsoll_requests_refused_total{pool=\"api\"} 1\n"), "{metrics}");
    assert!(metrics.contains("plimsoll_backend_load{backend=\"a\",pool=\"api\"} 0\n"), "{metrics}");
    assert_eq!(rig.call("POST", "/backends/a/drain", &[], "").json()["drained"], true);
    // Each pool's decisions replay from a log of its own.
    let flushed = rig.call("POST", "/decisions/flush", &[], "").json();
    let files = flushed["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["name"].as_str().unwrap().starts_with("pool-api/")), "{files:?}");
    for directory in [directory.path().to_owned(), directory.path().join("pool-api")] {
        let proof = replay(&mut LogReader::open(&directory).unwrap(), &mut |_| {}).unwrap();
        assert!(!proof.is_refuted(), "{:?}", proof.first_difference);
        assert_eq!(proof.decisions().1, u64::from(!directory.ends_with("pool-api")));
    }
}

#[test]
fn a_client_that_asks_too_often_is_told_when_to_come_back() {
    let web = called("web");
    let text = backends(&[("default", &web)])
        + "[[route]]\nname = \"slow\"\npath = \"/login\"\nrate = \"4/h\"\nrate_burst = 2\n";
    let front_end = FrontEnd::from_text(&text);
    let mut client = front_end.client();
    let mut statuses = || [0; 3].map(|_| client.get("/login").status());
    assert_eq!(statuses(), [200, 200, 429]);
    // A reload forgets nothing, and neither another connection nor another spelling is another client.
    front_end.reload(&format!("{text}[limits]\nretries = 2\n"));
    let refused = front_end.client().get("//login?x");
    assert_eq!(refused.status(), 429);
    let seconds: u32 = refused.one("retry-after").unwrap().parse().unwrap();
    assert!((600..=900).contains(&seconds), "{seconds}");
    assert_eq!(front_end.client().get("/").status(), 200, "other paths have no limit");
    assert_eq!(front_end.client_v6().get("/login").status(), 200, "another client has its own");
    assert_eq!(web.take().len(), 4);
}

#[test]
fn clients_are_sent_elsewhere_and_logs_and_why_tell_the_route() {
    let (web, api) = (called("web"), called("api"));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let rig = Rig::from_text(&format!(
        "workers = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[health]\nprobe = \"none\"\n\
         [access_log]\nfile = {log:?}\nformat = \"json\"\n{}\
         [[route]]\nname = \"api\"\npath = \"/api\"\npool = \"api\"\n\
         [[route]]\nname = \"moved\"\npath = \"/old\"\nredirect = \"https://new.example/now{{rest}}{{query}}\"\n\
         redirect_status = 302\n[[route]]\npath = \"/gone\"\nanswer = 410\n",
        backends(&[("default", &web), ("api", &api)])
    ));
    let mut client = rig.client();
    let sent = client.get("/old/a?b=c");
    assert_eq!((sent.status(), sent.one("location")), (302, Some("https://new.example/now/a?b=c")));
    assert_eq!(ask(&mut client, "HEAD", "a", "/old", "").one("location"), Some("https://new.example/now"));
    assert_eq!((client.get("/api/x").status(), client.get("/").status()), (200, 200));
    assert_eq!(client.get("/../x").status(), 400);
    let why = |host: &str, path: &str| rig.get(&format!("/why?host={host}&path={path}")).json();
    let passed = why("a", "/api/x?y&z");
    assert_eq!((&passed["pool"], &passed["route"]["name"]), (&"api".into(), &"api".into()));
    assert_eq!((&passed["target"], &passed["route"]["index"]), (&"/api/x?y&z".into(), &0.into()));
    assert_eq!(passed["backends"][0]["name"], "in-api");
    let explanation = passed["explanation"].as_str().unwrap();
    assert!(
        explanation
            .starts_with("It is taken by route[0] `api` (any host, path /api), and goes to the pool `api`")
    );
    let moved = why("a", "/old/x");
    assert_eq!((&moved["status"], &moved["route"]["name"]), (&302.into(), &"moved".into()));
    assert_eq!(why("a", "/gone")["status"], 410);
    assert_eq!(why("a", "/a/../b")["status"], 400);
    let other = why("a", "/x");
    assert_eq!((other.get("pool"), other.get("route")), (None, None));
    assert!(other["explanation"].as_str().unwrap().starts_with("No route takes it"));
    for bad in ["/why?host=a", "/why?host=a&path=x", "/why?host=a%20b&path=/"] {
        rig.get(bad).assert_error(400);
    }
    rig.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line["status"].clone(), line["pool"].clone(), line["route"].clone()))
        .collect();
    let expected = [
        (302, "default".into(), "moved".into()),
        (302, "default".into(), "moved".into()),
        (200, "api".into(), "api".into()),
        (200, "default".into(), Value::Null),
        (400, Value::Null, Value::Null),
    ];
    assert_eq!(told, expected.map(|(status, pool, route)| (Value::from(status), pool, route)));
}

#[test]
fn redirects_have_the_scheme_that_a_trusted_proxy_tells() {
    let origin = Origin::echo();
    let of = |tables: &str| {
        let route = "[[route]]\nredirect = \"{scheme}://{host}/new{path}\"\n";
        let front_end = FrontEnd::new(&[origin.address], &format!("{route}{tables}"));
        let answer = ask(&mut front_end.client(), "GET", "a", "/x", "X-Forwarded-Proto: https\r\n");
        answer.one("location").unwrap().to_owned()
    };
    assert_eq!(of(""), "http://a/new/x");
    assert_eq!(of("[forwarded]\ntrusted = [\"127.0.0.1\"]\n"), "https://a/new/x");
}

#[test]
fn a_request_on_its_way_to_a_pool_that_leaves_gets_there() {
    let (web, api) = (called("web"), called("api"));
    let begin = "[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[health]\nprobe = \"none\"\n";
    let pools = backends(&[("default", &web), ("api", &api)]);
    let route = "[[route]]\nname = \"api\"\npath = \"/api\"\npool = \"api\"\n";
    let rig = Rig::from_text(&format!("{begin}{pools}{route}"));
    let mut client = rig.client();
    client.send("POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    rig.metrics_once(|m| m.sum("plimsoll_route_requests_total", "route=\"api\"") == 1.0);
    rig.reload(&format!("{begin}{}", backends(&[("default", &web)])));
    // Several times as long as it takes to look for pools that can go.
    pace(Duration::from_millis(1500), Why::SlowPeer);
    client.send("dy");
    let answer = client.response("POST");
    assert_eq!((answer.status(), answer.one("server")), (200, Some("api")));
    assert_eq!(ask(&mut client, "GET", "a", "/api", "").one("server"), Some("web"));
    let is_gone = || !rig.get("/backends").body.contains("in-api");
    eventually("the end of the pool", is_gone);
}

#[test]
fn routes_take_streams_of_http2_by_authority_path_and_fields() {
    let (web, api, img) = (called("web"), called("api"), called("img"));
    let pools = backends(&[("default", &web), ("api", &api), ("img", &img)]);
    let beta = "[[route]]\nheader = [\"x-beta: 1\"]\npool = \"img\"\n";
    let front_end = FrontEnd::from_text(&format!("{pools}{ROUTES}{beta}"));
    let curl = |host: &str, path: &str, field: &str| {
        let (url, host) = (format!("http://{}{path}", front_end.address(0)), format!("Host: {host}"));
        let fields = ["-H", &host, "-H", field];
        let shown = ["-w", "%{http_code} %header{server} %{http_version}", "-o", "/dev/null", "--path-as-is"];
        let mut command = std::process::Command::new("curl");
        command
            .args(["-sS", "--max-time", "30", "--http2-prior-knowledge"])
            .args(fields)
            .args(shown)
            .arg(&url);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(curl("a", "/", "X-A: 1"), "200 web 2");
    assert_eq!(curl("a", "/api/x?y", "X-A: 1"), "200 front 2");
    assert_eq!(curl("b.IMG.example:8080", "/x", "X-A: 1"), "200 img 2");
    assert_eq!(curl("a", "/x", "X-Beta: 1"), "200 img 2");
    assert_eq!(curl("a", "/x", "X-Beta: 2"), "200 web 2");
    assert!(curl("a", "/gone", "X-A: 1").starts_with("410 "));
    assert!(curl("a", "/x/../gone", "X-A: 1").starts_with("400 "));
    assert_eq!(api.take_lines(), ["GET /v1/x?y"]);
    assert_eq!(
        img.take().iter().map(|r| r.one("host").unwrap().to_owned()).collect::<Vec<_>>(),
        ["b.IMG.example:8080", "a"]
    );
}
