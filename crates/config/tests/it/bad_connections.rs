//! Files with errors about how connections begin and messages travel, as those of `errors`.

use plimsoll_config::Config;

pub(crate) const BAD_CONNECTIONS: &[(&str, &str)] = &[
    ("compression.codings[1]", "[compression]\ncodings = [\"gzip\", \"br\"]\n"),
    ("compression.codings", "[compression]\ncodings = []\n"),
    ("compression.codings", "[compression]\ncodings = [\"gzip\", \"gzip\"]\n"),
    ("compression.types[0]", "[compression]\ntypes = [\"html\"]\n"),
    ("compression.level", "[compression]\nlevel = 10\n"),
    ("route[0].compression", "[[route]]\ncompression = true\n"),
    ("route[0].compression", "[compression]\n[[route]]\nanswer = 404\ncompression = false\n"),
    (
        "compression",
        "mechanism = \"direct\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n\
         [[backend]]\naddress = \"10.0.0.1:1\"\n[policy]\nname = \"round_robin\"\n[compression]\n#",
    ),
    ("forwarded.field", "[forwarded]\nfield = \"add\"\n"),
    ("forwarded.by", "[forwarded]\nfield = \"append\"\nby = \"front end\"\n"),
    (
        "listener[1].proxy_protocol[0]",
        "[[listener]]\naddress = \"127.0.0.2:0\"\nproxy_protocol = [\"10.0.0.1/33\"]\n",
    ),
    ("listener[1].proxy_protocol", "[[listener]]\naddress = \"127.0.0.2:0\"\nproxy_protocol = true\n"),
    (
        "listener[0].proxy_protocol",
        "mechanism = \"direct\"\n[[listener]]\naddress = \"10.0.0.9:80\"\nproxy_protocol = [\"10.0.0.1\"]\n\
         [[backend]]\naddress = \"10.0.0.1:1\"\n[policy]\nname = \"round_robin\"\n#",
    ),
    ("backend[1].proxy_protocol", "[[backend]]\naddress = \"h:1\"\nproxy_protocol = \"v3\"\n"),
    ("backend[1].proxy_protocol", "[[backend]]\naddress = \"h:1\"\nproxy_protocol = \"v2\"\nhttp2 = true\n"),
    (
        "backend[0].proxy_protocol",
        "mechanism = \"direct\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n\
         [[backend]]\naddress = \"10.0.0.1:1\"\nproxy_protocol = \"v1\"\n[policy]\nname = \"round_robin\"\n#",
    ),
];

#[test]
fn handoff_moves_no_connection_that_began_with_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "00".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let parsed = |mechanism: &str, fallback: &str, of_listener: &str, of_backend: &str| {
        let text = format!(
            "mechanism = \"{mechanism}\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n{of_listener}\n\
             [[backend]]\naddress = \"10.0.0.1:80\"\nagent = \"10.0.0.1:7400\"\n{of_backend}\n\
             [handoff]\nkey_file = {key:?}\ninterfaces = [\"lo\"]\nfallback = \"{fallback}\"\n"
        );
        Config::parse(&text, "plimsoll.toml").map(drop).map_err(|errors| errors.to_string())
    };
    let (from, to) = ("proxy_protocol = [\"10.0.0.2\"]", "proxy_protocol = \"v1\"");
    assert_eq!(parsed("auto", "proxy", from, ""), Ok(()));
    assert_eq!(parsed("handoff", "proxy", from, ""), Ok(()));
    let wrong = parsed("handoff", "none", from, "").unwrap_err();
    assert!(wrong.contains("listener[0].proxy_protocol") && wrong.contains("auto"), "{wrong}");
    let wrong = parsed("auto", "proxy", "", to).unwrap_err();
    assert!(
        wrong.contains("backend[0].proxy_protocol") && wrong.contains("remove it, or `agent`"),
        "{wrong}"
    );
}
