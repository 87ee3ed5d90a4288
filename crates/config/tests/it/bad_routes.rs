//! Files with errors about pools and routes, as those of `errors`.

pub(crate) const BAD_ROUTES: &[(&str, &str)] = &[
    ("route[0].redirect", "[[route]]\nredirect = \"www.example.com\"\n"),
    ("route[0].redirect", "[[route]]\nredirect = \"https://www.example.com{uri}\"\n"),
    ("route[0].redirect", "[[route]]\nredirect = \"https://www{host}{path}\"\n"),
    ("route[0].redirect", "[[route]]\nhost = \"*.a.example\"\nredirect = \"https://www.{host}{path}\"\n"),
    ("route[0].redirect", "[[route]]\nredirect = \"https://{host}.example{path}\"\n"),
    ("route[0].redirect", "[[route]]\nanswer = 404\nredirect = \"/\"\n"),
    ("route[0].redirect_status", "[[route]]\nredirect = \"/\"\nredirect_status = 304\n"),
    ("route[0].redirect_status", "[[route]]\nredirect_status = 301\n"),
    ("route[0].body", "[[route]]\nredirect = \"/\"\nbody = 1\n"),
    ("backend[1].pool", "[[backend]]\naddress = \"h:1\"\npool = \"api\"\n"),
    (
        "backend[2].pool",
        "[[pool]]\nname = \"api\"\n[[backend]]\naddress = \"h:2\"\npool = \"api\"\n[[backend]]\naddress = \"h:1\"\npool = \"apo\"\n",
    ),
    (
        "backend[1].partitions",
        "[[pool]]\nname = \"a\"\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\npartitions = [\"0\"]\n[partitions]\n",
    ),
    ("pool[0].name", "[[pool]]\nname = \"api\"\n"),
    ("pool[0].name", "[[pool]]\nname = \"default\"\n"),
    ("pool[0].name", "[[pool]]\n[pool.policy]\nname = \"lard\"\n"),
    ("pool[0].name", "[[pool]]\nname = \"a\"\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\nweight = 0\n"),
    (
        "pool[1].name",
        "[[pool]]\nname = \"a\"\n[[pool]]\nname = \"a\"\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    (
        "pool[0].health.rise",
        "[[pool]]\nname = \"a\"\n[pool.health]\nrise = 0\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    (
        "pool[0].policy.t_lwo",
        "[[pool]]\nname = \"a\"\n[pool.policy]\nname = \"lard\"\nt_lwo = 1\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    (
        "pool[0].helth",
        "[[pool]]\nname = \"a\"\n[pool.helth]\nrise = 1\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    (
        "pool[0].timeouts.idle",
        "[[pool]]\nname = \"a\"\n[pool.timeouts]\nidle = \"1s\"\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    ("pool[0]", "[[pool]]\nname = \"a\"\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n[peers]\n"),
    (
        "pool[0]",
        "mechanism = \"auto\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n[[backend]]\naddress = \"h:1\"\n[[pool]]\nname = \"a\"\n[[backend]]\naddress = \"h:2\"\npool = \"a\"\n#",
    ),
    (
        "unmatched",
        "unmatched = \"404\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"h:1\"\n#",
    ),
    (
        "unmatched",
        "unmatched = \"api\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"h:1\"\n#",
    ),
    (
        "unmatched",
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[pool]]\nname = \"a\"\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n#",
    ),
    ("route[0].pool", "[[route]]\npool = \"api\"\n"),
    ("route[0].host", "[[route]]\nhost = \"a:80\"\n"),
    ("route[0].path", "[[route]]\npath = \"/a/../b\"\n"),
    ("route[0].path", "[[route]]\npath = \"api\"\n"),
    ("route[0].header[0]", "[[route]]\nheader = [\"x y: 1\"]\n"),
    ("route[0].answer", "[[route]]\nanswer = 200\n"),
    ("route[0].rate", "[[route]]\nrate = \"10\"\n"),
    ("route[0].rate_burst", "[[route]]\nrate_burst = 5\n"),
    ("route[0].replace_prefix", "[[route]]\nanswer = 404\nreplace_prefix = \"/a\"\n"),
    ("route[0].request_fields[1]", "[[route]]\nrequest_fields = [\"set a: b\", \"delete c\"]\n"),
    ("route[0].response_fields[0]", "[[route]]\nresponse_fields = [\"remove Transfer_Encoding\"]\n"),
    ("route[1]", "[[route]]\npath = \"/a\"\n[[route]]\npath = \"/a/\"\n"),
    ("route[1].name", "[[route]]\nname = \"a\"\n[[route]]\nname = \"a\"\npath = \"/b\"\n"),
];
